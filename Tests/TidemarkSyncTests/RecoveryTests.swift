import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

/// Lost messages, restored backups, copied directories: afterwards nothing is lost and both sides
/// are equal.
struct RecoveryTests {
    let a: TestReplica
    let b: TestReplica
    let c: TestReplica

    init() throws { (a, b, c) = try TestReplica.three() }

    private let smallPages = SyncOptions(pageRecordsMax: 4)

    @Test(arguments: 0..<12, [FaultyTransport.Fault.losesRequest, .losesAnswer])
    func aConnectionThatBreaksGoesOnWhereItWas(
        _ goodMessages: Int, _ fault: FaultyTransport.Fault
    ) async throws {
        try fill(a, 0..<20, "ours")
        try fill(b, 15..<40, "theirs")
        let broken = FaultyTransport(b.responder, fault, after: goodMessages)
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: broken, options: smallPages)
        }
        #expect(error?.code == .unreachable)
        try await a.dataset().synchronize(with: b.transport, options: smallPages)
        try expectEqual([a, b])
    }

    @Test func whatWasPulledIsNotPulledAgain() async throws {
        try fill(b, 0..<40, "theirs")
        // Hello and five pages of four.
        let broken = FaultyTransport(b.responder, .losesRequest, after: 6)
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: broken, options: smallPages)
        }
        #expect(try a.dataset().count() == 20)
        let result = try await a.dataset().synchronize(with: b.transport, options: smallPages)
        #expect((20...24).contains(result.pulled))
        #expect(result.pagesReceived <= 7)
        try expectEqual([a, b])
    }

    @Test func aLostAnswerToAPushDoesNoHarm() async throws {
        try fill(a, 0..<3, "ours")
        // Hello, then the push whose answer is lost.
        let broken = FaultyTransport(b.responder, .losesAnswer, after: 1)
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: broken)
        }
        #expect(try b.dataset().count() == 3)
        let result = try await a.dataset().synchronize(with: b.transport)
        #expect(result.conflicts == 0)
        #expect(try a.dataset().records().collect().allSatisfy { !$0.isDirty })
        try expectEqual([a, b])
    }

    /// The peer came for them, and never said that it has them.
    @Test func whatAPeerHasIsNotDirtyThoughItsWordWasLost() async throws {
        try fill(a, 0..<3, "ours")
        let broken = FaultyTransport(a.responder, .losesRequest, after: 2)
        await #expect(throws: SyncError.self) {
            try await b.dataset().synchronize(with: broken)
        }
        #expect(try b.dataset().count() == 3)
        #expect(try a.dataset().records().collect().allSatisfy(\.isDirty))
        let result = try await a.dataset().synchronize(with: b.transport)
        #expect(result.pushed == 0)
        #expect(try a.dataset().records().collect().allSatisfy { !$0.isDirty })
        try expectEqual([a, b])
    }

    @Test func aWriteAfterAnInterruptedPullDescendsFromWhatWasPulled() async throws {
        try fill(b, 0..<20, "theirs")
        let broken = FaultyTransport(b.responder, .losesRequest, after: 2)
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: broken, options: smallPages)
        }
        try a.dataset().put("ours, knowing theirs", for: "key 0")
        let result = try await a.dataset().synchronize(
            with: b.transport, options: SyncOptions(policy: .custom { _ in .stop }))
        #expect(result.conflicts == 0)
        #expect(try b.dataset().text("key 0") == "ours, knowing theirs")
        try expectEqual([a, b])
    }

    /// Ours won a conflict in the first page of a pull that was then cut off. What is written
    /// next must descend from the loser, too, or the two are in conflict for ever.
    @Test func aWriteAfterAnInterruptedMergeDescendsFromBothVersions() async throws {
        try fill(b, 0..<20, "theirs")
        a.clock.putForward(bySeconds: 60)
        try a.dataset().put("ours, later", for: "key 0")
        let broken = FaultyTransport(b.responder, .losesRequest, after: 2)
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: broken, options: smallPages)
        }
        #expect(try a.dataset().count() == 4)
        try a.reopen()
        try a.dataset().put("ours again", for: "key 0")
        let result = try await a.dataset().synchronize(with: b.transport)
        #expect(result.conflicts == 0)
        #expect(result.attempts == 1)
        #expect(try b.dataset().text("key 0") == "ours again")
        try expectEqual([a, b])
    }

    /// An exchange that was cut off hands on what it has, and claims no more than that.
    @Test func partOfAnExchangeIsHandedOnAndTheRestStillArrives() async throws {
        try fill(c, 0..<20, "theirs")
        let broken = FaultyTransport(c.responder, .losesRequest, after: 3)
        await #expect(throws: SyncError.self) {
            try await b.dataset().synchronize(with: broken, options: smallPages)
        }
        try await a.dataset().synchronize(with: b.transport)
        #expect(try a.dataset().count() == 8)
        try await a.dataset().synchronize(with: c.transport)
        #expect(try a.dataset().count() == 20)
        try expectEqual([a, c])
    }

    @Test func aRestoredAskerTakesANewIdAndGetsItsLostWritesBack() async throws {
        try fill(a, 0..<5, "first")
        try await a.dataset().synchronize(with: b.transport)
        try a.backUp()
        try fill(a, 3..<9, "second")
        try await a.dataset().synchronize(with: b.transport)
        let oldID = a.store.replicaID
        try a.restore()
        #expect(a.store.replicaID == oldID)
        #expect(try a.dataset().count() == 5)
        try await a.dataset().synchronize(with: b.transport)
        #expect(a.store.replicaID != oldID)
        #expect(try a.dataset().text("key 8") == "second 8")
        try a.dataset().put("third", for: "key 8")
        #expect(try a.dataset().record(for: "key 8")?.version.dot.replica == a.store.replicaID)
        try await a.dataset().synchronize(with: b.transport)
        try expectEqual([a, b])
    }

    @Test func aRestoredResponderTakesANewIdAndGetsItsLostWritesBack() async throws {
        try fill(b, 0..<5, "first")
        try await a.dataset().synchronize(with: b.transport)
        try b.backUp()
        try fill(b, 3..<9, "second")
        try await a.dataset().synchronize(with: b.transport)
        let oldID = b.store.replicaID
        try b.restore()
        try await a.dataset().synchronize(with: b.transport)
        #expect(b.store.replicaID != oldID)
        #expect(try b.dataset().text("key 8") == "second 8")
        try expectEqual([a, b])
    }

    /// What a restored store wrote before it met anyone took dots that were used already.
    @Test func writesUnderDotsUsedTwiceAreKept() async throws {
        try fill(a, 0..<5, "first")
        try await a.dataset().synchronize(with: b.transport)
        try a.backUp()
        try fill(a, 10..<16, "lost")
        try await a.dataset().synchronize(with: b.transport)
        try a.restore()
        // Three of the six dots, for keys that the peer has under them, under none, and at all.
        try a.dataset().put("again 10", for: "key 10")
        try a.dataset().put("again 20", for: "key 20")
        try a.dataset().put("again 0", for: "key 0")
        // Cut off in between, the next exchange still knows what to do.
        for goodMessages in 0..<8 {
            let broken = FaultyTransport(b.responder, .losesAnswer, after: goodMessages)
            _ = try? await a.dataset().synchronize(with: broken, options: smallPages)
        }
        try await a.dataset().synchronize(with: b.transport)
        try expectEqual([a, b])
        let values = [0, 10, 11, 15, 20].map { try? a.dataset().text("key \($0)") }
        #expect(values == ["again 0", "again 10", "lost 11", "lost 15", "again 20"])
        try await a.dataset().synchronize(with: c.transport)
        try expectEqual([a, b, c])
    }

    /// The peer lost only what it had from others, so no dot gives it away; checkpoints do.
    @Test func aPeerRestoredWithoutLossOfOwnWritesIsFilledUpAgain() async throws {
        try fill(a, 0..<5, "first")
        try await a.dataset().synchronize(with: b.transport)
        try b.backUp()
        try fill(a, 5..<10, "second")
        try await a.dataset().synchronize(with: b.transport)
        try b.restore()
        try fill(c, 20..<30, "other")
        try await b.dataset().synchronize(with: c.transport)
        let result = try await a.dataset().synchronize(with: b.transport)
        #expect(result.pushed >= 5)
        try expectEqual([a, b])
        #expect(try a.dataset().count() == 20)
    }

    @Test func anAskerRestoredWithoutLossOfOwnWritesIsFilledUpAgain() async throws {
        try fill(b, 0..<5, "first")
        try await a.dataset().synchronize(with: b.transport)
        try a.backUp()
        try fill(b, 5..<10, "second")
        try await a.dataset().synchronize(with: b.transport)
        try a.restore()
        try await a.dataset().synchronize(with: b.transport)
        try expectEqual([a, b])
        #expect(try a.dataset().count() == 10)
    }

    @Test func aStoreIsNotSynchronisedWithItself() async throws {
        let id = a.store.replicaID
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: a.transport)
        }
        #expect(error?.code == .sameReplica)
        #expect(a.store.replicaID == id)
    }
}
