import Testing
import Tidemark

@testable import TidemarkSync

// What outlives is dated after the forgotten deletions. One clock that is ten years ahead must not
// date it in ten years, nor anything else on replicas whose clocks are right.
struct FreshStartDateTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    /// All have two keys; a deletes one of them in ten years.
    private func deleteInTenYears() async throws {
        try fill(a, 0..<2, "old")
        for replica in [b, c] { try await replica.dataset().synchronize(with: a.transport) }
        a.clock.putForward(bySeconds: 10 * 365 * 86_400)
        try a.dataset().delete("key 0")
    }

    /// Waits for nobody.
    private func forget(_ replica: TestReplica) throws {
        for peer in try replica.dataset().peers() { try replica.store.retire(peer.replica) }
        try replica.store.compact()
        #expect(try replica.dataset().record(for: "key 0", includingDeleted: true) == nil)
        #expect(try !replica.dataset().knowledge().forgotten.isEmpty)
    }

    @Test func aForgottenDateThatIsNotBelievedDatesNothing() async throws {
        try await deleteInTenYears()
        try forget(a)
        let forgotten = try a.dataset().knowledge().forgotten
        #expect(forgotten.time > c.store.latestBelieved)
        try put("mine", c, "key 7")
        try await c.dataset().synchronize(with: a.transport)
        #expect(try c.dataset().text("key 0") == nil)
        let record = try #require(try c.dataset().record(for: "key 7"))
        #expect(record.version.vector.covers(forgotten.vector), "it has outlived")
        #expect(record.version.time <= c.store.latestBelieved)
        #expect(try c.dataset().knowledge().forgotten.time <= c.store.latestBelieved)
        // So nobody holds it, and what is written over it is later.
        try await b.dataset().synchronize(with: c.transport)
        #expect(try b.dataset().quarantined().isEmpty)
        #expect(try b.dataset().text("key 7") == "mine")
        #expect(try b.dataset().text("key 0") == nil)
        try expectEqual([a, b, c])
    }

    /// Before the end of a fresh start it is not known here what a held write has to outlive.
    @Test func nothingHeldIsLetInDuringAFreshStart() async throws {
        try fill(a, 0..<2, "old")
        for replica in [b, c] { try await replica.dataset().synchronize(with: a.transport) }
        b.clock.putForward(bySeconds: 3_600)
        try put("future", b, "held")
        let late = try c.dataset()
        try await late.synchronize(with: b.transport)
        #expect(try late.quarantined().count == 1)
        try a.dataset().delete("key 0")
        try forget(a)
        let clocks = [a.clock, c.clock]
        let transport = InterposedTransport(a.responder) { point in
            guard point.kind == "pull", point.numberOfKind == 1, point.moment == .beforeRequest
            else { return }
            for clock in clocks { clock.putForward(bySeconds: 7_200) }
            do {
                #expect(try late.admitDue().isEmpty)
                #expect(try late.text("held") == nil)
            } catch {
                Issue.record(error)
            }
        }
        try await late.synchronize(with: transport)
        #expect(transport.messageCount(of: "inquiry") > 0)
        #expect(try late.text("key 0") == nil)
        // Now it is.
        try late.admitDue()
        let record = try #require(try late.record(for: "held"))
        #expect(record.valueText == "future")
        let forgotten = try a.dataset().knowledge().forgotten.vector
        #expect(record.version.vector.covers(forgotten), "it has outlived")
        for _ in 0..<2 { try await late.synchronize(with: a.transport) }
        try expectEqual([a, c])
    }

    /// Where another policy than the last writer settles conflicts, any date is taken in.
    @Test func aTombstoneFromTheFutureIsForgottenWithoutItsDate() async throws {
        try await deleteInTenYears()
        try await b.dataset().synchronize(
            with: a.transport, options: SyncOptions(policy: .keepRemote))
        let tombstone = try #require(
            try b.dataset().record(for: "key 0", includingDeleted: true))
        #expect(tombstone.isDeleted && tombstone.version.time > b.store.latestBelieved)
        try forget(b)
        let forgotten = try b.dataset().knowledge().forgotten
        #expect(forgotten.covers(tombstone.version))
        #expect(forgotten.time <= b.store.latestBelieved)
        try put("mine", c, "key 7")
        try await b.dataset().synchronize(with: c.transport)
        let record = try #require(try b.dataset().record(for: "key 7"))
        #expect(record.version.vector.covers(forgotten.vector), "it has outlived")
        #expect(record.version.time <= b.store.latestBelieved)
        try expectEqual([b, c])
    }
}
