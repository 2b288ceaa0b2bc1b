import TestSupport

extension SimulationSettings {
    /// What traits decide before anything of the schedule is drawn.
    mutating func takeTraits() {
        guard !traits.isEmpty else { return }
        var random = SeededGenerator(Seed(~seed.rawValue))
        // Of datasets that were deleted hardly anything is checked.
        if traits != .lateComers { deletesDatasets = false }
        if !policy.isUnion, random.below(4) > 0 { policy = .lastWriterWins }
        if traits.contains(.lateComers) { tombstoneAge = .seconds(60) }
        if traits.contains(.clocks) { clockAheadMax = 300_000 }
        if traits.contains(.values) { policy = random.oneIn(2) ? .autoMerge : .mergeable }
        // What is united has no expiry of its own: only the last writer's counts.
        if traits.contains(.expiry) { policy = .lastWriterWins }
        if traits.contains(.pending) { policy = random.oneIn(2) ? .stopping : .leaving }
        if traits.contains(.merging) {
            datasetCount = 2
            // Made anew by a write that its deletion had not seen, a dataset must stay.
            recreatesDatasets = true
            if !policy.isUnion { policy = .union }
        } else if traits.contains(.parts) {
            // So that the others are joined without them.
            partCount = replicaCount > 4 && topology != .chain ? 2 : 1
            keepsOutside = random.oneIn(3)
            // A part does not look for what differs.
            forgetsCheckpoints = false
        }
    }
}

/// The steps that traits add to a schedule. They change nothing of what was drawn before.
enum TraitSteps {
    static func add(to steps: inout [Step], _ settings: SimulationSettings) {
        guard !settings.traits.isEmpty else { return }
        var draw = Draw(settings)
        let traits = settings.traits
        if traits.contains(.lateComers) { draw.addLateComers(to: &steps) }
        if traits.contains(.clocks) { draw.addClocks(to: &steps) }
        if traits.contains(.copies) { draw.addCopies(to: &steps) }
        if traits.contains(.pending) { draw.addSettling(to: &steps) }
        if traits.contains(.merging) {
            for _ in 0..<2 { draw.insert(.noteMerged(at: 0), into: &steps) }
        }
        if traits.contains(.segments) { draw.addLarge(to: &steps) }
        if settings.partCount > 0 { draw.addParts(to: &steps) }
        if traits.contains(.expiry) { draw.addExpiry(to: &steps) }
        if traits.contains(.past) { draw.addPast(to: &steps) }
        if traits.contains(.bundles) { draw.addBundles(to: &steps) }
    }

    private struct Draw {
        private let settings: SimulationSettings
        private var random: SeededGenerator

        init(_ settings: SimulationSettings) {
            self.settings = settings
            random = SeededGenerator(Seed(settings.seed.rawValue ^ 0x7A17_5EED))
        }

        mutating func replica() -> Int { random.below(settings.replicaCount) }

        mutating func dataset() -> Int { random.below(settings.datasetCount) }

        mutating func insert(_ action: Action, into steps: inout [Step]) {
            steps.insert(
                Step(after: 0, action: action), at: random.below(steps.count + 1))
        }

        /// Peers are given up and come again, are cut off for long, and minutes pass at once.
        mutating func addLateComers(to steps: inout [Step]) {
            for _ in 0..<2 + steps.count / 12 {
                let (at, peer) = (replica(), replica())
                let pair = [
                    Step(after: 0, action: .retire(at: at, peer: peer)),
                    Step(after: 0, action: .compact(at: at)),
                ]
                steps.insert(contentsOf: pair, at: random.below(steps.count + 1))
            }
            for _ in 0..<1 + random.below(3) {
                let (at, by) = (replica(), Int64(61_000 + random.below(120_000)))
                insert(.setClock(at: at, by: by), into: &steps)
            }
            let lonely = replica()
            let edges = settings.edges.filter { $0.0 == lonely || $0.1 == lonely }
            let start = random.below(steps.count / 2 + 1)
            let end = start + steps.count / 3
            // The later ones first, so that the earlier place stays what it is.
            steps.insert(
                contentsOf: edges.map { Step(after: 0, action: .join($0.0, $0.1)) }, at: end)
            steps.insert(
                contentsOf: edges.map { Step(after: 0, action: .cut($0.0, $0.1)) }, at: start)
        }

