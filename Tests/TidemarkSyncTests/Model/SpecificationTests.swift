import Foundation
import Specification
import Testing

// The property: three replicas that write two keys, exchange, forget deletions, break off, go back
// in time and lose power, in every order up to a number of steps, never use a dot twice, never
// claim to have seen what they lack, and in the end hold the same: no write is lost, no deletion
// undone.
//
//     world ── each step ──▶ states not met before ──▶ invariants ── each step ──▶ ...
//                                └── all exchange until nothing moves ──▶ invariants
//
// `TIDEMARK_DEPTH` of the environment, 5...7, is how many steps of whole exchanges are gone
// through; with 7 there is one step more of all else, too. Each step takes ten times as long.

private let wantedDepth: Int = {
    let text = ProcessInfo.processInfo.environment["TIDEMARK_DEPTH"]
    return text.flatMap { Int($0) } ?? 5
}()

/// How many steps more than usual.
private let extraDepth = max(0, wantedDepth - 6)

/// What can happen beside writes and whole exchanges, and how many steps are gone through.
struct ExploredWorld: Sendable, CustomTestStringConvertible {
    let name: String
    let depth: Int
    let exploration: SpecExploration

    var testDescription: String { name }

    private init(_ name: String, depth: Int, _ change: (inout SpecExploration) -> Void) {
        self.name = name
        self.depth = depth
        var exploration = SpecExploration()
        change(&exploration)
        self.exploration = exploration
    }

    /// Deletions are forgotten with age.
    static let whole = ExploredWorld(
        "whole exchanges", depth: min(6, max(5, wantedDepth))
    ) { _ in }

    /// Deletions are forgotten once all peers have them.
    static let patient = ExploredWorld("deletions wait for all peers", depth: 5) {
        $0.settings.forgetsByAge = false
    }

    /// Pages have one record each, and any of the first messages or answers may be lost.
    static let cut = ExploredWorld("exchanges cut off", depth: 4) {
        $0.settings.pageRecordsMax = 1
        for message in 1...6 {
            for losesAnswer in [false, true] {
                $0.cuts.append(SpecCut(message: message, losesAnswer: losesAnswer))
            }
        }
    }

    /// The responder writes in the middle of an exchange.
    static let crossed = ExploredWorld("writes in the middle", depth: 4) {
        $0.crossings = Array(2...6)
    }

    /// One replica is put back to a former state of itself.
    static let back = ExploredWorld("a disk that goes back", depth: 4) {
        $0.goesBack = true
        $0.settings.hasBatons = true
    }

    /// One replica loses what it has not synced.
    static let powerLoss = ExploredWorld("a loss of power", depth: 4) {
        $0.losesPower = true
        $0.settings.hasBatons = true
    }

    static let all = [whole, patient, cut, crossed, back, powerLoss]
}

@Suite(.serialized)
struct SpecificationTests {
    @Test(arguments: ExploredWorld.all)
    func noScheduleBreaksAnInvariant(_ explored: ExploredWorld) {
        let result = explored.exploration.run(depth: explored.depth + extraDepth)
        print("\(explored.name): \(result.stateCount) states, by steps \(result.statesPerDepth)")
        let words = result.schedule.map(\.description).joined(separator: "\n")
        #expect(result.violation == nil, "\(words)")
        // Fewer would be a step that is not taken any more.
        #expect(result.stateCount > 50_000)
    }

    /// A mistake, and where it comes to light within how many steps.
    struct Mistaken: Sendable, CustomTestStringConvertible {
        let name: String
        let explored: ExploredWorld
        let depth: Int
        let kind: SpecWorld.Violation.Kind

        var testDescription: String { name }

        init(
            _ name: String, _ explored: ExploredWorld, depth: Int, _ kind: SpecWorld.Violation.Kind
        ) {
            self.name = name
            self.explored = explored
            self.depth = depth
            self.kind = kind
        }

        static let all = [
            // Those that can be planted in the product, too: see `PlantedBugs`.
            Mistaken("skipVectorJoin", .whole, depth: 1, .unequal),
            Mistaken("joinVectorWithFirstPage", .cut, depth: 2, .unequal),
            Mistaken("skipSyncBeforeSend", .powerLoss, depth: 4, .dotUsedTwice),
            Mistaken("reuseDot", .back, depth: 4, .unequal),
            Mistaken("checkpointApartFromRecords", .cut, depth: 2, .vectorClaimsTooMuch),
            Mistaken("advanceCursorPastCap", .cut, depth: 2, .unequal),
            Mistaken("applyConflictUnasked", .crossed, depth: 2, .vectorClaimsTooMuch),
            Mistaken("collectTombstonesEarly", .whole, depth: 2, .vectorClaimsTooMuch),
            Mistaken("applyPageTwice", .whole, depth: 2, .dotOfAnother),
            Mistaken("unboundedPages", .cut, depth: 2, .pageTooLarge),
            // Others.
            Mistaken("winnerForgetsTheLoser", .whole, depth: 2, .contended),
            Mistaken("firstWriterWins", .whole, depth: 2, .lostWrite),
            Mistaken("nobodyIsLate", .whole, depth: 4, .contended),
            Mistaken("nothingIsBuried", .whole, depth: 5, .revived),
            Mistaken("forkedDisputesNothing", .back, depth: 3, .contended),
            Mistaken("writesDescendFromTheVectorAlone", .cut, depth: 4, .contended),
        ]
    }

    /// Each check can fail.
    @Test(arguments: Mistaken.all)
    func aMistakeIsFound(_ mistaken: Mistaken) throws {
        let named = SpecMistakes.named.first { $0.name == mistaken.name }
        var exploration = mistaken.explored.exploration
        exploration.settings.mistakes = try #require(named).mistake
        let result = exploration.run(depth: mistaken.depth)
        let violation = try #require(result.violation)
        #expect(violation.kind == mistaken.kind, "\(violation)")
        let words = result.schedule.map(\.description).joined(separator: "; ")
        print("\(mistaken.name): \(violation) after \(result.stateCount) states: \(words)")
    }

    @Test func eachMistakeHasItsWorld() {
        #expect(Set(Mistaken.all.map(\.name)) == Set(SpecMistakes.named.map(\.name)))
    }
}
