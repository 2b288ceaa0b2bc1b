import Simulation
import TestSupport
import Testing
import Tidemark

/// A mistake on purpose, and where it comes to light: in the first of some seeds that finds it.
struct Planted: Sendable, CustomTestStringConvertible {
    let name: String
    let seeds: ClosedRange<UInt64>
    let traits: SimulatedTraits

    var testDescription: String { name }

    /// - Parameter seeds: of which one finds it, with these traits.
    init(_ name: String, seeds: ClosedRange<UInt64>, _ traits: SimulatedTraits) {
        self.name = name
        self.seeds = seeds
        self.traits = traits
    }

    static let all = [
        Planted("skipVectorJoin", seeds: 0x1...0x8, []),
        Planted("joinVectorWithFirstPage", seeds: 0x1...0x8, []),
        Planted("skipSyncBeforeSend", seeds: 0x60...0x100, []),
        Planted("reuseDot", seeds: 0x10...0x60, []),
        Planted("checkpointApartFromRecords", seeds: 0x20...0x80, []),
        Planted("advanceCursorPastCap", seeds: 0x1...0x8, []),
        Planted("ignoreLifecycle", seeds: 0x40...0xA0, []),
        Planted("applyConflictUnasked", seeds: 0x1...0x40, []),
        Planted("collectTombstonesEarly", seeds: 0x1...0x40, []),
        Planted("claimVectorInPart", seeds: 0x1...0x40, .parts),
        Planted("releaseHeldEarly", seeds: 0x1...0x40, .clocks),
        Planted("forgetHeldDeletion", seeds: 0x1...0x80, .clocks),
        Planted("adoptUnverified", seeds: 0x1...0x80, .segments),
        Planted("applyPageTwice", seeds: 0x1...0x40, .lateComers),
        Planted("digestMissesDeletions", seeds: 0x1...0x80, .lateComers),
        Planted("scopeDropsWhatMatches", seeds: 0x1...0x200, .parts),
        Planted("outcomeWithoutJournal", seeds: 0x1...0x40, .pending),
        Planted("unboundedPages", seeds: 0x1...0x8, []),
        Planted("pastUnnoted", seeds: 0x1...0x40, .past),
        Planted("sweepForgetsExpiry", seeds: 0x1...0x40, .expiry),
        Planted("bundleUnchecked", seeds: 0x1...0x40, .bundles),
        Planted("refusedUnnoted", seeds: 0x1...0x40, .refusals),
    ]

    /// The mistake by itself.
    func bug() throws -> PlantedBugs {
        try #require(PlantedBugs.named.first { $0.name == name }).bug
    }

    /// The first seed that finds it; nil if none does.
    func firstSeed() throws -> Seed? {
        let bug = try bug()
        return seeds.lazy.map { Seed($0).with(traits) }.first { seed in
            let (settings, steps) = Nemesis.draw(seed, plantedBugs: bug)
            return World.run(settings, steps).violation != nil
        }
    }
}

/// The simulator finds the mistakes that it is there to find.
@Suite(.serialized)
struct PlantedBugTests {
    @Test(arguments: Planted.all)
    func isFound(_ planted: Planted) throws {
        let seed = try #require(try planted.firstSeed(), "no seed of \(planted.seeds) finds it")
        // It is the mistake that is found, and not something else.
        let healthy = Nemesis.draw(seed)
        let broken = Nemesis.draw(seed, plantedBugs: try planted.bug())
        #expect(healthy.steps == broken.steps)
        #expect(World.run(healthy.settings, healthy.steps).violation == nil, "seed \(seed)")
    }

    @Test func eachHasItsSeed() {
        #expect(Set(Planted.all.map(\.name)) == Set(PlantedBugs.named.map(\.name)))
    }

    /// Two records and room for one: no seed has to hit upon that.
    @Test func aPageBeyondItsBoundIsFoundAtOnce() {
        let steps = [
            Step(after: 0, action: .batch(at: 0, dataset: 0, keys: [0, 1])),
            Step(after: 0, action: .exchange(from: 1, to: 0, pageRecordsMax: 1, .fair)),
        ]
        var settings = SimulationSettings()
        #expect(World.run(settings, steps).violation == nil)
        settings.plantedBugs = .unboundedPages
        #expect(World.run(settings, steps).violation?.kind == .unbounded)
    }

    @Test func aFailingScheduleIsShrunk() throws {
        let planted = try #require(Planted.all.first)
        let seed = try #require(try planted.firstSeed())
        let (settings, steps) = Nemesis.draw(seed, plantedBugs: try planted.bug())
        let kind = try #require(World.run(settings, steps).violation).kind
        var shrinker = Shrinker(settings, kind, runsMax: 150)
        let shortest = shrinker.shortest(of: steps)
        #expect(shortest.count < steps.count / 2)
        #expect(World.run(settings, shortest).violation?.kind == kind)
    }
}
