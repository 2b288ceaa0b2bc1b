import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// What a peer refused, once somebody has it tried again: it is put at the end of the order of
/// change, and arrives whichever side asks.
///
///     A  push "bad" (1), "fine" (2)  ──▶  B  refuses "bad"; its position passes it
///     A  retry: "bad" (3)
///     A                              ◀──  B  pull since 2: "bad", and all that A has seen
struct TriedAgainTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    /// A's "bad" is refused by B, and a push has gone past it.
    private func leaveOut() async throws -> FailedRecord {
        try put("bad", a)
        try put("fine", a, "other")
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: RecordGate().before(b))
        }
        #expect(try b.dataset().text("other") == "fine")
        let failed = try a.dataset().failedRecords()
        #expect(failed.count == 1)
        return try #require(failed.first)
    }

    private func book() throws -> FailedBook { try FailedBook(a.dataset(), .outgoing) }

    @Test func whoAsksMeetsIt() async throws {
        let failed = try await leaveOut()
        try await b.dataset().synchronize(with: a.transport)
        #expect(try b.dataset().text("key") == nil)
        #expect(try a.dataset().retry(failed))
        #expect(try a.dataset().record(for: "key")?.version.dot == failed.write)
        // A asks nobody any more.
        try await b.dataset().synchronize(with: a.transport)
        #expect(try b.dataset().text("key") == "bad")
        #expect(try b.dataset().vector.contains(failed.write))
        #expect(try a.dataset().failedRecords().isEmpty)
        try expectEqual([a, b])
    }

    @Test func whoKeepsAPartMeetsIt() async throws {
        let failed = try await leaveOut()
        try b.dataset().setSyncScope(.prefix("k"))
        try a.dataset().retryFailedRecords()
        for _ in 0..<2 { try await b.dataset().synchronize(with: a.transport) }
        #expect(try b.dataset().text("key") == "bad")
        #expect(try a.dataset().failedRecords().isEmpty)
        try b.dataset().setSyncScope(nil)
        for _ in 0..<2 { try await b.dataset().synchronize(with: a.transport) }
        #expect(try b.dataset().syncScope() == nil)
        #expect(try b.dataset().vector.contains(failed.write))
        try expectEqual([a, b])
    }

    @Test func whoHasItByAnotherWayNeedNotBeGivenIt() async throws {
        _ = try await leaveOut()
        try await c.dataset().synchronize(with: a.transport)
        try await b.dataset().synchronize(with: c.transport)
        #expect(try b.dataset().text("key") == "bad")
        try put("more", a, "another")
        try await b.dataset().synchronize(with: a.transport)
        #expect(try a.dataset().failedRecords().isEmpty)
        #expect(try b.dataset().vector.covers(a.dataset().vector))
    }

    @Test func whatIsRefusedAgainWaitsAgain() async throws {
        let failed = try await leaveOut()
        try a.dataset().retryFailedRecords()
        let gate = RecordGate()
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: gate.before(b))
        }
        #expect(error?.code == .recordRefused)
        let again = try #require(try a.dataset().failedRecords().first)
        #expect(again.attempts == 2 && again.state == .waiting && again.since == failed.since)
        // Once more A's push has gone past it, for both sides.
        try await b.dataset().synchronize(with: a.transport)
        #expect(try b.dataset().text("key") == nil)
        #expect(try !b.dataset().vector.contains(failed.write))
    }

    /// Whoever asks to try it again may do so while a page leaves that was read before.
    @Test func aPageThatWasReadBeforeClaimsNothing() async throws {
        let failed = try await leaveOut()
        let peer = b.store.replicaID
        #expect(try book().holdsBack(from: peer, at: SyncCount(rawValue: .max)))
        let before = try a.dataset().knowledge().syncCount
        #expect(try a.dataset().retry(failed))
        let after = try a.dataset().knowledge().syncCount
        #expect(after > before)
        #expect(try book().holdsBack(from: peer, at: before))
        #expect(try !book().holdsBack(from: peer, at: after))
        #expect(try !book().holdsBack(from: c.store.replicaID, at: before))
        #expect(try book().leftOut(of: peer).isEmpty)
        // Given up after all.
        #expect(try a.dataset().drop(failed))
        #expect(try book().leftOut(of: peer).count == 1)
        #expect(try book().holdsBack(from: peer, at: after))
    }

    /// It has another version by now, which is given out as any.
    @Test func whatHasAnotherVersionGoesFromTheList() async throws {
        let failed = try await leaveOut()
        try put("good", a)
        let before = try a.dataset().knowledge().syncCount
        #expect(try a.dataset().retry(failed))
        #expect(try a.dataset().failedRecords().isEmpty)
        #expect(try a.dataset().knowledge().syncCount == before)
        #expect(try !a.dataset().retry(failed))
        try await b.dataset().synchronize(with: a.transport)
        #expect(try b.dataset().text("key") == "good")
    }

    /// An earlier version of this module sent it by itself, and had not put it anywhere.
    @Test func whatWasDueBeforeItWasPutAtTheEndWaits() async throws {
        let failed = try await leaveOut()
        let list = FailedBook.list(of: try a.dataset(), .outgoing)
        var bytes = failed.changed(state: .due).encoded
        #expect(bytes[1] == 3)
        bytes[1] = 1
        try list.home().put(bytes, for: list.key(at: failed.since))
        #expect(try a.dataset().failedRecords().map(\.state) == [.waiting])
        try await b.dataset().synchronize(with: a.transport)
        #expect(try !b.dataset().vector.contains(failed.write))
        try a.dataset().retryFailedRecords()
        try await b.dataset().synchronize(with: a.transport)
        #expect(try b.dataset().text("key") == "bad")
    }

    // MARK: - What was refused here

    /// A asks B once and never again, but B asks A.
    @Test func whatWasRefusedOfAPeerThatAsksItGivesAnew() async throws {
        for number in 0..<5 { try put("\(number)", b, "other \(number)") }
        try put("bad", b)
        let gate = RecordGate()
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: b.transport, options: gate.options())
        }
        try await b.dataset().synchronize(with: a.transport)
        let failed = try #require(try a.dataset().failedRecords().first)
        #expect(failed.state == .waiting)
        #expect(try a.dataset().text("key") == nil)
        try a.dataset().retryFailedRecords()
        for _ in 0..<2 { try await b.dataset().synchronize(with: a.transport) }
        #expect(try a.dataset().text("key") == "bad")
        #expect(try a.dataset().failedRecords().isEmpty)
        #expect(try a.dataset().vector == b.dataset().vector)
        try expectEqual([a, b])
    }

    /// B has another version, and A has seen it by way of C.
    @Test func whatThePeerHasNoMoreIsOver() async throws {
        try put("bad", b)
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: b.transport, options: RecordGate().options())
        }
        try await c.dataset().synchronize(with: b.transport)
        try c.dataset().delete("key")
        try a.dataset().retryFailedRecords()
        // A has no word of "bad" from C, which has seen it.
        try await a.dataset().synchronize(with: c.transport)
        #expect(try a.dataset().failedRecords().isEmpty)
        #expect(try a.dataset().vector.covers(c.dataset().vector))
    }

    /// A write that is held has no place in the order of change, and the book of failures keeps it
    /// out of no page: the push met the same conflict without end.
    @Test(.timeLimit(.minutes(1)))
    func aHeldWriteInConflictWithWhatWasRefusedIsWithheld() async throws {
        let hour: UInt64 = 3_600
        try put("bad", b)
        c.clock.putForward(bySeconds: hour)
        try put("future", c)
        try await a.dataset().synchronize(with: c.transport)
        #expect(try a.dataset().quarantined().count == 1)
        // B believes C, and A does not.
        b.clock.putForward(bySeconds: hour)
        let gate = RecordGate()
        let transport = CountingTransport(b.transport)
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: transport, options: gate.options())
        }
        #expect(try transport.messages().count < 20)
        gate.open()
        try a.dataset().retryFailedRecords()
        a.clock.putForward(bySeconds: 2 * hour)
        for _ in 0..<3 {
            try await a.dataset().synchronize(with: c.transport)
            try await a.dataset().synchronize(with: b.transport)
        }
        try await a.dataset().synchronize(with: c.transport)
        #expect(try a.dataset().text("key") == "future")
        try expectEqual([a, b, c])
    }
}
