import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// A record that one side left out of its pushes lies before the position from which the other one
/// pulls. Nobody may claim to have it, and a conflict with it comes to an end all the same:
///
///     A  push "fine", "bad"    ──▶  B  refuses "bad"; A leaves it out, and B's position passes it
///     A                        ◀──  B  pull: nothing, and no vector
///     A                        ◀──  B  push "ours": a conflict that no pull brings
///     A                        ◀──  B  records "key": "bad", to be settled or refused
struct LeftOutTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    private func expectRefused(
        _ from: TestReplica, _ transport: any SyncTransport, _ options: SyncOptions = SyncOptions()
    ) async throws {
        let error = await #expect(throws: SyncError.self) {
            try await from.dataset().synchronize(with: transport, options: options)
        }
        #expect(error?.code == .recordRefused)
    }

    /// A's "bad" is refused by B, and a push has gone past it.
    ///
    /// - Returns: the write.
    private func leaveOut(_ gate: RecordGate) async throws -> Dot {
        try put("bad", a)
        try put("fine", a, "other")
        try await expectRefused(a, gate.before(b))
        #expect(try b.dataset().text("other") == "fine")
        return try #require(try a.dataset().record(for: "key")?.version.dot)
    }

    @Test func whatWasLeftOutIsNotClaimedByAPull() async throws {
        let gate = RecordGate()
        let bad = try await leaveOut(gate)
        try put("more", a, "another")
        let result = try await b.dataset().synchronize(with: a.transport)
        #expect(result.pulled == 1)
        #expect(try b.dataset().text("another") == "more")
        #expect(try b.dataset().text("key") == nil)
        #expect(try !b.dataset().vector.contains(bad))
        // So it is taken when it comes.
        gate.open()
        try a.dataset().retryFailedRecords()
        try await a.dataset().synchronize(with: gate.before(b))
        #expect(try b.dataset().text("key") == "bad")
        try await b.dataset().synchronize(with: a.transport)
        #expect(try b.dataset().vector.contains(bad))
        #expect(try a.dataset().failedRecords().isEmpty)
        try expectEqual([a, b])
    }

    /// Its pages have no vector then. That it has heard of what was forgotten here its greeting
    /// says.
    @Test func whoLeftSomethingOutIsNotTakenForLate() async throws {
        let gate = RecordGate()
        _ = try await leaveOut(gate)
        try put("1", b, "gone")
        try await b.dataset().synchronize(with: a.transport)
        try b.dataset().delete("gone")
        try await b.dataset().synchronize(with: a.transport)
        try b.store.compact()
        #expect(try !b.dataset().knowledge().forgotten.isEmpty)
        for number in 0..<5 { try put("more", a, "more \(number)") }
        let result = try await b.dataset().synchronize(
            with: a.transport, options: SyncOptions(pageRecordsMax: 1))
        #expect(result.isComplete && result.attempts == 1 && result.pulled == 5)
        #expect(try b.dataset().text("gone") == nil)
    }

    @Test func aConflictWithWhatWasLeftOutIsSettled() async throws {
        let gate = RecordGate()
        _ = try await leaveOut(gate)
        b.clock.putForward(bySeconds: 60)
        try put("ours", b)
        try put("more", b, "another")
        let result = try await b.dataset().synchronize(
            with: a.transport, options: SyncOptions(pageRecordsMax: 1))
        #expect(result.attempts == 2 && result.conflicts == 1 && result.isComplete)
        #expect(try a.dataset().text("key") == "ours")
        #expect(try a.dataset().text("another") == "more")
        // A has another version now, and lets go of what failed.
        try await a.dataset().synchronize(with: gate.before(b))
        #expect(try a.dataset().failedRecords().isEmpty)
        try await b.dataset().synchronize(with: a.transport)
        try expectEqual([a, b])
        #expect(try a.dataset().vector == b.dataset().vector)
    }

    /// There is no second attempt in which it could be asked for.
    @Test func oneAttemptIsEnoughForIt() async throws {
        let gate = RecordGate()
        _ = try await leaveOut(gate)
        b.clock.putForward(bySeconds: 60)
        try put("ours", b)
        try put("more", b, "another")
        let result = try await b.dataset().synchronize(
            with: a.transport, options: SyncOptions(attemptsMax: 1, pageRecordsMax: 1))
        #expect(result.attempts == 1 && result.conflicts == 1 && result.isComplete)
        #expect(try a.dataset().text("key") == "ours")
        #expect(try a.dataset().text("another") == "more")
    }

    @Test func aConflictWithWhatWasLeftOutMayWait() async throws {
        let gate = RecordGate()
        let bad = try await leaveOut(gate)
        try put("ours", b)
        for _ in 0..<2 {
            let error = await #expect(throws: SyncError.self) {
                try await b.dataset().synchronize(
                    with: a.transport, options: SyncOptions(policy: .leavePending))
            }
            #expect(error?.code == .conflictPending)
            let waiting = try b.dataset().pendingConflicts()
            #expect(waiting.map(\.conflict.remote.version.dot) == [bad])
        }
        try b.dataset().settle(Array("key".utf8), with: .keepLocal)
        try await b.dataset().synchronize(with: a.transport)
        #expect(try a.dataset().text("key") == "ours")
        try await a.dataset().synchronize(with: gate.before(b))
        try await b.dataset().synchronize(with: a.transport)
        #expect(try a.dataset().failedRecords().isEmpty)
        try expectEqual([a, b])
    }

    @Test func whatIsRefusedOnceMoreHoldsUpNothingElse() async throws {
        let gate = RecordGate()
        // One record in a page, so that none passes beside another.
        let options = gate.options(pageRecordsMax: 1)
        _ = try await leaveOut(gate)
        try put("ours", b)
        try put("more", b, "another")
        try await expectRefused(b, a.transport, options)
        #expect(try a.dataset().text("another") == "more")
        let directions = try b.dataset().failedRecords().map(\.direction)
        #expect(Set(directions) == [.incoming, .outgoing])
        // From then on nothing fails anew.
        try put("newer", b, "another")
        let result = try await b.dataset().synchronize(with: a.transport, options: options)
        #expect(result.failedCount == 0 && !result.isComplete)
        #expect(try a.dataset().text("another") == "newer")
        gate.open()
        for replica in [a, b] { try replica.dataset().retryFailedRecords() }
        try await b.dataset().synchronize(with: a.transport, options: options)
        try await a.dataset().synchronize(with: gate.before(b))
        try await b.dataset().synchronize(with: a.transport, options: options)
        for replica in [a, b] {
            #expect(try replica.dataset().failedRecords().isEmpty)
            #expect(try !replica.dataset().holdsBackVectors())
        }
        try expectEqual([a, b])
    }

    /// Each has left out its version for the other one, and none comes by itself.
    @Test func whatBothLeftOutMeetsWhenItIsTriedAgain() async throws {
        let gate = RecordGate()
        _ = try await leaveOut(gate)
        try put("bad, too", b)
        try await expectRefused(b, gate.before(a))
        gate.open()
        for replica in [a, b] { try replica.dataset().retryFailedRecords() }
        for _ in 0..<2 {
            try await a.dataset().synchronize(with: gate.before(b))
            try await b.dataset().synchronize(with: gate.before(a))
        }
        for replica in [a, b] { #expect(try replica.dataset().failedRecords().isEmpty) }
        try expectEqual([a, b])
    }

    /// What is beyond the limits is beside the records: none of them is blamed.
    @Test(arguments: [false, true])
    func onlyARecordIsToBlameForARecord(isOfRecord: Bool) async throws {
        try put("fine", a)
        _ = try b.dataset()
        let ours = try a.dataset()
        let record = try #require(try ours.record(for: "key"))
        let far = Version(
            dot: record.version.dot, vector: record.version.vector,
            time: HybridTime(rawValue: 1 << 63))
        let unstorable = Record(
            key: record.key, value: record.value, version: far, syncCount: record.syncCount,
            isDirty: false)
        var knowledge = try ours.told(try ours.knowledge())
        if !isOfRecord {
            knowledge.vector.insert(
                Dot(replica: ReplicaID(high: 7, low: 7), counter: 1 << 60))
        }
        let page = RecordPage(
            records: [isOfRecord ? unstorable : record], through: knowledge.syncCount,
            isLast: true, knowledge: knowledge)
        let request = PushRequest(
            address: Address(from: a.store.replicaID, to: b.store.replicaID, dataset: "notes"),
            since: 0, acknowledged: 0, page: page)
        let answer = b.responder.respond(to: try SyncMessage.push(request).encoded())
        guard case .failure(let failure) = try SyncMessage(MessageFrame.decoded(answer)) else {
            Issue.record("no failure")
            return
        }
        let isBlamed = failure.code == SyncError.Code.recordRefused.description
        #expect(isBlamed == isOfRecord, "\(failure)")
        #expect(try b.dataset().text("key") == nil)
    }

    /// It may reach the very one for whom something was left out.
    @Test func aBundleClaimsNothingThatWasLeftOut() async throws {
        let gate = RecordGate()
        let bad = try await leaveOut(gate)
        let reached = try b.dataset().checkpoint(for: a.store.replicaID).pulledThrough
        try put("more", a, "another")
        let file = "\(a.directory.path)/notes.bundle"
        let made = try a.store.exportBundle(of: "notes", to: file, since: reached)
        #expect(made.vector.isEmpty)
        try await b.store.importBundle(from: file)
        #expect(try b.dataset().text("another") == "more")
        #expect(try !b.dataset().vector.contains(bad))
        gate.open()
        try a.dataset().retryFailedRecords()
        try await a.dataset().synchronize(with: gate.before(b))
        #expect(try b.dataset().text("key") == "bad")
        let whole = try a.store.exportBundle(of: "notes", to: file)
        #expect(whole.vector.contains(bad))
        try expectEqual([a, b])
    }
}
