import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// What the article *Coming from Cognito Sync and DataStore* says of push sync, on the side of
/// those who are told: each test does what its row says.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct SubscriptionMappingTests {
    let a: TestReplica
    let b: TestReplica
    let time = VirtualEnvironment()

    init() throws { (a, b) = try TestReplica.two() }

    private func synchronizer(_ transport: any SyncTransport) -> Synchronizer {
        Synchronizer(store: a.store, transport: transport, environment: time)
    }

    /// No call to the peer comes before a subscription, and none is a part of it.
    @Test func aSubscriptionNeedsNoRegistrationAndNoPeer() async throws {
        try b.dataset().put("1", for: "key")
        let isDown = Mutex(true)
        let transport = CountingTransport(b.transport) { _ in
            isDown.withLock { $0 } ? SyncError(.unreachable, "of the test") : nil
        }
        let synchronizer = Synchronizer(
            store: a.store, transport: transport, options: SynchronizerOptions(attemptsMax: 1),
            environment: time)
        var events = synchronizer.events().makeAsyncIterator()
        #expect(try !synchronizer.isSubscribedToAll)
        #expect(try synchronizer.subscriptions.isEmpty)
        try synchronizer.subscribe(["notes"])
        #expect(try synchronizer.subscriptions == ["notes"])
        await events.skip(to: "background unreachable")
        await time.untilAsleep()
        isDown.withLock { $0 = false }
        time.advance(by: .seconds(1))
        await events.skip(to: "local notes key")
        await synchronizer.shutdown()
        #expect(try a.dataset().text("key") == "1")
    }

    @Test func allIncludesWhatIsMadeHereLater() async throws {
        try a.dataset().put("1", for: "key")
        let transport = SubscriptionTests.WatchTransport(b.responder, time)
        let synchronizer = synchronizer(transport)
        var events = synchronizer.events().makeAsyncIterator()
        try synchronizer.subscribeAll()
        #expect(try synchronizer.isSubscribedToAll)
        await events.skip(to: "ended notes")
        await time.untilAsleep()
        _ = try a.dataset("plans")
        time.advance(by: .milliseconds(SyncLimits.watchMillisecondsMax))
        await time.untilAsleep()
        try b.dataset("plans").put("1", for: "key")
        await events.skip(to: "local plans key")
        await synchronizer.shutdown()
        #expect(try a.dataset("plans").text("key") == "1")
    }

    @Test func aRunThatOnlySubscriptionsWantedHasEndedWithThem() async throws {
        let gate = GatedTransport(b.transport)
        let synchronizer = synchronizer(gate)
        let events = synchronizer.events()
        try synchronizer.subscribe(["notes"])
        await gate.untilArrived(1)
        #expect(synchronizer.isRunning)
        try await synchronizer.unsubscribeAll()
        #expect(!synchronizer.isRunning)
        #expect(try synchronizer.subscriptions.isEmpty)
        let seen = await collect(events, completions: 1).map(\.label)
        #expect(seen.last == "failed cancelled")
        await synchronizer.shutdown()
    }

    @Test func subscriptionsGoOnWhenTheScheduleIsStopped() async throws {
        try b.dataset().put("0", for: "key")
        let transport = SubscriptionTests.WatchTransport(b.responder, time)
        let synchronizer = Synchronizer(
            store: a.store, transport: transport, schedule: SyncSchedule(interval: .seconds(60)),
            environment: time)
        var events = synchronizer.events().makeAsyncIterator()
        try await synchronizer.synchronize()
        try synchronizer.subscribe(["notes"])
        synchronizer.start()
        await time.untilAsleep(2)
        await synchronizer.stop()
        #expect(!synchronizer.isStarted)
        try b.dataset().put("1", for: "later")
        await events.skip(to: "local notes later")
        await synchronizer.shutdown()
        try expectEqual([a, b])
    }

    /// What a mobile push service hands over is text; the notice is made of it, and acted upon if
    /// its count is ahead.
    @Test func aNoticeMadeOfWhatAPushServiceBringsHasTheDatasetExchangedOnce() async throws {
        try b.dataset().put("1", for: "key")
        let peer = b.store.replicaID
        let count = try b.dataset().syncCount
        let payload = ["datasetName": "notes", "syncCount": "\(count.rawValue)"]
        let name = try #require(payload["datasetName"])
        let number = try #require(payload["syncCount"].flatMap { UInt64($0) })
        let notice = SyncNotice(dataset: name, syncCount: SyncCount(rawValue: number), peer: peer)
        let transport = CountingTransport(b.transport)
        let synchronizer = synchronizer(transport)
        #expect(try await synchronizer.receive(notice))
        #expect(try a.dataset().text("key") == "1")
        let facts = try a.dataset().syncFacts(with: peer)
        #expect(facts.lastSyncCount == notice.syncCount)
        let sent = transport.count
        // Twice, or late: the count is not ahead any more, and nothing is sent.
        #expect(try await !synchronizer.receive(notice))
        #expect(transport.count == sent)
        await synchronizer.shutdown()
    }
}
