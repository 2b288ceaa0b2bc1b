import Testing
import Tidemark

@testable import TidemarkSync

// The property: what a store writes by itself, or because somebody has decided about something
// else, does not overwrite what is held of its key. When the date has come, that counts.
//
//     b  ── key: future (in an hour) ──┐
//     d  ── key: ours ─────────────────┴── a: ours ── writes it anew ── ... an hour later: future
struct UnheldClaimsTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica
    let d: TestReplica
    private static let key = Array("key".utf8)
    private let hour: UInt64 = 3_600

    init() throws {
        (a, b, c) = try TestReplica.three()
        d = try TestReplica("d", in: a.directory)
        b.clock.putForward(bySeconds: hour)
    }

    private func held(_ replica: TestReplica) throws -> [String] {
        try replica.dataset().quarantined().map { $0.record.valueText ?? "(deleted)" }.sorted()
    }

    /// Hands over what a replica has, to one that answers and so asks no policy.
    private func push(_ from: TestReplica, _ to: TestReplica) async throws {
        try await from.dataset().synchronize(with: to.transport)
    }

    /// a holds what b wrote, beside a record that has not seen it and that it has not seen.
    private func hold() async throws {
        try put("future", b)
        try put("ours", d)
        try await push(b, a)
        try await push(d, a)
        #expect(try a.dataset().text("key") == "ours" && held(a) == ["future"])
    }

    private func expectFutureToWin() throws {
        #expect(try held(a) == ["future"])
        a.clock.putForward(bySeconds: 4 * hour)
        try a.dataset().admitDue()
        #expect(try a.dataset().text("key") == "future" && held(a) == [])
    }

    @Test func onlyOfItsOwnKeyNothingHeldIsClaimed() async throws {
        try await hold()
        let dot = try #require(try a.dataset().quarantined().first).record.version.dot
        let claims = try UnheldClaims(a.dataset())
        #expect(!claims[Self.key].contains(dot))
        #expect(claims[Array("other".utf8)].contains(dot))
        // As ever, who writes beside a held write overwrites it.
        try put("over", a)
        #expect(try held(a) == [])
    }

    @Test func aConflictThatIsDecidedByHandLeavesWhatIsHeld() async throws {
        try await hold()
        try put("theirs", c)
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(
                with: c.transport, options: SyncOptions(policy: .leavePending))
        }
        #expect(error?.code == .conflictPending)
        #expect(try a.dataset().settle(Self.key, with: .keepLocal))
        try expectFutureToWin()
    }

    @Test func theSameOfOneThatIsGiven() async throws {
        try await hold()
        try put("theirs", c)
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(
                with: c.transport, options: SyncOptions(policy: .leavePending))
        }
        let waiting = try #require(try a.dataset().pendingConflicts(of: Self.key).first)
        try a.dataset().settle(waiting.conflict, as: .value(Array("both".utf8)))
        #expect(try a.dataset().text("key") == "both")
        try expectFutureToWin()
    }

    /// The outcome is written once more, by another policy and long after.
    @Test func aConflictThatIsReplayedLeavesWhatIsHeld() async throws {
        try put("ours", a)
        try put("theirs", c)
        try await a.dataset().synchronize(
            with: c.transport, options: SyncOptions(policy: .keepLocal))
        try put("future", b)
        try await push(b, a)
        let replayed = try await a.dataset().replayConflicts(with: .keepRemote, isApplied: true)
        guard case .written? = replayed.first?.effect else {
            Issue.record("\(replayed)")
            return
        }
        #expect(try a.dataset().text("key") == "theirs")
        try expectFutureToWin()
    }

    /// Of two that are held of a key, an operator decides about one.
    @Test(arguments: [true, false])
    func whatAnOperatorDecidesIsAboutOneOfThem(_ counts: Bool) async throws {
        b.clock.putForward(bySeconds: 2 * hour)
        c.clock.putForward(bySeconds: hour)
        try put("future", b)
        try put("sooner", c)
        try await push(b, a)
        try await push(c, a)
        #expect(try held(a) == ["future", "sooner"])
        let sooner = try a.dataset().quarantined().first { $0.record.valueText == "sooner" }
        let write = try #require(sooner)
        if counts {
            try a.dataset().release(write)
        } else {
            try a.dataset().discard(write)
        }
        #expect(try a.dataset().text("key") == (counts ? "sooner" : nil))
        try expectFutureToWin()
    }

    /// A held write that descends from the record of its key, and is earlier than that and has not
    /// seen all of it, is let in as a new write.
    @Test func whatIsLetInAsANewWriteLeavesWhatElseIsHeld() throws {
        func version(_ writer: UInt64, _ time: HybridTime, seen: [UInt64] = []) -> Version {
            func dot(_ number: UInt64) -> Dot {
                Dot(replica: ReplicaID(high: 1, low: number), counter: 1)
            }
            return Version(
                dot: dot(writer), vector: VersionVector(seen.map { dot($0) }), time: time)
        }
        func record(_ value: String, _ version: Version) -> Record {
            Record(
                key: Self.key, value: Array(value.utf8), version: version, syncCount: .zero,
                isDirty: false)
        }
        let dataset = try a.dataset()
        let (sooner, later) = (a.store.nextTime(), a.store.nextTime())
        let ahead = HybridTime(milliseconds: later.milliseconds + hour * 1_000, counter: 0)
        let local = version(1, later, seen: [2])
        let book = try QuarantineBook(dataset)
        var batch = ReplicationBatch()
        batch.writes = [
            ReplicatedWrite(
                key: Self.key, content: .adopt(value: Array("ours".utf8), version: local),
                expected: nil)
        ]
        let due = record("due", version(3, sooner, seen: [1]))
        let future = record("future", version(4, ahead))
        for write in [due, future] {
            batch.notes.append(try #require(try book.note(holding: write)))
        }
        batch.seen = local.vector.union(due.version.vector).union(future.version.vector)
        #expect(try dataset.replicate(batch).isEmpty)
        #expect(try dataset.admitDue() == [Self.key])
        let admitted = try #require(try dataset.record(for: "key"))
        #expect(admitted.valueText == "due" && admitted.version.dot.replica == a.store.replicaID)
        try expectFutureToWin()
    }

    /// The deletion of the dataset had not seen it. By a clock that is ahead the dataset was made
    /// after that, which nobody believes.
    @Test func whatOutlastsADeletionOfTheDatasetLeavesWhatIsHeld() async throws {
        try put("ours", a)
        try await push(a, d)
        try put("future", b)
        try await push(b, a)
        try d.store.deleteDataset("notes")
        try await a.dataset().synchronize(
            with: d.transport, options: SyncOptions(onDatasetDeleted: .keepAndRecreate))
        #expect(try a.dataset().text("key") == "ours")
        try expectFutureToWin()
    }

    /// It had been seen, and is held where the dataset was deleted, too, as it is here.
    @Test func whatIsHeldOutlastsADeletionOfTheDatasetThatHadSeenIt() async throws {
        try put("ours", a)
        try await push(a, b)
        try put("future", b)
        try put("elsewhere", b, "other")
        try await push(b, a)
        try await push(a, d)
        #expect(try a.dataset().quarantined().count == 2 && d.dataset().quarantined().count == 2)
        // Overwritten before, and deleted with the rest.
        try put("over", a, "other")
        try a.dataset().delete("other")
        try await push(a, d)
        try d.store.deleteDataset("notes")
        try await a.dataset().synchronize(
            with: d.transport, options: SyncOptions(onDatasetDeleted: .keepAndRecreate))
        for replica in [a, d] {
            #expect(try replica.dataset().text("key") == "ours" && held(replica) == ["future"])
        }
        // Nobody else is told less.
        try await push(c, a)
        #expect(try held(c) == ["future"])
        for replica in [c, d] { replica.clock.putForward(bySeconds: 4 * hour) }
        try expectFutureToWin()
        for replica in [c, d] { try await push(replica, a) }
        try expectEqual([a, c, d])
        #expect(try a.dataset().text("other") == nil)
    }

    /// A part holds nothing, but what was held before it was one waits where the policy leaves it.
    @Test func whatAPartSettlesLeavesWhatIsHeld() async throws {
        try await hold()
        try a.dataset().setSyncScope(.prefix("key"))
        try put("theirs", c)
        let answers = SyncOptions(
            policy: .custom { conflict in
                conflict.remote.valueText == "future" ? .stop : .value(Array("both".utf8))
            })
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: c.transport, options: answers)
        }
        #expect(try a.dataset().text("key") == "both")
        try expectFutureToWin()
    }

    /// The peer believes the earlier of two held writes, and has it in place of our record, which
    /// is written anew for that. It need not have seen the other one.
    @Test(arguments: [false, true])
    func whatGivesWayToThePeerLeavesWhatIsHeldThereToo(_ isHeldThere: Bool) async throws {
        let e = try TestReplica("e", in: a.directory)
        e.clock.putForward(bySeconds: 3 * hour)
        c.clock.putForward(bySeconds: hour)
        try put("sooner", b)
        try put("future", e)
        try put("ours", d)
        try await push(b, c)
        for replica in [e, b, d] { try await push(replica, a) }
        if isHeldThere { try await push(e, c) }
        #expect(try c.dataset().text("key") == "sooner")
        #expect(try a.dataset().text("key") == "ours" && held(a) == ["future", "sooner"])
        let result = try await a.dataset().synchronize(with: c.transport)
        #expect(result.isComplete)
        #expect(try c.dataset().text("key") == "ours" && held(c) == ["future"])
        try expectFutureToWin()
    }
}
