import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// What is written here leaves by itself a little later, and what came from the peer does not.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct WriteScheduleTests {
    let a: TestReplica
    let b: TestReplica
    let time = VirtualEnvironment()

    init() throws { (a, b) = try TestReplica.two() }

    private func synchronizer(
        _ transport: any SyncTransport, _ options: SynchronizerOptions = SynchronizerOptions()
    ) -> Synchronizer {
        Synchronizer(
            store: a.store, transport: transport, options: options,
            schedule: SyncSchedule(afterWrite: .seconds(2)), environment: time)
    }

    /// Labels up to the next completion.
    private func run(_ events: inout SyncEvents.Iterator) async -> [String] {
        var labels: [String] = []
        while let event = await events.next() {
            labels.append(event.label)
            if event.isCompletion { break }
        }
        return labels
    }

    @Test func writesInARowLeaveTogether() async throws {
        try a.dataset().put("0", for: "early")
        let synchronizer = synchronizer(b.transport)
        var events = synchronizer.events().makeAsyncIterator()
        synchronizer.start()
        #expect(await run(&events) == ["started all", "remote notes early", "ended notes"])
        for round in 1...3 {
            for number in 0..<4 { try a.dataset().put("\(round)", for: "key \(number)") }
            await time.untilAsleep()
            try a.dataset("plans").put("\(round)", for: "key")
            time.advance(by: .milliseconds(1_999))
            #expect(!synchronizer.isRunning)
            time.advance(by: .milliseconds(1))
            let labels = await run(&events)
            #expect(labels.first == "started notes,plans")
            #expect(labels.last == "ended notes,plans")
            try expectEqual([a, b])
            try expectEqual([a, b], dataset: "plans")
        }
        try a.store.deleteDataset("plans")
        await time.untilAsleep()
        time.advance(by: .seconds(2))
        #expect(await run(&events) == ["started plans", "ended plans"])
        #expect(try b.store.existingDataset("plans") == nil)
        await synchronizer.shutdown()
    }

    /// A pull is a change here, too; that the peer has it is known.
    @Test func whatCameFromThePeerSetsOffNothing() async throws {
        let synchronizer = synchronizer(b.transport)
        var events = synchronizer.events().makeAsyncIterator()
        synchronizer.start()
        _ = await run(&events)
        for number in 0..<3 {
            try b.dataset().put("\(number)", for: "theirs")
            try await synchronizer.synchronize()
            #expect(
                await run(&events) == ["started all", "local notes theirs", "ended notes"])
            // It has looked at what came, and waits for the next change instead of the time.
            try await eventually("waiting") { a.store.sleeperCount == 1 }
            #expect(time.slept.isEmpty)
        }
        try a.dataset().put("1", for: "ours")
        await time.untilAsleep()
        time.advance(by: .seconds(2))
        #expect(
            await run(&events) == ["started notes", "remote notes ours", "ended notes"])
        await synchronizer.shutdown()
    }

    /// What a third replica brings here goes on to the peer: a store in the middle passes it on.
    @Test func whatOthersBroughtIsPassedOn() async throws {
        let directory = TemporaryDirectory()
        let c = try TestReplica("c", in: directory)
        let synchronizer = synchronizer(b.transport)
        var events = synchronizer.events().makeAsyncIterator()
        synchronizer.start()
        _ = await run(&events)
        try c.dataset().put("1", for: "key")
        try await c.store.synchronize(with: a.transport)
        await time.untilAsleep()
        time.advance(by: .seconds(2))
        #expect(await run(&events) == ["started notes", "remote notes key", "ended notes"])
        try expectEqual([a, b, c])
        await synchronizer.shutdown()
    }

    @Test func whatDoesNotArriveIsTriedAgain() async throws {
        let isDown = Mutex(false)
        let transport = CountingTransport(b.transport) { _ in
            isDown.withLock { $0 } ? SyncError(.unauthorized, "the test's token") : nil
        }
        let synchronizer = synchronizer(
            transport, SynchronizerOptions(backOff: BackOff(first: .seconds(8), jitter: 0)))
        var events = synchronizer.events().makeAsyncIterator()
        synchronizer.start()
        _ = await run(&events)
        isDown.withLock { $0 = true }
        try a.dataset().put("1", for: "key")
        for wait in [2, 8, 16] {
            await time.untilAsleep()
            #expect(time.slept.last == .seconds(wait))
            time.advance(by: .seconds(wait))
            #expect(
                await run(&events) == [
                    "started notes", "background unauthorized", "failed unauthorized",
                ])
        }
        isDown.withLock { $0 = false }
        await time.untilAsleep()
        try a.dataset().put("2", for: "other")
        time.advance(by: .seconds(32))
        #expect(
            await run(&events) == ["started notes", "remote notes key,other", "ended notes"])
        try expectEqual([a, b])
        await synchronizer.shutdown()
    }

    @Test func stoppingEndsIt() async throws {
        let synchronizer = synchronizer(b.transport)
        var events = synchronizer.events().makeAsyncIterator()
        synchronizer.start()
        _ = await run(&events)
        try a.dataset().put("1", for: "key")
        await time.untilAsleep()
        await synchronizer.stop()
        #expect(!synchronizer.isStarted)
        time.advance(by: .seconds(60))
        await synchronizer.shutdown()
        #expect(await events.next() == nil)
        #expect(try b.dataset().text("key") == nil)
    }
}
