import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// Subscriptions to more datasets than one question for news may name.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct ManySubscriptionsTests {
    let a: TestReplica
    let b: TestReplica
    let time = VirtualEnvironment()

    init() throws { (a, b) = try TestReplica.two() }

    private func synchronizer(
        _ transport: any SyncTransport, itemsMax: Int = SyncLimits.watchedDatasetsMax
    ) -> Synchronizer {
        var options = SynchronizerOptions()
        options.watchItemsMax = itemsMax
        return Synchronizer(
            store: a.store, transport: transport, options: options, environment: time)
    }

    /// 2,300 names, of which the peer has few and makes others: three questions wait at a time, and
    /// news come by whichever of them names the dataset.
    @Test func thousandsAreWatched() async throws {
        print("thousandsAreWatched: TIDEMARK_SEED=\(baseSeed)")
        var random = SeededGenerator(seed: baseSeed)
        try b.dataset("d1000").put("0", for: "key")
        let names = (1_000..<3_300).map { "d\($0)" }
        let transport = SubscriptionTests.WatchTransport(b.responder, time)
        let synchronizer = synchronizer(transport)
        try await synchronizer.synchronize()
        var events = synchronizer.events().makeAsyncIterator()
        try synchronizer.subscribe(names)
        for number in 1...12 {
            await time.untilAsleep(3)
            let name = names[Int.random(in: 0..<names.count, using: &random)]
            try b.dataset(name).put("\(number)", for: "key")
            await events.skip(to: "local \(name) key")
            await events.skip(to: "ended \(name)")
            try expectEqual([a, b], dataset: name)
        }
        #expect(try synchronizer.subscriptions == names)
        await synchronizer.shutdown()
        #expect(time.slept.allSatisfy { $0 == .milliseconds(SyncLimits.watchMillisecondsMax) })
    }

    /// Twenty questions, of which eight wait at a time: the longest wait is shared out, so that the
    /// last ones have their turn within it.
    @Test func everyQuestionHasItsTurn() async throws {
        let names = (10..<70).map { "d\($0)" }
        for name in names { try b.dataset(name).put("0", for: "key") }
        let transport = SubscriptionTests.WatchTransport(b.responder, time)
        let synchronizer = synchronizer(transport, itemsMax: 3)
        try await synchronizer.synchronize()
        var events = synchronizer.events().makeAsyncIterator()
        try synchronizer.subscribeAll()
        let wait = Duration.milliseconds(SyncLimits.watchMillisecondsMax / 3)
        // Of the first, the second and the third eight.
        for (turn, name) in [names[0], names[30], names[59]].enumerated() {
            for _ in 0..<turn {
                await time.untilAsleep(SyncLimits.watchesAtOnceMax)
                time.advance(by: wait)
            }
            await time.untilAsleep(turn == 2 ? 4 : SyncLimits.watchesAtOnceMax)
            try b.dataset(name).put("\(turn)", for: "key")
            await events.skip(to: "local \(name) key")
            await events.skip(to: "ended \(name)")
        }
        await synchronizer.shutdown()
        #expect(time.slept.allSatisfy { $0 == wait })
        for name in names { try expectEqual([a, b], dataset: name) }
    }

    /// Whatever changes all the time hides nothing: before any question waits, all are asked, and
    /// the news of all are exchanged in one run.
    @Test func newsOfAllAreGatheredBeforeAnyWait() async throws {
        let names = (10..<20).map { "d\($0)" }
        for name in names { try b.dataset(name).put("0", for: "key") }
        let transport = SubscriptionTests.WatchTransport(b.responder, time)
        let synchronizer = synchronizer(transport, itemsMax: 1)
        try await synchronizer.synchronize()
        for name in ["d10", "d14", "d19"] { try b.dataset(name).put("1", for: "key") }
        var events = synchronizer.events().makeAsyncIterator()
        try synchronizer.subscribe(names)
        await events.skip(to: "started d10,d14,d19")
        await events.skip(to: "ended d10,d14,d19")
        await time.untilAsleep(SyncLimits.watchesAtOnceMax)
        #expect(transport.watchCount == SyncLimits.watchesAtOnceMax)
        await synchronizer.shutdown()
    }

    /// An error of one question is told, and the pause after it is that of a failure.
    @Test func aQuestionThatFailsIsAskedAgain() async throws {
        let names = (10..<14).map { "d\($0)" }
        for name in names { try b.dataset(name).put("0", for: "key") }
        let failsNext = Mutex(false)
        let transport = CountingTransport(b.transport) { _ in
            let fails = failsNext.withLock { fails in
                defer { fails = false }
                return fails
            }
            return fails ? SyncError(.unauthorized, "the test's token") : nil
        }
        let synchronizer = synchronizer(transport, itemsMax: 1)
        try await synchronizer.synchronize()
        var events = synchronizer.events().makeAsyncIterator()
        failsNext.withLock { $0 = true }
        try synchronizer.subscribe(names)
        await events.skip(to: "background unauthorized")
        await time.untilAsleep()
        try b.dataset("d13").put("1", for: "key")
        time.advance(by: .seconds(1))
        await events.skip(to: "local d13 key")
        await synchronizer.shutdown()
    }
}
