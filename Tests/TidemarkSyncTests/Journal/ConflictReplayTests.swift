import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// Settled conflicts put to another policy, dry and in earnest.
struct ConflictReplayTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    private static let key = Array("key".utf8)

    private static let both = MergePolicy.custom { conflict in
        .value((conflict.local.value ?? []) + (conflict.remote.value ?? []))
    }

    private func settleConflict(
        _ policy: MergePolicy = .keepLocal, _ journal: SyncJournalOptions = SyncJournalOptions(),
        key: String = "key"
    ) async throws {
        try a.dataset().put("base", for: key)
        try await a.dataset().synchronize(with: b.transport)
        try a.dataset().put("ours", for: key)
        b.clock.putForward(bySeconds: 1)
        try b.dataset().put("theirs", for: key)
        var options = SyncOptions(policy: policy)
        options.journal = journal
        try await a.dataset().synchronize(with: b.transport, options: options)
    }

    private func replay(
        _ policy: MergePolicy, isApplied: Bool = false
    ) async throws -> ReplayedConflict {
        let all = try await a.dataset().replayConflicts(with: policy, isApplied: isApplied)
        return try #require(all.first)
    }

    @Test func aDryRunSaysWhatWouldComeOutAndWritesNothing() async throws {
        try await settleConflict()
        let before = (try Contents(a.dataset()), try a.dataset().settledConflicts())
        let same = try await replay(.keepLocal)
        #expect(same.verdict == .same && same.isCurrent && same.effect == .nothing)
        let remote = try await replay(.keepRemote)
        let theirs = Array("theirs".utf8)
        #expect(remote.verdict == .other(decision: .remote, value: theirs))
        #expect(remote.effect == .nothing)
        // The later one is B's.
        #expect(
            try await replay(.lastWriterWins).verdict == .other(decision: .remote, value: theirs))
        #expect(
            try await replay(.custom { _ in .delete }).verdict
                == .other(decision: .deleted, value: nil))
        #expect(try await replay(.leavePending).verdict == .undecided(.left))
        #expect(try await replay(.custom { _ in .stop }).verdict == .undecided(.stopped))
        #expect(try (Contents(a.dataset()), a.dataset().settledConflicts()) == before)
    }

    @Test func theHandlerIsToldOfTheConflictAsItWas() async throws {
        try await settleConflict()
        try a.dataset().put("something else", for: "key")
        let told = Box<Conflict>()
        _ = try await replay(
            .custom { conflict in
                told.set(conflict)
                return .keepLocal
            })
        let conflict = try #require(told.value)
        #expect(conflict.ancestor?.valueText == "base")
        #expect(conflict.local.valueText == "ours" && conflict.remote.valueText == "theirs")
        #expect(conflict.dataset == "notes" && conflict.key == Self.key)
    }

    @Test func inEarnestTheOutcomeIsWrittenAndHandedOver() async throws {
        try await settleConflict()
        let replayed = try await replay(Self.both, isApplied: true)
        let expected = Array("ourstheirs".utf8)
        #expect(replayed.verdict == .other(decision: .merged, value: expected))
        let record = try #require(try a.dataset().record(for: "key"))
        #expect(replayed.effect == .written(record.version.dot))
        #expect(record.value == expected)
        #expect(record.version.vector.contains(replayed.settled.write))
        let entries = try a.dataset().settledConflicts()
        #expect(entries.map(\.policy) == [.replay, .keepLocal])
        #expect(entries[0].write == record.version.dot)
        #expect(entries[0].local == entries[1].local && entries[0].remote == entries[1].remote)
        let result = try await a.dataset().synchronize(
            with: b.transport, options: SyncOptions(policy: .leavePending))
        #expect(result.conflicts == 0)
        try expectEqual([a, b])
        // Replayed once more it is the same, and the older entry is no longer current.
        let again = try await a.dataset().replayConflicts(with: Self.both, isApplied: true)
        #expect(again.map(\.isCurrent) == [true, false])
        #expect(again.map(\.effect) == [.nothing, .changedSince])
    }

    /// What is told is the replay's own write, whatever is put at the same time.
    @Test func theWriteThatIsToldIsTheReplaysOwn() async throws {
        let rounds = 40
        for round in 0..<rounds { try await settleConflict(key: "key \(round)") }
        let dataset = try a.dataset()
        let writer = Task.detached {
            // The newest conflict is replayed first.
            for round in (0..<rounds).reversed() {
                for _ in 0..<20 { try dataset.put("in between", for: "key \(round)") }
            }
        }
        let all = try await dataset.replayConflicts(with: Self.both, isApplied: true)
        try await writer.value
        let expected = Array("ourstheirs".utf8)
        for replayed in all {
            guard case .written(let dot) = replayed.effect else {
                #expect(replayed.effect == .changedSince)
                continue
            }
            let version = try dataset.history(of: replayed.settled.key).first {
                $0.version.dot == dot
            }
            #expect(version?.value == expected)
        }
    }

    @Test func theDotsOfABatchAreInItsOrder() throws {
        let dataset = try a.dataset()
        var batch = ReplicationBatch()
        let seen = Version(
            dot: Dot(replica: b.store.replicaID, counter: 1), vector: VersionVector(),
            time: HybridTime(rawValue: 1 << 20))
        batch.writes = ["x", "y"].map { key in
            ReplicatedWrite(
                key: Array(key.utf8),
                content: .resolve(value: Array(key.utf8), seen: seen, expiresAt: nil),
                expected: nil)
        }
        let dots = try #require(try dataset.replicated(batch))
        let stored = try ["x", "y"].compactMap { try dataset.record(for: $0)?.version.dot }
        #expect(dots == stored)
        // The records have moved on.
        #expect(try dataset.replicated(batch) == nil)
    }

    @Test func whatWasChangedSinceIsLeftAlone() async throws {
        try await settleConflict()
        try a.dataset().put("newer", for: "key")
        let replayed = try await replay(.keepRemote, isApplied: true)
        #expect(!replayed.isCurrent && replayed.effect == .changedSince)
        #expect(try a.dataset().text("key") == "newer")
    }

    @Test func aHandlerThatThrowsLeavesItsConflictUndecided() async throws {
        struct Refusal: Error, CustomStringConvertible {
            let description = "no"
        }
        for key in ["x", "y"] { try await settleConflict(key: key) }
        let policy = MergePolicy.custom { conflict in
            if conflict.local.keyText == "x" { throw Refusal() }
            return .keepRemote
        }
        let replayed = try await a.dataset().replayConflicts(with: policy, isApplied: true)
        #expect(replayed.map(\.settled.keyText) == ["y", "x"])
        #expect(replayed[1].verdict == .undecided(.failed("no")))
        #expect(try a.dataset().text("y") == "theirs")
        #expect(try a.dataset().text("x") == "ours")
    }

    @Test func onlyTheNewestOfAKeyIsWrittenAndOthersAreSelected() async throws {
        for key in ["x", "y", "x"] { try await settleConflict(key: key) }
        let all = try await a.dataset().replayConflicts(with: .keepRemote)
        #expect(all.map(\.settled.keyText) == ["x", "y", "x"])
        #expect(all.map(\.isCurrent) == [true, true, false])
        let one = try await a.dataset().replayConflicts(
            with: .keepRemote, of: Array("y".utf8), isApplied: true)
        #expect(one.count == 1)
        #expect(try a.dataset().text("y") == "theirs")
        #expect(try a.dataset().text("x") == "ours")
        let late = try await a.dataset().replayConflicts(
            with: .keepRemote, since: all[0].settled.time)
        #expect(late.allSatisfy { $0.settled.time >= all[0].settled.time })
    }

    @Test func whatIsKeptNowhereCannotBeDecided() async throws {
        try await settleConflict(.keepLocal, SyncJournalOptions(valueBytesMax: 0))
        // The journal has left the values out, and the history still has them.
        let replayed = try await replay(.keepRemote)
        #expect(replayed.verdict == .other(decision: .remote, value: Array("theirs".utf8)))
        try a.store.compact()
        #expect(try await replay(.keepRemote).verdict == .notKept)
    }

    /// Over random conflicts: put to the policy that settled them, all come out the same; put to
    /// another one and applied, each key holds what that one makes of its newest conflict.
    @Test(arguments: 0..<4)
    func theSamePolicyComesToTheSame(_ run: UInt64) async throws {
        let seed = Seed.drawn().rawValue &+ run
        var random = SeededGenerator(seed: seed)
        for _ in 0..<12 {
            for _ in 0..<Int.random(in: 1..<8, using: &random) {
                let replica = Bool.random(using: &random) ? a : b
                let key = "key \(Int.random(in: 0..<5, using: &random))"
                try replica.dataset().put("\(random.next() % 1_000)", for: key)
            }
            _ = try a.dataset()
            try await a.dataset().synchronize(
                with: b.transport, options: SyncOptions(policy: Self.both))
        }
        let same = try await a.dataset().replayConflicts(with: Self.both)
        #expect(!same.isEmpty, "seed \(seed)")
        #expect(same.allSatisfy { $0.verdict == .same }, "seed \(seed)")
        let applied = try await a.dataset().replayConflicts(with: .keepLocal, isApplied: true)
        for replayed in applied where replayed.isCurrent {
            let value = try a.dataset().get(replayed.settled.key)
            #expect(value == replayed.settled.local.content.value, "seed \(seed)")
        }
        try await a.dataset().synchronize(with: b.transport)
        try expectEqual([a, b], "seed \(seed)")
    }
}
