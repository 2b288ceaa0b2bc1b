import Testing
import Tidemark

@testable import TidemarkSync

// What outlives forgotten deletions has seen all that they had. Of other keys they may have seen
// what is held, which nobody has read: that is not seen.
//
//     b  ── key: future (in an hour) ──┐
//     a  ──────────────────────────────┴── holds it, and forgets deletions that had seen it
//     c  ── key: apart ── comes late: apart outlives ── ... an hour later: future
struct QuarantineLateComerTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica
    private let hour: UInt64 = 3_600

    init() throws {
        (a, b, c) = try TestReplica.three()
        b.clock.putForward(bySeconds: hour)
    }

    private func held(_ replica: TestReplica) throws -> [String] {
        try replica.dataset().quarantined().map { $0.record.valueText ?? "(deleted)" }
    }

    /// As where a fresh start of a's has brought deletions that somebody else had forgotten.
    private func holdAndForget() async throws {
        try put("old", a, "other")
        try put("future", b)
        try await b.dataset().synchronize(with: a.transport)
        var batch = ReplicationBatch()
        batch.forgotten = ForgottenDeletions(
            vector: try a.dataset().vector, time: a.store.nextTime())
        #expect(try a.dataset().replicate(batch).isEmpty)
        #expect(try held(a) == ["future"])
    }

    private func expectFutureToWin() async throws {
        for replica in [a, c] {
            #expect(try held(replica) == ["future"])
            replica.clock.putForward(bySeconds: 2 * hour)
        }
        try await c.dataset().synchronize(with: a.transport)
        for replica in [a, c] {
            #expect(try replica.dataset().text("key") == "future" && held(replica) == [])
        }
        try expectEqual([a, c])
    }

    @Test(arguments: ExchangeRole.allCases)
    func whatOutlivesLeavesWhatIsHeld(_ lateSide: ExchangeRole) async throws {
        try await holdAndForget()
        try put("apart", c)
        try put("apart", c, "another")
        let (from, to) = lateSide == .asker ? (c, a) : (a, c)
        let result = try await from.dataset().synchronize(with: to.transport)
        #expect(result.isComplete)
        for replica in [a, c] {
            #expect(try replica.dataset().text("key") == "apart")
            #expect(try replica.dataset().text("another") == "apart")
        }
        try await expectFutureToWin()
    }

    /// Written while the last question is under way, too late to be asked about.
    @Test func soDoesWhatIsWrittenInTheLastMoment() async throws {
        try await holdAndForget()
        try put("apart", c, "another")
        let late = try c.dataset()
        let transport = InterposedTransport(a.responder) { point in
            guard point.moment == .beforeAnswer else { return }
            switch point.kind {
            case "pull" where point.numberOfKind == 1: try late.put("asked", for: "first")
            case "inquiry" where point.numberOfKind > 1: try late.put("apart", for: "key")
            default: break
            }
        }
        try await late.synchronize(with: transport)
        #expect(transport.messageCount(of: "inquiry") > 1)
        #expect(try late.text("key") == "apart" && late.text("first") == "asked")
        try await c.dataset().synchronize(with: a.transport)
        try await expectFutureToWin()
    }

    /// Who believed a deletion may forget it while it is held elsewhere, and be given a record that
    /// it meets there. It was never told that they had met.
    @Test func aDeletionThatWasForgottenMeanwhileReachesWhoForgotIt() async throws {
        a.clock.putForward(bySeconds: hour)
        try put("old", a)
        try a.dataset().delete("key")
        try put("apart", c)
        // c pulls, and its push is lost.
        let cut = FaultyTransport(a.responder, .losesRequest, after: 2)
        await #expect(throws: SyncError.self) { try await c.dataset().synchronize(with: cut) }
        #expect(try held(c) == ["(deleted)"])
        try a.store.retire(c.store.replicaID)
        try a.store.compact()
        #expect(try a.dataset().record(for: "key", includingDeleted: true) == nil)
        try await c.dataset().synchronize(with: a.transport)
        #expect(try a.dataset().text("key") == "apart" && c.dataset().text("key") == "apart")
        c.clock.putForward(bySeconds: 2 * hour)
        for _ in 0..<2 { try await c.dataset().synchronize(with: a.transport) }
        #expect(try a.dataset().text("key") == nil && c.dataset().text("key") == nil)
        try expectEqual([a, c])
    }

    /// A replica whose clock is ahead dates what outlives after its own deletions. Where that date
    /// is not believed the write keeps the one that it has until then, also where it was made.
    @Test(arguments: ExchangeRole.allCases)
    func theLaterDateOfWhatOutlivesIsHeldWhereItIsNotBelieved(
        _ farSide: ExchangeRole
    ) async throws {
        try put("old", a, "other")
        try await b.dataset().synchronize(with: a.transport)
        try b.dataset().delete("other")
        try b.store.retire(a.store.replicaID)
        try b.store.compact()
        #expect(try b.dataset().knowledge().forgotten.time > c.store.latestBelieved)
        try put("apart", c)
        try await a.dataset().synchronize(with: c.transport)
        let (from, to) = farSide == .asker ? (b, c) : (c, b)
        try await from.dataset().synchronize(with: to.transport)
        try await a.dataset().synchronize(with: c.transport)
        for replica in [a, c] {
            let record = try #require(try replica.dataset().record(for: "key"))
            #expect(record.version.time <= replica.store.latestBelieved)
            #expect(record.valueText == "apart")
        }
        // So what is written beside it elsewhere is later, and what is written over it as well.
        try put("next", a)
        for replica in [c, b] {
            try await a.dataset().synchronize(with: replica.transport)
            #expect(try replica.dataset().text("key") == "next")
        }
        for replica in [a, c] { replica.clock.putForward(bySeconds: 2 * hour) }
        for replica in [c, b, c] {
            try await a.dataset().synchronize(with: replica.transport)
        }
        for replica in [a, b, c] { #expect(try held(replica) == []) }
        #expect(try a.dataset().text("key") == "next")
        try expectEqual([a, b, c])
    }

    /// Of two that are held of a key and have not seen what was forgotten, the first that is let in
    /// outlives that, and leaves the other one.
    @Test func ofTwoThatAreHeldTheFirstLeavesTheOther() async throws {
        try await holdAndForget()
        c.clock.putForward(bySeconds: 1_800)
        try put("sooner", c)
        try await c.dataset().synchronize(with: a.transport)
        #expect(try held(a).sorted() == ["future", "sooner"])
        a.clock.putForward(bySeconds: 1_800)
        try a.dataset().admitDue()
        #expect(try a.dataset().text("key") == "sooner" && held(a) == ["future"])
    }
}
