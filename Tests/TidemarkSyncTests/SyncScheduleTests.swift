import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// Background work in virtual time: by the clock, by the network, and the full exchange.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct SyncScheduleTests {
    let a: TestReplica
    let b: TestReplica
    let time = VirtualEnvironment()

    init() throws { (a, b) = try TestReplica.two() }

    @Test func runsByTheClockUntilStopped() async throws {
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport, schedule: SyncSchedule(interval: .seconds(60)),
            environment: time)
        var events = synchronizer.events().makeAsyncIterator()
        func run() async -> [String] {
            var labels: [String] = []
            while let event = await events.next() {
                labels.append(event.label)
                if event.isCompletion { break }
            }
            return labels
        }
        #expect(!synchronizer.isStarted)
        synchronizer.start()
        synchronizer.start()
        #expect(synchronizer.isStarted)
        #expect(await run() == ["started all", "ended "])
        for number in 0..<3 {
            try a.dataset().put("\(number)", for: "key")
            await time.untilAsleep()
            time.advance(by: .seconds(59))
            #expect(!synchronizer.isRunning)
            time.advance(by: .seconds(1))
            #expect(await run() == ["started all", "remote notes key", "ended notes"])
            #expect(try b.dataset().text("key") == "\(number)")
        }
        await time.untilAsleep()
        await synchronizer.stop()
        await synchronizer.stop()
        #expect(!synchronizer.isStarted)
        time.advance(by: .seconds(600))
        #expect(time.slept == Array(repeating: .seconds(60), count: 4))
        synchronizer.start()
        #expect(await run() == ["started all", "ended notes"])
        await synchronizer.shutdown()
    }

    @Test func anErrorDoesNotEndTheSchedule() async throws {
        let isDown = Mutex(true)
        let transport = CountingTransport(b.transport) { _ in
            isDown.withLock { $0 } ? SyncError(.unauthorized, "the test's token") : nil
        }
        let synchronizer = Synchronizer(
            store: a.store, transport: transport, schedule: SyncSchedule(interval: .seconds(60)),
            environment: time)
        let events = synchronizer.events()
        synchronizer.start()
        await time.untilAsleep()
        #expect(synchronizer.lastError?.code == .unauthorized)
        isDown.withLock { $0 = false }
        time.advance(by: .seconds(60))
        #expect(
            await collect(events, completions: 2).map(\.label) == [
                "started all", "background unauthorized", "failed unauthorized", "started all",
                "ended ",
            ])
        await synchronizer.shutdown()
        #expect(synchronizer.lastError == nil)
    }

    @Test func stoppingCancelsTheRunUnderWay() async throws {
        let gate = GatedTransport(b.transport)
        let synchronizer = Synchronizer(
            store: a.store, transport: gate, schedule: SyncSchedule(interval: .seconds(60)),
            environment: time)
        let events = synchronizer.events()
        synchronizer.start()
        await gate.untilArrived(1)
        await synchronizer.stop()
        #expect(!synchronizer.isRunning)
        #expect(
            await collect(events, completions: 1).map(\.label)
                == ["started all", "failed cancelled"])
    }

    // MARK: - Network

    @Test func withoutANetworkNothingIsSent() async throws {
        let transport = CountingTransport(b.transport)
        let network = ConnectivitySwitch(.offline)
        let synchronizer = Synchronizer(
            store: a.store, transport: transport, options: SynchronizerOptions(network: .freeOnly),
            connectivity: network, environment: time)
        for (state, code) in [
            (Connectivity.offline, SyncError.Code.offline), (.expensive, .expensiveNetwork),
        ] {
            network.set(state)
            let error = await #expect(throws: SyncError.self) {
                try await synchronizer.synchronize()
            }
            #expect(error?.code == code)
        }
        #expect(transport.count == 0)
        network.set(.free)
        try await synchronizer.synchronize()
        #expect(transport.count == 1)
    }

    @Test func waitingForTheNetworkEndsWhenItComes() async throws {
        try a.dataset().put("1", for: "key")
        let network = ConnectivitySwitch(.offline)
        let transport = CountingTransport(b.transport)
        let synchronizer = Synchronizer(
            store: a.store, transport: transport, options: SynchronizerOptions(network: .freeOnly),
            connectivity: network, environment: time)
        let waiting = (0..<3).map { _ in
            Task { try await synchronizer.synchronizeWhenConnected() }
        }
        network.set(.expensive)
        network.set(.offline)
        #expect(transport.count == 0)
        network.set(.free)
        for task in waiting { #expect(try await task.value.isComplete) }
        try expectEqual([a, b])
        // With a network there is nothing to wait for.
        #expect(try await synchronizer.synchronizeWhenConnected(["notes"]).isComplete)
    }

    @Test func waitingForTheNetworkCanBeCancelled() async throws {
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport, connectivity: ConnectivitySwitch(.offline),
            environment: time)
        let events = synchronizer.events()
        let waiting = Task { try await synchronizer.synchronizeWhenConnected() }
        await Task.yield()
        waiting.cancel()
        let error = await #expect(throws: SyncError.self) { try await waiting.value }
        #expect(error?.code == .cancelled)
        await synchronizer.shutdown()
        for await event in events { Issue.record("there was no run: \(event.label)") }
    }

    /// The network goes while the synchronizer waits for its next attempt.
    @Test func theReasonOfTheAttemptBeforeIsKept() async throws {
        let network = ConnectivitySwitch(.free)
        let transport = CountingTransport(b.transport) { _ in SyncError(.unreachable, "no route") }
        let synchronizer = Synchronizer(
            store: a.store, transport: transport, connectivity: network, environment: time)
        let call = Task { try await synchronizer.synchronize() }
        await time.untilAsleep()
        network.set(.offline)
        time.advance(by: .seconds(1))
        let error = await #expect(throws: SyncError.self) { try await call.value }
        #expect(error?.code == .offline)
        #expect(error?.message.contains("no route") == true)
        #expect(transport.count == 1)
    }

    @Test func aNetworkThatComesBackBeginsARun() async throws {
        let network = ConnectivitySwitch(.offline)
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport,
            schedule: SyncSchedule(interval: .seconds(3_600)), connectivity: network,
            environment: time)
        var events = synchronizer.events().makeAsyncIterator()
        synchronizer.start()
        await time.untilAsleep()
        try a.dataset().put("1", for: "key")
        network.set(.free)
        #expect(await events.next()?.label == "started all")
        #expect(await events.next()?.label == "remote notes key")
        #expect(await events.next()?.label == "ended notes")
        await synchronizer.shutdown()
        #expect(await events.next() == nil)
    }

    @Test func everyListenerHearsTheNewestState() async {
        let network = ConnectivitySwitch(.offline)
        var first = network.changes().makeAsyncIterator()
        #expect(await first.next() == .offline)
        network.set(.expensive)
        network.set(.free)
        var second = network.changes().makeAsyncIterator()
        #expect(await first.next() == .free)
        #expect(await second.next() == .free)
    }

    // MARK: - Full exchange

    private func isFull(_ messages: ArraySlice<SyncMessage>) -> Bool {
        messages.contains { message in
            guard case .pull(let pull) = message else { return false }
            return pull.since == .zero
        }
    }

    /// Measured from the last full exchange, however often there are others in between.
    @Test func fullExchangesComeDueWhateverElseRuns() async throws {
        let transport = CountingTransport(b.transport)
        let time = VirtualEnvironment(passesBySleeping: true)
        let synchronizer = Synchronizer(
            store: a.store, transport: transport,
            schedule: SyncSchedule(fullSyncAfter: .seconds(24 * 3_600)), environment: time)
        try b.dataset().put("1", for: "key")
        var fullRuns: [Int] = []
        for hour in 0..<60 {
            try b.dataset().put("\(hour)", for: "key \(hour)")
            let before = transport.count
            // One dataset alone is no full exchange of all.
            try await synchronizer.synchronize(hour % 5 == 1 ? ["notes"] : nil)
            if try isFull(transport.messages()[before...]) { fullRuns.append(hour) }
            try expectEqual([a, b])
            try await time.sleep(for: .seconds(3_600))
        }
        #expect(fullRuns == [0, 24, 48])
        // In the next life of the process it goes on from there.
        let second = Synchronizer(
            store: a.store, transport: transport,
            schedule: SyncSchedule(fullSyncAfter: .seconds(24 * 3_600)),
            lastFullSync: synchronizer.lastFullSync, environment: time)
        let before = transport.count
        try await second.synchronize()
        #expect(try !isFull(transport.messages()[before...]))
        try await second.synchronizeFully()
        #expect(try isFull(transport.messages()[before...]))
    }

    /// Both sides believe in an exchange that never was.
    @Test func aFullExchangeHealsPositionsThatAreAhead() async throws {
        for number in 0..<10 {
            try a.dataset().put("ours", for: "a\(number)")
            try b.dataset().put("theirs", for: "b\(number)")
        }
        for (here, there) in [(a, b), (b, a)] {
            let (ours, theirs) = (try here.dataset().syncCount, try there.dataset().syncCount)
            try here.dataset().remember(
                PeerCheckpoint(pulledThrough: theirs, pushedThrough: ours),
                of: there.store.replicaID)
        }
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport, environment: time)
        try await synchronizer.synchronizeFully()
        try expectEqual([a, b])
        #expect(try a.dataset().count() == 20)
    }
}
