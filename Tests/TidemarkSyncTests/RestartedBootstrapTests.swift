import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// A first exchange that is cut off by the end of the receiving store goes on, when that is opened
/// again, behind the last range that had come.
///
///     receiver  ask ask ask ──▶ take take ╳ (reopened) ask ──▶ take ──▶ whole
struct RestartedBootstrapTests {
    let directory = TemporaryDirectory()

    /// A replica with a dataset of several sealed runs, each a range by itself.
    private func sender(seals: Int = 6) throws -> TestReplica {
        let sender = try TestReplica("sender", in: directory)
        let dataset = try sender.dataset()
        for seal in 0..<seals {
            for number in 0..<300 {
                try dataset.put("value \(seal) \(number)", for: "key \(seal * 250 + number)")
            }
            try sender.store.sealAll()
        }
        return sender
    }

    private func responder(_ replica: TestReplica) -> SyncResponder {
        SyncResponder(store: replica.store, limits: .init(segmentBytesMin: 0))
    }

    private func parts(_ replica: TestReplica) throws -> [String] {
        try Files.list(replica.store.path).filter {
            $0.hasSuffix(".part") || $0.hasSuffix(".from")
        }
    }

    /// Exchanges; returns how many ranges were asked for, and how many came and were taken.
    private func exchange(
        _ receiver: TestReplica, _ sender: SyncResponder, until last: Int = .max
    ) async throws -> (asked: Int, taken: Int, result: SyncResult?) {
        let taken = Mutex(0)
        let transport = InterposedTransport(sender) { point in
            guard point.number > last, point.moment == .beforeRequest else { return }
            throw SyncError(.unreachable, "cut by the test")
        }
        var options = SyncOptions()
        options.progress = { progress in
            if progress.phase == .pulling { taken.withLock { $0 += 1 } }
        }
        let dataset = try receiver.dataset()
        var result: SyncResult?
        do throws(SyncError) {
            result = try await dataset.synchronize(with: transport, options: options)
        } catch {
            #expect(error.code == .unreachable)
        }
        return (
            transport.messageCount(of: "segmentRange"), taken.withLock { $0 }, result
        )
    }

    @Test func restartedAfterEachMessageItGoesOn() async throws {
        let sender = try sender()
        let responder = responder(sender)
        let whole = try TestReplica("whole", in: directory)
        let all = try await exchange(whole, responder)
        #expect(all.asked == 6)
        var savedMost = 0
        for last in 2..<9 {
            let receiver = try TestReplica("receiver \(last)", in: directory)
            let first = try await exchange(receiver, responder, until: last)
            try #require(first.result == nil || last >= 8)
            try receiver.reopen()
            let second = try await exchange(receiver, responder)
            #expect(second.result?.isComplete == true)
            if first.result == nil {
                #expect(second.asked == all.asked - first.taken, "cut after message \(last)")
                savedMost = max(savedMost, first.taken)
            }
            try expectEqual([sender, receiver], "cut after message \(last)")
            #expect(try parts(receiver).isEmpty)
            #expect(try receiver.store.verify().damages.isEmpty)
            try receiver.store.close()
        }
        #expect(savedMost >= 4)
    }

    /// No more than three ranges come in each life of the receiver.
    @Test func manyRestarts() async throws {
        let sender = try sender()
        let responder = responder(sender)
        let receiver = try TestReplica("receiver", in: directory)
        var taken = 0
        for _ in 0..<12 {
            let part = try await exchange(receiver, responder, until: 5)
            taken += part.taken
            if part.result != nil { break }
            try receiver.reopen()
        }
        _ = try await exchange(receiver, responder)
        try expectEqual([sender, receiver])
        #expect(taken >= 6)
        #expect(try parts(receiver).isEmpty)
    }

    @Test(arguments: [false, true])
    func thePeerHasChangedMeanwhile(_ deletes: Bool) async throws {
        let sender = try sender()
        let receiver = try TestReplica("receiver", in: directory)
        let first = try await exchange(receiver, responder(sender), until: 5)
        #expect(first.result == nil)
        #expect(try !parts(receiver).isEmpty)
        if deletes {
            try sender.store.deleteDataset("notes")
            for number in 0..<2_000 { try sender.dataset().put("anew", for: "new \(number)") }
            try sender.store.sealAll()
        } else {
            try sender.store.compact()
        }
        try receiver.reopen()
        let second = try await exchange(receiver, responder(sender))
        #expect(second.result?.isComplete == true)
        try expectEqual([sender, receiver])
        // What was of no use went, if not at once, then with the next exchange.
        _ = try await exchange(receiver, responder(sender))
        #expect(try parts(receiver).isEmpty)
    }

    @Test func anotherPeerBeginsAnew() async throws {
        let sender = try sender()
        let other = try TestReplica("other", in: directory)
        try await other.dataset().synchronize(with: InMemoryTransport(responder(sender)))
        let receiver = try TestReplica("receiver", in: directory)
        _ = try await exchange(receiver, responder(sender), until: 5)
        try receiver.reopen()
        let second = try await exchange(receiver, responder(other))
        #expect(second.result?.isComplete == true)
        try expectEqual([sender, other, receiver])
        _ = try await exchange(receiver, responder(sender))
        #expect(try parts(receiver).isEmpty)
    }

    @Test func afterAWeekItsRoomIsFree() async throws {
        let sender = try sender()
        let receiver = try TestReplica("receiver", in: directory)
        _ = try await exchange(receiver, responder(sender), until: 5)
        try receiver.reopen()
        #expect(try !parts(receiver).isEmpty)
        receiver.clock.putForward(bySeconds: 8 * 86_400)
        try receiver.reopen()
        #expect(try parts(receiver).isEmpty)
        _ = try await exchange(receiver, responder(sender))
        try expectEqual([sender, receiver])
    }
}
