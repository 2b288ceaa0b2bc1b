/// Makes a failing schedule shorter as long as it fails for the same kind of reason.
///
/// Zeller, Hildebrandt: "Simplifying and Isolating Failure-Inducing Input" (2002), the algorithm
/// ddmin: parts of the schedule are left out, at first large ones and then smaller ones, until no
/// single step can be left out any more or the runs are used up.
package struct Shrinker {
    private let settings: SimulationSettings
    private let kind: Violation.Kind
    /// Runs that may still be made.
    private var runsLeft: Int
    package private(set) var runCount = 0

    package init(_ settings: SimulationSettings, _ kind: Violation.Kind, runsMax: Int = 600) {
        self.settings = settings
        self.kind = kind
        runsLeft = runsMax
    }

    /// O(n log n) runs in the usual case, O(n²) at worst.
    package mutating func shortest(of steps: [Step]) -> [Step] {
        // What comes after the failure has no part in it, and goes in a few runs.
        var steps = steps
        var partCount = 2
        while steps.count > 1, runsLeft > 0 {
            let size = max(1, (steps.count + partCount - 1) / partCount)
            var isShorter = false
            var start = steps.count - 1 - (steps.count - 1) % size
            while start >= 0, runsLeft > 0 {
                var rest = steps
                rest.removeSubrange(start..<min(start + size, rest.count))
                if fails(rest) {
                    steps = rest
                    isShorter = true
                }
                start = min(start, steps.count) - size
            }
            if !isShorter, size == 1 { break }
            if !isShorter { partCount = min(2 * partCount, steps.count) }
        }
        return steps
    }

    private mutating func fails(_ steps: [Step]) -> Bool {
        runsLeft -= 1
        runCount += 1
        return World.run(settings, steps).violation?.kind == kind
    }
}
