import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// A store that went back in time while something is in one of its lists, or is refused: the
/// dispute comes to an end, everything else is exchanged, and nothing is lost.
///
///     a  ──1──backup──2──3──✗
///               └──────────2'──3'──4'──      2 and 3 are the peer's, too
///     the list of a or of its peer:  one record that fails, or a conflict that waits
@Suite(.serialized)
struct DisputeListTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    private let leaving = SyncOptions(policy: .leavePending)

    @discardableResult
    private func exchange(
        _ from: TestReplica, _ to: TestReplica, _ options: SyncOptions = SyncOptions()
    ) async throws -> SyncResult {
        try await from.dataset().synchronize(with: to.transport, options: options)
    }

    private func expectError(
        _ code: SyncError.Code, _ from: TestReplica, _ to: TestReplica, _ options: SyncOptions
    ) async throws {
        let error = await #expect(throws: SyncError.self) {
            try await exchange(from, to, options)
        }
        #expect(error?.code == code)
    }

    private func disputed(_ replica: TestReplica) throws -> [ReplicaID] {
        try BatonBook(replica.dataset()).disputed
    }

    /// What a replica gave to another one is gone from it, and it wrote more since.
    private func goBack(_ replica: TestReplica, knownTo other: TestReplica) async throws {
        try replica.backUp()
        try fill(replica, 10..<12, "lost")
        try await exchange(replica, other, leaving)
        try replica.restore()
        try fill(replica, 30..<34, "again")
    }

    // MARK: - Records that fail

    /// - Parameter isShared: whether what is refused has the key of a doubtful record of ours.
    @Test(arguments: [false, true])
    func aForkedAskerThatRefusesARecordSettlesTheRest(isShared: Bool) async throws {
        try fill(a, 0..<3, "first")
        try await exchange(a, b)
        try await goBack(a, knownTo: b)
        try b.dataset().put("bad", for: "key 20")
        try b.dataset().put("fine", for: "other")
        if isShared { try a.dataset().put("ours", for: "key 20") }
        let id = a.store.replicaID
        let gate = RecordGate()
        try await expectError(.recordRefused, a, b, gate.options(pageRecordsMax: 3))
        #expect(a.store.replicaID != id)
        #expect(try disputed(a).isEmpty)
        for replica in [a, b] {
            try expectText(replica, 10..<12, "lost")
            try expectText(replica, 30..<34, "again")
            #expect(try replica.dataset().text("other") == "fine")
        }
        #expect(try a.dataset().text("key 20") == (isShared ? "ours" : nil))
        if isShared {
            let ours = try #require(try a.dataset().record(for: "key 20"))
            #expect(ours.version.dot.replica == a.store.replicaID)
        }
        let bad = try #require(try b.dataset().record(for: "key 20")?.version.dot)
        #expect(try !a.dataset().vector.contains(bad))
        // It fails no more by itself, and more goes both ways.
        try fill(a, 40..<42, "more")
        try fill(b, 50..<52, "more")
        let result = try await exchange(a, b, gate.options(pageRecordsMax: 3))
        #expect(result.failedCount == 0 && !result.isComplete)
        try expectText(b, 40..<42, "more")
        try expectText(a, 50..<52, "more")
        gate.open()
        for _ in 0..<2 {
            try a.dataset().retryFailedRecords()
            try await exchange(a, b, gate.options(pageRecordsMax: 3))
        }
        #expect(try a.dataset().failedRecords().isEmpty)
        #expect(try !a.dataset().holdsBackVectors())
        try expectEqual([a, b])
    }

    /// What is refused may have the dot of another write, so the peer does not take its id for
    /// settled; but all else is exchanged, and it ends when the record is taken in.
    @Test func aRecordOfAForkedPeerThatIsRefusedHoldsUpNothingElse() async throws {
        try fill(b, 0..<3, "first")
        try await exchange(a, b)
        try b.backUp()
        try fill(b, 10..<12, "lost")
        try await exchange(a, b)
        try b.restore()
        try b.dataset().put("bad", for: "key 20")
        try fill(b, 30..<34, "again")
        try fill(a, 40..<42, "ours")
        let gate = RecordGate()
        for _ in 0..<2 {
            try await expectError(.recordRefused, a, b, gate.options(pageRecordsMax: 3))
            for replica in [a, b] {
                try expectText(replica, 10..<12, "lost")
                try expectText(replica, 30..<34, "again")
                try expectText(replica, 40..<42, "ours")
            }
            #expect(try a.dataset().text("key 20") == nil)
            #expect(try !disputed(b).isEmpty)
        }
        gate.open()
        try await exchange(a, b, gate.options(pageRecordsMax: 3))
        #expect(try a.dataset().failedRecords(includingDropped: true).isEmpty)
        #expect(try disputed(b).isEmpty)
        try await exchange(a, b)
        #expect(try a.dataset().text("key 20") == "bad")
        try expectEqual([a, b])
        // Also for one that had seen the other write under its dot.
        try await exchange(c, a)
        try expectEqual([a, b, c])
    }

    /// What failed before, with another peer, is no reason for the dispute to go on.
    @Test func anOldFailureDoesNotHoldUpADispute() async throws {
        try fill(a, 0..<3, "first")
        try await exchange(a, b)
        try b.dataset().put("bad", for: "key 20")
        let gate = RecordGate()
        try await expectError(.recordRefused, a, b, gate.options(pageRecordsMax: 3))
        try await goBack(a, knownTo: c)
        let id = a.store.replicaID
        let result = try await exchange(a, c)
        #expect(result.isComplete && a.store.replicaID != id)
        #expect(try disputed(a).isEmpty)
        try await exchange(a, c)
        try expectEqual([a, c])
        try expectText(c, 10..<12, "lost")
        try expectText(c, 30..<34, "again")
        #expect(try a.dataset().failedRecords().count == 1)
        try a.dataset().retryFailedRecords()
        for _ in 0..<2 {
            for (from, to) in [(a, b), (a, c), (b, c)] { try await exchange(from, to) }
        }
        #expect(try a.dataset().failedRecords().isEmpty)
        try expectEqual([a, b, c])
    }

    /// As long as the failure lasts nothing is claimed of the former id, and what is written over a
    /// record of it says nothing of it. When the id is claimed, that record counts as seen.
    @Test func whatIsWrittenBetweenADisputeAndItsClaimComesToAnEnd() async throws {
        try fill(a, 0..<3, "first")
        for peer in [b, c] { try await exchange(a, peer) }
        try b.dataset().put("bad", for: "key 20")
        let gate = RecordGate()
        try await expectError(.recordRefused, a, b, gate.options(pageRecordsMax: 3))
        try a.backUp()
        try a.dataset().put("theirs", for: "key 1")
        try await exchange(c, a)
        try a.restore()
        try a.dataset().put("again", for: "key 30")
        for _ in 0..<2 { try await exchange(c, a) }
        #expect(try disputed(a).isEmpty && a.dataset().text("key 1") == "theirs")
        try a.dataset().put("ours", for: "key 1")
        try await exchange(c, b)
        gate.open()
        try a.dataset().retryFailedRecords()
        for _ in 0..<2 { try await exchange(a, c) }
        for _ in 0..<2 { try await exchange(b, c) }
        #expect(try c.dataset().text("key 1") == "ours")
        try expectEqual([a, b, c])
    }

    /// Likewise where the forked side with the entry answers.
    @Test func aForkedResponderWithAnOldFailureIsSettled() async throws {
        try fill(a, 0..<3, "first")
        try await exchange(a, b)
        try b.dataset().put("bad", for: "key 20")
        try await expectError(.recordRefused, a, b, RecordGate().options(pageRecordsMax: 3))
        try await goBack(a, knownTo: c)
        for _ in 0..<2 { try await exchange(c, a) }
        #expect(try disputed(a).isEmpty)
        try expectEqual([a, c])
    }

    /// Over random writes of three replicas, of which one goes back once, and some of which nobody
    /// takes for a while: in the end all hold the same, no id is disputed, and what was written
    /// last and never taken back is there.
    @Test(arguments: 0..<6)
    func aForkAmongFailuresComesToAnEnd(_ run: UInt64) async throws {
        let seed = Seed.drawn().rawValue &+ run
        var random = SeededGenerator(seed: seed)
        let replicas = [a, b, c]
        for replica in replicas { _ = try replica.dataset() }
        let gate = RecordGate()
        func exchange(_ from: TestReplica, _ to: TestReplica) async throws {
            var options = gate.options()
            options.pageRecordsMax = Int.random(in: 1..<6, using: &random)
            do {
                try await from.dataset().synchronize(with: to.transport, options: options)
            } catch let error as SyncError {
                let isOfRecords = error.code == .recordRefused || error.code == .conflictPending
                #expect(isOfRecords, "seed \(seed): \(error.code): \(error)")
            }
        }
        var kept: Set<String> = []
        for step in 0..<60 {
            if step == 20 { try a.backUp() }
            if step == 40 { try a.restore() }
            let from = replicas[Int.random(in: 0..<3, using: &random)]
            if Bool.random(using: &random) {
                let isBad = Int.random(in: 0..<5, using: &random) == 0
                // Each has keys of its own beside those that all write.
                let isShared = Bool.random(using: &random)
                let key = isShared ? "key \(step % 4)" : "key \(step) of \(from.name)"
                try from.dataset().put("\(isBad ? "bad" : "fine") \(step)", for: key)
                // What A wrote in between may have gone with its store.
                if !isShared, from !== a || !(20..<40).contains(step) { kept.insert(key) }
            } else {
                let others = replicas.filter { $0 !== from }
                try await exchange(from, others[Int.random(in: 0..<2, using: &random)])
            }
        }
        gate.open()
        for _ in 0..<4 {
            for (from, to) in [(a, b), (b, c), (c, a)] {
                try from.dataset().retryFailedRecords()
                try await exchange(from, to)
                try to.dataset().retryFailedRecords()
                try await exchange(to, from)
            }
        }
        try expectEqual(replicas, "seed \(seed)")
        for replica in replicas { #expect(try disputed(replica).isEmpty, "seed \(seed)") }
        for key in kept { #expect(try a.dataset().text(key) != nil, "seed \(seed): \(key)") }
    }

    // MARK: - Conflicts that wait

    /// A conflict with B waits on A.
    private func makeConflict() async throws {
        try a.dataset().put("base", for: "key")
        for peer in [b, c] { try await exchange(a, peer) }
        try a.dataset().put("ours", for: "key")
        try b.dataset().put("theirs", for: "key")
        try await expectError(.conflictPending, a, b, leaving)
    }

    /// What comes in the dispute descends from both sides of the conflict.
    @Test func whatWaitedAndIsSupersededInADisputeDoesNotHoldItUp() async throws {
        try await makeConflict()
        try a.backUp()
        try fill(a, 10..<12, "lost")
        try await exchange(a, c, leaving)
        let both = MergePolicy.custom { _ in .value(Array("both".utf8)) }
        try await exchange(c, b, SyncOptions(policy: both))
        try a.restore()
        try fill(a, 30..<34, "again")
        #expect(try a.dataset().pendingConflicts().count == 1)
        let id = a.store.replicaID
        try await exchange(a, c)
        #expect(a.store.replicaID != id)
        #expect(try disputed(a).isEmpty)
        #expect(try PendingBook(a.dataset()).entries.isEmpty)
        for _ in 0..<2 {
            for (from, to) in [(a, b), (a, c), (b, c)] { try await exchange(from, to) }
        }
        try expectEqual([a, b, c])
        #expect(try a.dataset().text("key") == "both")
        try expectText(a, 10..<12, "lost")
        try expectText(b, 30..<34, "again")
    }

    /// As without a dispute, the next policy settles what the one before has left; also what stands
    /// under a dot that the other side may have given to another write since.
    @Test(arguments: [false, true])
    func theNextPolicySettlesWhatWaitsInADispute(isDoubtful: Bool) async throws {
        if isDoubtful {
            try a.dataset().put("ours", for: "key")
            try b.dataset().put("theirs", for: "key")
            try b.backUp()
            try await expectError(.conflictPending, a, b, leaving)
            try b.restore()
            try fill(b, 30..<34, "again")
        } else {
            try await makeConflict()
            try await goBack(a, knownTo: c)
        }
        let (forked, peer) = isDoubtful ? (b, b) : (a, c)
        let id = forked.store.replicaID
        let uniting = SyncOptions(policy: .custom { .value(unitedText(of: $0)) })
        try await exchange(a, peer, uniting)
        #expect(forked.store.replicaID != id)
        #expect(try disputed(forked).isEmpty)
        #expect(try PendingBook(a.dataset()).entries.isEmpty)
        for _ in 0..<2 {
            for other in [b, c] { try await exchange(a, other, uniting) }
        }
        try expectEqual([a, b, c])
        // What was there before may be united with both once more.
        let parts = try a.dataset().text("key")?.split(separator: "+") ?? []
        #expect(parts.contains("ours") && parts.contains("theirs"))
        try expectText(c, 30..<34, "again")
    }

    /// One that nothing supersedes holds it up until it is settled.
    @Test func whatWaitsInADisputeCanBeSettled() async throws {
        try await makeConflict()
        try await goBack(a, knownTo: c)
        for _ in 0..<2 {
            try await expectError(.conflictPending, a, c, leaving)
            try expectText(a, 10..<12, "lost")
        }
        #expect(try a.dataset().settle(Array("key".utf8), with: .keepRemote))
        try await exchange(a, c, leaving)
        #expect(try disputed(a).isEmpty)
        try await exchange(a, b, leaving)
        try await exchange(a, c, leaving)
        try expectEqual([a, b, c])
        #expect(try c.dataset().text("key") == "theirs")
        try expectText(b, 30..<34, "again")
    }
}