        mutating func addClocks(to steps: inout [Step]) {
            for _ in 0..<3 + steps.count / 15 {
                let (at, by) = (replica(), Int64(300_000 + random.below(6_900_000)))
                let isBack = random.oneIn(2)
                insert(.setClock(at: at, by: isBack ? -by : by), into: &steps)
            }
            for _ in 0..<2 + steps.count / 20 {
                let (at, which, isReleased) = (replica(), dataset(), random.oneIn(2))
                insert(
                    .decideHeld(at: at, dataset: which, isReleased: isReleased), into: &steps)
            }
        }

        mutating func addSettling(to steps: inout [Step]) {
            for _ in 0..<2 + steps.count / 15 {
                let (at, which) = (replica(), dataset())
                insert(.settle(at: at, dataset: which), into: &steps)
            }
        }

        mutating func addCopies(to steps: inout [Step]) {
            for _ in 0..<1 + steps.count / 50 {
                let at = replica()
                if random.oneIn(2) {
                    let onto =
                        (at + 1 + random.below(settings.replicaCount - 1)) % settings.replicaCount
                    insert(.copy(from: at, onto: onto), into: &steps)
                } else {
                    let place = random.below(steps.count + 1)
                    let later = place + random.below(steps.count + 1 - place)
                    let writes = 2 + random.below(6)
                    steps.insert(
                        Step(
                            after: 0,
                            action: .rollBack(at: at, writes: writes, isWatched: false)),
                        at: later)
                    steps.insert(Step(after: 0, action: .backUp(at: at)), at: place)
                }
            }
        }

        mutating func addLarge(to steps: inout [Step]) {
            let (at, place) = (replica(), random.below(steps.count / 3 + 1))
            steps.insert(Step(after: 0, action: .fillLarge(at: at)), at: place)
        }

        mutating func addParts(to steps: inout [Step]) {
            for _ in 0..<2 + steps.count / 12 {
                let (at, which) = (part(), dataset())
                let action = setScope(at, which)
                insert(action, into: &steps)
            }
            var first: [Step] = []
            for dataset in 0..<settings.datasetCount {
                for at in (settings.replicaCount - settings.partCount)..<settings.replicaCount
                where random.below(4) > 0 {
                    first.append(Step(after: 0, action: setScope(at, dataset)))
                }
            }
            steps.insert(contentsOf: first, at: 0)
        }

        mutating func addExpiry(to steps: inout [Step]) {
            // Where values are united, whoever adds to one adds to nothing once it has expired.
            guard !settings.policy.isUnion else { return }
            for _ in 0..<4 + steps.count / 6 {
                let life =
                    random.oneIn(4) ? 30 * 86_400_000 : UInt64(1 + random.below(3_000))
                let action = Action.writeExpiring(
                    at: replica(), dataset: dataset(), key: random.below(settings.keyCount),
                    life: life)
                insert(action, into: &steps)
            }
            for _ in 0..<2 + steps.count / 15 {
                let at = replica()
                insert(random.oneIn(3) ? .compact(at: at) : .sweep(at: at), into: &steps)
            }
        }

        mutating func addPast(to steps: inout [Step]) {
            for _ in 0..<4 + steps.count / 10 {
                let (at, which) = (replica(), dataset())
                insert(.remember(at: at, dataset: which), into: &steps)
                let (other, reader) = (replica(), replica())
                insert(.compact(at: other), into: &steps)
                insert(.recall(at: reader), into: &steps)
            }
        }

        mutating func addBundles(to steps: inout [Step]) {
            for _ in 0..<4 + steps.count / 8 {
                let from = replica()
                let to =
                    (from + 1 + random.below(settings.replicaCount - 1)) % settings.replicaCount
                let carriage = Carriage(
                    from: from, to: to, dataset: dataset(),
                    kind: random.element(of: BundleKind.allCases),
                    duration: UInt64(random.below(random.oneIn(3) ? Carriage.durationMax : 50)),
                    damage: random.oneIn(8) ? random.next() : nil)
                insert(.carry(carriage), into: &steps)
                // The same once more, or by another way before it.
                if random.oneIn(3) { insert(.carry(carriage), into: &steps) }
            }
        }

        private mutating func part() -> Int {
            settings.replicaCount - 1 - random.below(settings.partCount)
        }

        private mutating func setScope(_ at: Int, _ dataset: Int) -> Action {
            let isWhole = random.oneIn(6)
            let scope = SimulatedScope(number: random.below(SimulatedScope.count))
            return .setScope(at: at, dataset: dataset, isWhole ? nil : scope)
        }
    }
}
