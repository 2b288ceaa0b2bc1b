/// Goes through all schedules up to a length, state by state: two schedules that lead to the same
/// state are gone on with once. States are told apart by a hash of 64 bits.
package struct SpecExploration {
    package var settings: SpecSettings
    /// Which steps there are besides writes and exchanges.
    package var forgets = true
    package var goesBack = false
    package var losesPower = false
    package var cuts: [SpecCut] = []
    /// Messages before which the responder may write.
    package var crossings: [Int] = []
    package var checksTheEnd = true

    package init(_ settings: SpecSettings = SpecSettings()) { self.settings = settings }

    package struct Result: Sendable {
        /// How many states were met first after so many steps.
        package var statesPerDepth: [Int] = []
        package var violation: SpecWorld.Violation?
        /// The schedule that leads to it: one of the shortest.
        package var schedule: [SpecStep] = []

        package var stateCount: Int { statesPerDepth.reduce(0, +) }
    }

    /// All steps but backups.
    package var allSteps: [SpecStep] {
        var steps: [SpecStep] = []
        for at in 0..<3 {
            for key in 0..<2 { steps += [.put(at: at, key: key), .delete(at: at, key: key)] }
            for to in 0..<3 where to != at {
                steps.append(.exchange(from: at, to: to, cut: nil))
                steps += cuts.map { .exchange(from: at, to: to, cut: $0) }
            }
            for to in 0..<3 where to != at {
                for message in crossings {
                    for key in 0..<2 {
                        steps.append(
                            .crossedExchange(from: at, to: to, message: message, key: key))
                    }
                }
            }
            if forgets { steps.append(.forget(at: at)) }
        }
        if goesBack { steps.append(.restore) }
        if losesPower { steps.append(.losePower) }
        return steps
    }

    /// - Parameters:
    ///   - depth: how many steps a schedule has at most.
    ///   - visit: is shown each state with its depth.
    package func run(
        depth: Int, visit: (SpecWorld, Int) -> Void = { _, _ in }
    ) -> Result {
        var search = Search(exploration: self, steps: allSteps)
        var layer = [(world: SpecWorld(), number: 0)]
        search.meet(SpecWorld(), from: 0, by: 0)
        for length in 0...depth {
            if goesBack || losesPower, length < depth { search.addBackups(to: &layer) }
            // What the last layer leads to is not asked, so it is kept nowhere.
            if length < depth || depth == 0 {
                search.result.statesPerDepth.append(layer.count)
                for (world, number) in layer {
                    visit(world, length)
                    guard search.isSound(world, number, nil) else { return search.result }
                }
            }
            guard length < depth else { break }
            let isLast = length + 1 == depth
            var next: [(world: SpecWorld, number: Int)] = []
            var lastCount = 0
            for (world, number) in layer {
                for (index, step) in search.steps.enumerated() {
                    guard let (reached, violation) = world.after(step, settings) else { continue }
                    if let violation {
                        search.fail(violation, number, step)
                        return search.result
                    }
                    if isLast {
                        guard search.isNew(reached) else { continue }
                        lastCount += 1
                        visit(reached, depth)
                        guard search.isSound(reached, number, step) else { return search.result }
                    } else if let found = search.meet(reached, from: number, by: index) {
                        next.append((reached, found))
                    }
                }
            }
            layer = next
            if isLast { search.result.statesPerDepth.append(lastCount) }
        }
        return search.result
    }

    private struct Search {
        let exploration: SpecExploration
        let steps: [SpecStep]
        var result = Result()
        private var seen: Set<UInt64> = []
        /// Where each state came from: the number of the one before, and that of the step.
        private var origins: [(parent: UInt32, step: UInt8)] = []
        private static let backupSteps = 200

        init(exploration: SpecExploration, steps: [SpecStep]) {
            self.exploration = exploration
            self.steps = steps
        }

        mutating func isNew(_ world: SpecWorld) -> Bool {
            seen.insert(world.canonicalHash).inserted
        }

        /// - Returns: the number of the state; nil if it was met before.
        @discardableResult
        mutating func meet(_ world: SpecWorld, from parent: Int, by step: Int) -> Int? {
            guard isNew(world) else { return nil }
            origins.append((UInt32(parent), UInt8(step)))
            return origins.count - 1
        }

        /// Backups take no time.
        mutating func addBackups(to layer: inout [(world: SpecWorld, number: Int)]) {
            for (world, number) in layer where world.backup.isEmpty {
                for at in 0..<3 {
                    let step = SpecStep.backUp(at: at)
                    guard let (next, _) = world.after(step, exploration.settings),
                        let found = meet(next, from: number, by: Self.backupSteps + at)
                    else { continue }
                    layer.append((next, found))
                }
            }
        }

        /// - Parameters:
        ///   - number: of the state, or of the one before it.
        ///   - step: that leads from there to the state.
        mutating func isSound(_ world: SpecWorld, _ number: Int, _ step: SpecStep?) -> Bool {
            let settings = exploration.settings
            let violation =
                world.violation()
                ?? (exploration.checksTheEnd ? world.violationAtTheEnd(settings) : nil)
            guard let violation else { return true }
            fail(violation, number, step)
            return false
        }

        mutating func fail(_ violation: SpecWorld.Violation, _ number: Int, _ step: SpecStep?) {
            result.violation = violation
            var path = step.map { [$0] } ?? []
            var number = number
            while number > 0 {
                let origin = origins[number]
                let index = Int(origin.step)
                path.append(
                    index < Self.backupSteps
                        ? steps[index] : .backUp(at: index - Self.backupSteps))
                number = Int(origin.parent)
            }
            result.schedule = path.reversed()
        }
    }
}
