import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// Announcements of a peer, and what they set off.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct SubscriptionTests {
    let a: TestReplica
    let b: TestReplica
    let time = VirtualEnvironment()

    /// Lets the peer wait in virtual time, and counts the questions.
    final class WatchTransport: SyncTransport {
        private let responder: SyncResponder
        private let environment: VirtualEnvironment
        private let count = Mutex(0)

        init(_ responder: SyncResponder, _ environment: VirtualEnvironment) {
            self.responder = responder
            self.environment = environment
        }

        var watchCount: Int { count.withLock { $0 } }

        func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
            responder.respond(to: request)
        }

        func watch(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
            count.withLock { $0 += 1 }
            return await responder.watch(request, environment: environment)
        }
    }

    init() throws { (a, b) = try TestReplica.two() }

    @Test func newsArriveByThemselves() async throws {
        let transport = WatchTransport(b.responder, time)
        let synchronizer = Synchronizer(
            store: a.store, transport: transport, environment: time)
        var events = synchronizer.events().makeAsyncIterator()
        try synchronizer.subscribe(["notes"])
        #expect(try synchronizer.subscriptions == ["notes"])
        await events.skip(to: "started notes")
        for number in 0..<5 {
            // The peer waits, or will: either way it tells of what is written now.
            try b.dataset().put("\(number)", for: "key \(number)")
            await events.skip(to: "local notes key \(number)")
            await events.skip(to: "ended notes")
        }
        try expectEqual([a, b])
        // Of a dataset that nobody subscribed to nothing is told.
        try b.dataset("other").put("1", for: "key")
        await time.untilAsleep()
        try synchronizer.unsubscribe(["notes"])
        #expect(try synchronizer.subscriptions.isEmpty)
        await synchronizer.shutdown()
        while let event = await events.next() { Issue.record("\(event.label)") }
        #expect(try a.store.existingDataset("other") == nil)
    }

    @Test func aWaitThatBringsNothingIsFollowedByTheNext() async throws {
        let transport = WatchTransport(b.responder, time)
        let synchronizer = Synchronizer(
            store: a.store, transport: transport, environment: time)
        var events = synchronizer.events().makeAsyncIterator()
        try a.dataset().put("1", for: "key")
        try synchronizer.subscribeAll()
        await events.skip(to: "ended notes")
        for round in 1...3 {
            await time.untilAsleep()
            #expect(transport.watchCount == round)
            time.advance(by: .milliseconds(SyncLimits.watchMillisecondsMax))
        }
        await time.untilAsleep()
        try await synchronizer.unsubscribeAll()
        #expect(transport.watchCount == 4)
        // No run was needed for any of it.
        await synchronizer.shutdown()
        #expect(await events.next() == nil)
    }

    /// Over a transport whose answers cannot wait the peer is asked now and then.
    @Test func withoutALongAnswerThePeerIsPolled() async throws {
        let transport = CountingTransport(b.transport)
        let synchronizer = Synchronizer(
            store: a.store, transport: transport,
            options: SynchronizerOptions(pollInterval: .seconds(7)), environment: time)
        var events = synchronizer.events().makeAsyncIterator()
        try synchronizer.subscribe(["notes"])
        await events.skip(to: "started notes")
        // Neither side has the dataset yet: that is told, and the subscription goes on.
        await events.skip(to: "ended notes")
        await time.untilAsleep()
        try b.dataset().put("1", for: "key")
        time.advance(by: .seconds(7))
        await events.skip(to: "local notes key")
        await events.skip(to: "ended notes")
        await time.untilAsleep()
        await synchronizer.shutdown()
        #expect(time.slept.allSatisfy { $0 == .seconds(7) })
    }

    /// A dataset that cannot be exchanged stays behind: it is asked about with growing pauses.
    @Test func whatStaysBehindIsNotAskedAboutWithoutPause() async throws {
        try b.dataset().put("1", for: "first")
        let transport = WatchTransport(b.responder, time)
        let options = SynchronizerOptions(
            exchange: SyncOptions(policy: .custom { _ in .stop }),
            backOff: BackOff(first: .seconds(1), jitter: 0))
        let synchronizer = Synchronizer(
            store: a.store, transport: transport, options: options, environment: time)
        var events = synchronizer.events().makeAsyncIterator()
        try await synchronizer.synchronize()
        await events.skip(to: "ended notes")
        try a.dataset().put("ours", for: "both")
        try b.dataset().put("theirs", for: "both")
        try synchronizer.subscribe(["notes"])
        for wait in [1, 2, 4] {
            await events.skip(to: "background conflictPending")
            await time.untilAsleep()
            #expect(time.slept.last == .seconds(wait))
            time.advance(by: .seconds(wait))
        }
        await events.skip(to: "background conflictPending")
        await synchronizer.shutdown()
    }

    @Test func anUnreachablePeerIsAskedAgain() async throws {
        try a.dataset().put("1", for: "key")
        let isDown = Mutex(false)
        let transport = CountingTransport(b.transport) { _ in
            isDown.withLock { $0 } ? SyncError(.unauthorized, "the test's token") : nil
        }
        let synchronizer = Synchronizer(
            store: a.store, transport: transport, environment: time)
        var events = synchronizer.events().makeAsyncIterator()
        try await synchronizer.synchronize()
        isDown.withLock { $0 = true }
        try synchronizer.subscribe(["notes"])
        await events.skip(to: "background unauthorized")
        await time.untilAsleep()
        isDown.withLock { $0 = false }
        try b.dataset().put("2", for: "key")
        time.advance(by: .seconds(1))
        await events.skip(to: "local notes key")
        await synchronizer.shutdown()
    }

    @Test func anotherStoreBehindTheAddressIsNoticed() async throws {
        try a.dataset().put("1", for: "key")
        let directory = TemporaryDirectory()
        let c = try TestReplica("c", in: directory)
        let responders = Mutex([b.responder, c.responder])
        let transport = ScriptedTransport { request throws(SyncError) in
            responders.withLock { $0[0] }.respond(to: request)
        }
        let synchronizer = Synchronizer(
            store: a.store, transport: transport, environment: time)
        try await synchronizer.synchronize()
        #expect(synchronizer.peer == b.store.replicaID)
        _ = responders.withLock { $0.removeFirst() }
        var events = synchronizer.events().makeAsyncIterator()
        try synchronizer.subscribe(["notes"])
        await events.skip(to: "remote notes key")
        await events.skip(to: "ended notes")
        #expect(synchronizer.peer == c.store.replicaID)
        await synchronizer.shutdown()
        try expectEqual([a, c])
    }

    @Test func noticesFromElsewhere() async throws {
        try b.dataset().put("1", for: "key")
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport, environment: time)
        let peer = b.store.replicaID
        let count = try b.dataset().syncCount
        let notice = SyncNotice(dataset: "notes", syncCount: count, peer: peer)
        #expect(try await synchronizer.receive(notice))
        try expectEqual([a, b])
        // Late, or twice: nothing happens.
        #expect(try await !synchronizer.receive(notice))
    }
}
