import Simulation
import TestSupport
import Testing
import Tidemark

/// A mistake on purpose, and a seed that brings it to light.
struct Planted: Sendable, CustomTestStringConvertible {
    let name: String
    let seed: UInt64

    var testDescription: String { name }

    static let all = [
        Planted(name: "skipVectorJoin", seed: 0x1),
        Planted(name: "joinVectorWithFirstPage", seed: 0x1),
        Planted(name: "skipSyncBeforeSend", seed: 0x6B),
        Planted(name: "reuseDot", seed: 0x1C),
        Planted(name: "checkpointApartFromRecords", seed: 0x6F),
        Planted(name: "advanceCursorPastCap", seed: 0x1),
        Planted(name: "ignoreLifecycle", seed: 0x4D),
        Planted(name: "applyConflictUnasked", seed: 0xE),
        Planted(name: "collectTombstonesEarly", seed: 0x17),
    ]
}

/// The simulator finds the mistakes that it is there to find.
@Suite(.serialized)
struct PlantedBugTests {
    @Test(arguments: Planted.all)
    func isFound(_ planted: Planted) throws {
        let bug = try #require(PlantedBugs.named.first { $0.name == planted.name }).bug
        let seed = Seed(planted.seed)
        let (settings, steps) = Nemesis.draw(seed, plantedBugs: bug)
        let violation = World.run(settings, steps).violation
        #expect(violation != nil)
        // It is the mistake that is found, and not something else.
        let healthy = Nemesis.draw(seed)
        #expect(healthy.steps == steps)
        #expect(World.run(healthy.settings, steps).violation == nil)
    }

    @Test func eachHasItsSeed() {
        #expect(Set(Planted.all.map(\.name)) == Set(PlantedBugs.named.map(\.name)))
    }

    @Test func aFailingScheduleIsShrunk() throws {
        let planted = try #require(Planted.all.first)
        let bug = try #require(PlantedBugs.named.first { $0.name == planted.name }).bug
        let (settings, steps) = Nemesis.draw(Seed(planted.seed), plantedBugs: bug)
        let kind = try #require(World.run(settings, steps).violation).kind
        var shrinker = Shrinker(settings, kind, runsMax: 150)
        let shortest = shrinker.shortest(of: steps)
        #expect(shortest.count < steps.count / 2)
        #expect(World.run(settings, shortest).violation?.kind == kind)
    }
}
