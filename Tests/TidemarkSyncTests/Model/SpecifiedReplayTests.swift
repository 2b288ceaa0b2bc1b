import Specification
import TestSupport
import Testing
import Tidemark

/// The property: real stores that go through a schedule hold after each step what the specification
/// says, record by record, with their versions, vectors and forgotten deletions.
@Suite(.serialized)
struct SpecifiedReplayTests {
    /// A random schedule of a world, and then exchanges until nothing moves.
    ///
    /// - Returns: how many steps were taken, and whether the order within a millisecond was another
    ///   one in the end.
    /// - Throws: a ``SpecifiedStores/Difference``.
    private static func replay(
        _ explored: ExploredWorld, seed: UInt64, bugs: PlantedBugs = [], steps: Int = 7
    ) async throws -> (steps: Int, hasParted: Bool) {
        var random = SeededGenerator(seed: seed)
        let exploration = explored.exploration
        let stores = try SpecifiedStores(exploration.settings, bugs: bugs)
        var taken: [SpecStep] = []
        var possible = exploration.allSteps
        if exploration.goesBack || exploration.losesPower {
            // Often enough to be made and put back in a short schedule.
            let returns = possible.filter { $0 == .restore || $0 == .losePower }
            for _ in 0..<4 { possible += returns + (0..<3).map { .backUp(at: $0) } }
        }
        do {
            for _ in 0..<8 * steps where taken.count < steps {
                guard let step = possible.randomElement(using: &random) else { break }
                taken.append(step)
                if try await !stores.take(step) { taken.removeLast() }
            }
            try await stores.comeToRest()
        } catch let difference as SpecifiedStores.Difference {
            let words = taken.map(\.description).joined(separator: "; ")
            throw SpecifiedStores.Difference("seed \(seed): \(difference) in \(words)")
        }
        return (taken.count, stores.hasParted)
    }

    /// A schedule in which the stores once parted from the specification.
    struct Schedule: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let explored: ExploredWorld
        let steps: [SpecStep]

        static let all = [
            Schedule(
                testDescription: "a write in the millisecond after the end of one",
                explored: .crossed,
                steps: [
                    .exchange(from: 1, to: 2, cut: nil), .delete(at: 0, key: 1),
                    .exchange(from: 0, to: 1, cut: nil), .forget(at: 0),
                    .crossedExchange(from: 0, to: 2, message: 2, key: 1), .put(at: 2, key: 0),
                    .put(at: 0, key: 0),
                ]),
            Schedule(
                testDescription: "what a fresh start writes anew for a dispute is asked about",
                explored: .back,
                steps: [
                    .exchange(from: 0, to: 1, cut: nil), .delete(at: 0, key: 0), .backUp(at: 0),
                    .exchange(from: 1, to: 0, cut: nil), .restore, .forget(at: 1),
                    .exchange(from: 0, to: 2, cut: nil),
                ]),
            Schedule(
                testDescription: "who disputes an id tells nothing of its forgotten deletions",
                explored: .back,
                steps: [
                    .delete(at: 0, key: 1), .backUp(at: 0), .delete(at: 1, key: 0),
                    .delete(at: 2, key: 1), .exchange(from: 2, to: 0, cut: nil), .restore,
                    .forget(at: 2),
                ]),
        ]
    }

    @Test(arguments: Schedule.all)
    func storesDoAsSpecified(in schedule: Schedule) async throws {
        let stores = try SpecifiedStores(schedule.explored.exploration.settings)
        for step in schedule.steps {
            #expect(try await stores.take(step), "\(step) changes nothing")
        }
        try await stores.comeToRest()
        #expect(!stores.hasParted)
    }

    @Test(arguments: ExploredWorld.all)
    func realStoresDoAsSpecified(_ explored: ExploredWorld) async throws {
        print("realStoresDoAsSpecified, \(explored.name): TIDEMARK_SEED=\(baseSeed)")
        var different: [SpecifiedStores.Difference] = []
        var steps = 0
        var parted = 0
        for schedule in schedules(60) {
            do {
                let replayed = try await Self.replay(explored, seed: baseSeed &+ schedule)
                steps += replayed.steps
                parted += replayed.hasParted ? 1 : 0
            } catch let difference as SpecifiedStores.Difference {
                different.append(difference)
            }
        }
        let shown = different.prefix(5).map(\.description).joined(separator: "\n")
        #expect(different.isEmpty, "\(different.count) schedules, such as\n\(shown)")
        // Schedules in which nothing happens would prove nothing.
        #expect(steps > 200 && parted <= schedules(6).count)
    }

    /// A mistake in the product, and the schedules in which the stores part from the specification.
    struct Planted: Sendable, CustomTestStringConvertible {
        let name: String
        let bug: PlantedBugs
        let explored: ExploredWorld

        var testDescription: String { name }

        init(_ name: String, _ bug: PlantedBugs, _ explored: ExploredWorld) {
            self.name = name
            self.bug = bug
            self.explored = explored
        }

        static let all = [
            Planted("skipVectorJoin", .skipVectorJoin, .whole),
            Planted("joinVectorWithFirstPage", .joinVectorWithFirstPage, .cut),
            Planted("reuseDot", .reuseDot, .back),
            Planted("advanceCursorPastCap", .advanceCursorPastCap, .cut),
            Planted("ignoreLifecycle", .ignoreLifecycle, .whole),
            Planted("applyConflictUnasked", .applyConflictUnasked, .crossed),
            Planted("collectTombstonesEarly", .collectTombstonesEarly, .whole),
            Planted("applyPageTwice", .applyPageTwice, .whole),
            Planted("digestMissesDeletions", .digestMissesDeletions, .whole),
            Planted("unboundedPages", .unboundedPages, .cut),
        ]
    }

    /// The comparison can fail: bugs that are planted in the product show.
    @Test(arguments: Planted.all)
    func aPlantedBugShows(_ planted: Planted) async throws {
        for seed in UInt64(1)...200 {
            do {
                _ = try await Self.replay(planted.explored, seed: seed, bugs: planted.bug)
            } catch let difference as SpecifiedStores.Difference {
                print("\(planted.name): \(difference)")
                return
            }
        }
        Issue.record("no schedule shows \(planted.name)")
    }
}
