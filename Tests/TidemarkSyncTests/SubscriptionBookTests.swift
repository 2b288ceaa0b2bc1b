import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// Subscriptions hold beyond the synchronizer, the process and the power.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct SubscriptionBookTests {
    let a: TestReplica
    let b: TestReplica
    let time = VirtualEnvironment()

    init() throws { (a, b) = try TestReplica.two() }

    @Test func aLaterSynchronizerGoesOn() async throws {
        try b.dataset().put("1", for: "key")
        let first = Synchronizer(store: a.store, transport: b.transport, environment: time)
        try first.subscribe(["notes", "plans"])
        // Of what was not subscribed to there is nothing to end.
        try first.unsubscribe(["plans", "never"])
        await first.shutdown()
        // What ended is the watching.
        #expect(try first.subscriptions == ["notes"])
        try a.reopen()
        let transport = SubscriptionTests.WatchTransport(b.responder, time)
        let second = Synchronizer(store: a.store, transport: transport, environment: time)
        #expect(try second.subscriptions == ["notes"])
        #expect(try !second.isSubscribedToAll)
        #expect(transport.watchCount == 0)
        var events = second.events().makeAsyncIterator()
        second.start()
        await events.skip(to: "ended notes")
        await time.untilAsleep()
        // Whoever subscribes to the same once more changes nothing.
        try second.subscribe(["notes"])
        second.start()
        await time.untilAsleep()
        #expect(transport.watchCount == 1)
        try b.dataset().put("2", for: "key")
        await events.skip(to: "local notes key")
        try await second.unsubscribeAll()
        await second.shutdown()
        try a.reopen()
        let third = Synchronizer(store: a.store, transport: transport, environment: time)
        #expect(try third.subscriptions.isEmpty)
        let silence = third.events()
        third.start()
        await third.shutdown()
        for await event in silence { Issue.record("\(event.label)") }
    }

    @Test func thatAllAreSubscribedToIsKept() async throws {
        let first = Synchronizer(store: a.store, transport: b.transport, environment: time)
        try first.subscribeAll()
        try first.subscribe(["notes"])
        await first.shutdown()
        try a.reopen()
        let second = Synchronizer(store: a.store, transport: b.transport, environment: time)
        #expect(try second.isSubscribedToAll)
        try second.unsubscribe(["notes"])
        #expect(try second.isSubscribedToAll)
        #expect(try second.subscriptions.isEmpty)
        try await second.unsubscribeAll()
        #expect(try !second.isSubscribedToAll)
        await second.shutdown()
    }

    /// One durable write each: acknowledged is kept, whatever the store promises for records.
    @Test func thePowerMayFailRightAfterwards() async throws {
        let seed = Seed.drawn()
        var random = TestSupport.SeededGenerator(seed)
        let disk = SimulatedStorage(seed: seed)
        let options = StoreOptions(
            durability: .memory, segmentBytes: 1 << 20, compactsAutomatically: false)
        let store = try Store.open(at: "/store", options: options, storage: disk)
        let synchronizer = Synchronizer(
            store: store, transport: b.transport, environment: time)
        try synchronizer.subscribe(["notes", "plans"])
        try synchronizer.unsubscribe(["plans"])
        let after = disk.afterPowerLoss(.nothing, using: &random)
        await synchronizer.shutdown()
        let again = try Store.open(at: "/store", options: options, storage: after)
        let later = Synchronizer(store: again, transport: b.transport, environment: time)
        #expect(try later.subscriptions == ["notes"])
        await later.shutdown()
        try again.close()
        try store.close()
    }

    /// Names, also such as begin with one another, and empty ones, keep their subscriptions apart.
    /// Against a model, through restarts.
    @Test(arguments: 0..<3)
    func eachNameHasItsOwn(_ run: UInt64) throws {
        let seed = baseSeed &+ run
        print("eachNameHasItsOwn: TIDEMARK_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        let names = ["", "h", "hub", "hub2", String(repeating: "h", count: 255), "\u{1}"]
        let datasets = ["a", "ab", "abc", "b.c", String(repeating: "d", count: 255)]
        var model: [String: Subscriptions] = [:]
        for _ in 0..<60 {
            let name = names[Int.random(in: 0..<names.count, using: &random)]
            let before = model[name] ?? Subscriptions()
            var after = before
            let dataset = datasets[Int.random(in: 0..<datasets.count, using: &random)]
            switch Int.random(in: 0..<6, using: &random) {
            case 0: after = Subscriptions()
            case 1: after.isAll.toggle()
            case 2: after.names.remove(dataset)
            default: after.names.insert(dataset)
            }
            try SynchronizerBook(a.store, name: name).replace(before, by: after)
            model[name] = after
            switch Int.random(in: 0..<10, using: &random) {
            case 0: try a.reopen()
            case 1: try a.store.compact()
            default: break
            }
            for name in names {
                let kept = try SynchronizerBook(a.store, name: name).subscriptions()
                #expect(kept == model[name] ?? Subscriptions(), "seed \(seed)")
            }
        }
        // Nobody else sees any of it.
        #expect(try a.store.datasetNames().isEmpty)
    }

    @Test func whatCannotBeKeptIsRefused() async throws {
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport, environment: time)
        for name in ["no name", "", "~sync", String(repeating: "n", count: 256)] {
            let error = #expect(throws: SyncError.self) {
                try synchronizer.subscribe(["notes", name])
            }
            #expect(error?.storeError?.code == .invalidArgument)
        }
        #expect(try synchronizer.subscriptions.isEmpty)
        await synchronizer.shutdown()
        let options = SynchronizerOptions(name: String(repeating: "n", count: 256))
        let misnamed = Synchronizer(
            store: a.store, transport: b.transport, options: options, environment: time)
        let error = #expect(throws: SyncError.self) { try misnamed.subscribeAll() }
        #expect(error?.storeError?.code == .invalidArgument)
        // What cannot be thrown is told.
        var events = misnamed.events().makeAsyncIterator()
        misnamed.start()
        #expect(await events.next()?.label == "background store")
        await misnamed.shutdown()
    }
}
