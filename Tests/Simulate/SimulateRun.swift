import Glibc
import Simulation
import TestSupport
import Tidemark

/// Seed after seed until all were run, the time is up or one fails.
struct SimulateRun {
    private let options: SimulateOptions
    private let started = SimulateRun.now()
    private var seedCount = 0
    private var stepCount = 0
    private var exchangeCount = 0
    private var crashCount = 0
    private var conflictCount = 0
    private var virtualSeconds = 0.0
    private var findingCount = 0

    init(_ options: SimulateOptions) {
        self.options = options
    }

    private static func now() -> Double {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Seconds between two lines of progress.
    private static let lineSeconds = 10.0

    /// True if no seed failed.
    func run() -> Bool {
        var copy = self
        return options.findsBugs ? copy.findBugs() : copy.runSeeds()
    }

    /// For each bug that can be planted the first seed that finds it, and finds nothing without it:
    /// what stands in the table of `PlantedBugTests`. True if there is one for each.
    private func findBugs() -> Bool {
        let seedsMax = min(options.seedsMax, 1_000)
        var foundAll = true
        for (name, bug) in PlantedBugs.named {
            var found: (seed: Seed, violation: Violation)?
            for number in 0..<seedsMax where found == nil {
                let seed = options.complete(Seed(options.seed.rawValue &+ UInt64(number)))
                let (settings, steps) = Nemesis.draw(seed, plantedBugs: bug)
                guard let violation = World.run(settings, steps).violation else { continue }
                let healthy = Nemesis.draw(seed)
                if World.run(healthy.settings, healthy.steps).violation == nil {
                    found = (seed, violation)
                }
            }
            say("\(name): \(found.map { "\($0.seed) \($0.violation)" } ?? "not found")")
            foundAll = foundAll && found != nil
        }
        return foundAll
    }

    private mutating func runSeeds() -> Bool {
        say("simulate: seeds from \(options.seed), \(Int(options.seconds)) seconds")
        var nextLine = started + Self.lineSeconds
        var next = options.seed
        repeat {
            let seed = options.complete(next)
            let (settings, steps) = Nemesis.draw(
                seed, findings: options.findings, plantedBugs: options.plantedBugs)
            let outcome = World.run(
                settings, steps, keepsTrace: options.printsTrace,
                showsRecords: options.printsTrace && options.showsRecords)
            count(outcome, steps)
            if options.printsTrace { outcome.trace.lines.forEach(say) }
            if options.isSingle {
                say("seed \(seed): \(settings)")
                say("trace \(String(outcome.trace.hash, radix: 16))")
            }
            if let violation = outcome.violation {
                findingCount += 1
                guard options.goesOn else {
                    tell(violation, seed, settings, steps)
                    return false
                }
                say("finding: \(violation.kind): \(repetition(of: seed))")
            }
            next = Seed(next.rawValue &+ 1)
            if Self.now() > nextLine {
                say(line)
                nextLine = Self.now() + Self.lineSeconds
            }
        } while !options.isSingle && seedCount < options.seedsMax
            && Self.now() < started + options.seconds
        say(line)
        say(
            "simulate: \(exchangeCount) exchanges, \(conflictCount) conflicts, "
                + "\(crashCount) crashes,")
        say(
            "          \(Int(virtualSeconds)) virtual seconds; "
                + (findingCount == 0 ? "nothing was found" : "\(findingCount) findings"))
        return findingCount == 0
    }

    private mutating func count(_ outcome: SimulationOutcome, _ steps: [Step]) {
        seedCount += 1
        stepCount += steps.count
        exchangeCount += outcome.exchangeCount
        crashCount += outcome.crashCount
        conflictCount += outcome.conflictCount
        virtualSeconds += Double(outcome.virtualMilliseconds) / 1_000
    }

    private var line: String {
        let elapsed = max(0.001, Self.now() - started)
        return
            "simulate: \(Int(elapsed)) s, \(seedCount) seeds, \(stepCount) steps, "
            + "\(Int(Double(stepCount) / elapsed)) steps/s"
    }

    // MARK: - What was found

    private func tell(
        _ violation: Violation, _ seed: Seed, _ settings: SimulationSettings, _ steps: [Step]
    ) {
        say("seed \(seed) fails: \(settings)")
        say("  \(violation)")
        var shrinker = Shrinker(settings, violation.kind)
        let shortest = shrinker.shortest(of: steps)
        let outcome = World.run(
            settings, shortest, keepsTrace: true, showsRecords: options.showsRecords)
        say("\(shortest.count) of \(steps.count) steps, after \(shrinker.runCount) runs:")
        for step in shortest { say("  \(step)") }
        say("the trace of these:")
        outcome.trace.lines.suffix(1_000).forEach { say("  \($0)") }
        say("again: \(repetition(of: seed))")
    }

    private func repetition(of seed: Seed) -> String {
        "tools/simulate --only --seed \(seed)\(options.repetition)"
    }
}

extension SimulateOptions {
    /// The arguments beside the seed that a repetition needs.
    fileprivate var repetition: String {
        var text = ""
        for (name, bug) in PlantedBugs.named where plantedBugs.contains(bug) {
            text += " --bug \(name)"
        }
        if findings.contains(.draggedClock) { text += " --find dragged" }
        return text
    }
}
