package import TestSupport
package import Tidemark

/// Draws what goes wrong: settings and a schedule, both from one seed.
package struct Nemesis {
    private var random: SeededGenerator
    private let settings: SimulationSettings

    /// A run for a seed.
    package static func draw(
        _ seed: Seed, findings: KnownFinding = [], plantedBugs: PlantedBugs = []
    ) -> (settings: SimulationSettings, steps: [Step]) {
        var random = SeededGenerator(seed)
        var settings = SimulationSettings()
        settings.seed = seed
        settings.findings = findings
        settings.plantedBugs = plantedBugs
        // Three find most of what any number would find, and are fast.
        settings.replicaCount =
            random.oneIn(3) ? 3 + random.below(SimulationSettings.replicaCounts.count) : 3
        settings.topology = random.element(of: SimulatedTopology.allCases)
        settings.policy =
            random.below(10) < 6 ? .lastWriterWins : random.element(of: SimulatedPolicy.plain)
        settings.deletesDatasets = settings.policy == .lastWriterWins && random.oneIn(5)
        settings.recreatesDatasets = random.oneIn(2)
        // Not drawn, so that all other seeds mean what they meant before.
        settings.forgetsCheckpoints = seed.rawValue % 7 == 5
        settings.datasetCount = random.oneIn(4) ? 2 : 1
        settings.keyCount = 4 + random.below(12)
        settings.stepCount = 30 + random.below(90)
        settings.durability = random.oneIn(2) ? .disk : .process
        settings.takeTraits()
        var nemesis = Nemesis(random: random.split(), settings: settings)
        var steps: [Step] = []
        while steps.count < settings.stepCount { steps.append(nemesis.next()) }
        TraitSteps.add(to: &steps, settings)
        return (settings, steps)
    }

    private mutating func replica() -> Int { random.below(settings.replicaCount) }

    private mutating func next() -> Step {
        if settings.deletesDatasets, random.oneIn(20) {
            return Step(
                after: 0,
                action: .deleteDataset(
                    at: replica(), dataset: random.below(settings.datasetCount)))
        }
        if settings.forgetsCheckpoints, random.oneIn(12) {
            let (one, other) = random.element(of: settings.edges)
            return Step(after: 0, action: .forget(one, other))
        }
        let action: Action
        switch random.below(100) {
        case ..<42: action = write()
        case ..<46: action = batch()
        case ..<52:
            action = .read(
                at: replica(), dataset: random.below(settings.datasetCount),
                key: random.below(settings.keyCount))
        case ..<80: action = exchange()
        case ..<83: action = .compact(at: replica())
        case ..<85: action = .reopen(at: replica())
        case ..<89: action = powerLoss()
        case ..<90: action = .kill(at: replica(), downFor: UInt64(random.below(300)))
        case ..<92: action = .backUp(at: replica())
        case ..<94: action = random.oneIn(2) ? .restore(at: replica()) : rollBack()
        case ..<95: action = setClock()
        case ..<97: action = partition()
        case ..<98:
            action = .fillDisk(
                at: replica(), room: random.below(20_000), for: UInt64(1 + random.below(400)))
        default:
            action = .slowDown(
                at: replica(), milliseconds: random.oneIn(2) ? 0 : UInt64(random.below(400)))
        }
        return Step(after: random.oneIn(3) ? UInt64(random.below(120)) : 0, action: action)
    }

    private mutating func write() -> Action {
        let isUnion = settings.policy.isUnion
        return .write(
            at: replica(), dataset: random.below(settings.datasetCount),
            key: random.below(settings.keyCount), isDeletion: !isUnion && random.oneIn(5),
            isDurable: random.oneIn(2),
            padding: isUnion ? 0 : random.oneIn(20) ? random.below(60_000) : random.below(30))
    }

    private mutating func batch() -> Action {
        let count = 1 + random.below(6)
        return .batch(
            at: replica(), dataset: random.below(settings.datasetCount),
            keys: Set((0..<count).map { _ in random.below(settings.keyCount) }).sorted())
    }

    private mutating func exchange() -> Action {
        var (from, to) = random.element(of: settings.edges)
        // A hub asks nobody.
        if settings.topology != .star, random.oneIn(2) { swap(&from, &to) }
        var weather = Weather(seed: random.next())
        if random.oneIn(2) {
            weather.lossPercent = random.below(30)
            weather.repeatPercent = random.below(30)
            weather.damagePercent = random.below(10)
        }
        weather.delayMax = UInt64(1 + random.below(random.oneIn(3) ? 200 : 20))
        return .exchange(from: from, to: to, pageRecordsMax: 1 + random.below(5), weather)
    }

    private mutating func powerLoss() -> Action {
        .powerLoss(
            at: replica(), afterCalls: random.oneIn(3) ? 0 : 1 + random.below(24),
            survivalPercent: random.oneIn(3) ? 0 : random.below(101), seed: random.next(),
            downFor: UInt64(random.below(300)))
    }

    private mutating func rollBack() -> Action {
        .rollBack(at: replica(), writes: random.below(4), isWatched: true)
    }

    private mutating func setClock() -> Action {
        if settings.findings.contains(.draggedClock), random.oneIn(2) {
            return .setClock(at: replica(), by: 70 * 365 * 86_400_000)
        }
        let most: Int64 = random.oneIn(2) ? 600_000 : 2_000
        return .setClock(at: replica(), by: Int64.random(in: -most...most, using: &random))
    }

    private mutating func partition() -> Action {
        let (one, other) = random.element(of: settings.edges)
        return random.oneIn(2) ? .cut(one, other) : .join(one, other)
    }
}
