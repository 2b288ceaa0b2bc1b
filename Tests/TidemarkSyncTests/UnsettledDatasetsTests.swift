import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// A conflict that waits, or a record that failed, in one dataset: no other one is later for it.
///
///     notes   ─ conflict ─── 300 s ──────────────────▶ asked again
///     plans   ──────────────── news ─▶ here at once
struct UnsettledDatasetsTests {
    let a: TestReplica
    let b: TestReplica
    let time = VirtualEnvironment()

    init() throws { (a, b) = try TestReplica.two() }

    private let slow = BackOff(first: .seconds(300), jitter: 0)

    /// Both have written the same key of `notes`; `plans` is there on both sides.
    private func makeConflict() throws {
        try a.dataset("plans").put("0", for: "key")
        try b.dataset("plans").put("0", for: "other")
        try a.dataset().put("ours", for: "key")
        try b.dataset().put("theirs", for: "key")
    }

    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: [false, true])
    func newsOfOthersComeWhileAConflictWaits(canWait: Bool) async throws {
        try makeConflict()
        let transport: any SyncTransport =
            canWait
            ? SubscriptionTests.WatchTransport(b.responder, time) : CountingTransport(b.transport)
        let synchronizer = Synchronizer(
            store: a.store, transport: transport,
            options: SynchronizerOptions(
                exchange: SyncOptions(policy: .leavePending), backOff: slow,
                pollInterval: .seconds(7)),
            environment: time)
        _ = try await synchronizer.synchronizeEach()
        var events = synchronizer.events().makeAsyncIterator()
        // Announced, so that the watch meets the conflict itself.
        try b.dataset().put("theirs, later", for: "key")
        try synchronizer.subscribe(["notes", "plans"])
        await events.skip(to: "background conflictPending")
        await events.skip(to: "ended notes")
        for number in 0..<3 {
            await time.untilAsleep()
            try b.dataset("plans").put("\(number)", for: "key \(number)")
            if !canWait { time.advance(by: .seconds(7)) }
            await events.skip(to: "local plans key \(number)")
            await events.skip(to: "ended plans")
        }
        await synchronizer.shutdown()
        #expect(time.slept.allSatisfy { $0 < .seconds(300) })
        #expect(try a.dataset().pendingConflicts().count == 1)
    }

    @Test(
        .timeLimit(.minutes(Patience.minutes)),
        arguments: [MergePolicy.leavePending, .lastWriterWins])
    func writesToOthersLeaveWhatEverElseWaits(_ policy: MergePolicy) async throws {
        try makeConflict()
        struct Refusal: Error {}
        // Under the one policy a conflict waits, under the other one a record fails.
        let responder = SyncResponder(
            store: b.store,
            validate: { record in
                if record.valueText?.hasPrefix("bad") ?? false { throw Refusal() }
            })
        let synchronizer = Synchronizer(
            store: a.store, transport: InMemoryTransport(responder),
            options: SynchronizerOptions(
                exchange: SyncOptions(policy: policy), backOff: slow),
            schedule: SyncSchedule(afterWrite: .seconds(2)), environment: time)
        var events = synchronizer.events().makeAsyncIterator()
        synchronizer.start()
        await events.skip(to: "ended notes,plans")
        try a.dataset().put("bad", for: "more")
        await time.untilAsleep()
        time.advance(by: .seconds(2))
        await events.skip(to: "ended notes")
        for number in 0..<3 {
            try a.dataset("plans").put("\(number)", for: "key \(number)")
            await time.untilAsleep()
            time.advance(by: .seconds(2))
            await events.skip(to: "remote plans key \(number)")
            await events.skip(to: "ended plans")
        }
        await synchronizer.shutdown()
        #expect(time.slept.allSatisfy { $0 == .seconds(2) })
        #expect(try b.dataset().text("more") == nil)
    }

    @Test func anExchangeSaysThatOnlyFailedRecordsAreLacking() async throws {
        struct Refusal: Error {}
        let choosy = SyncResponder(
            store: b.store,
            validate: { record in
                if record.valueText == "bad" { throw Refusal() }
            })
        try a.dataset().put("bad", for: "key")
        await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: InMemoryTransport(choosy))
        }
        let later = try await a.dataset().synchronize(with: InMemoryTransport(choosy))
        #expect(later.lacksOnlyFailed && !later.isComplete)
        for number in 0..<3 { try b.dataset().put("\(number)", for: "theirs \(number)") }
        let cut = try await a.dataset().synchronize(
            with: InMemoryTransport(choosy), options: SyncOptions(recordsPerRunMax: 1))
        #expect(!cut.lacksOnlyFailed && !cut.isComplete)
        try a.dataset().put("good", for: "key")
        let whole = try await a.dataset().synchronize(with: InMemoryTransport(choosy))
        #expect(!whole.lacksOnlyFailed && whole.isComplete)
    }

    // MARK: - The pauses

    @Test func pausesGrowAndEndWithTheLastOne() {
        var unsettled = UnsettledDatasets(backOff: BackOff(first: .seconds(1), jitter: 0))
        #expect(unsettled.pause(at: 0) == nil && unsettled.due(at: 0).isEmpty)
        var now: UInt64 = 5_000
        unsettled.note(["x"], of: ["x", "y"], at: now, random: { 0 })
        for seconds in [1, 2, 4] {
            #expect(unsettled.pause(at: now) == .seconds(seconds))
            #expect(unsettled.due(at: now + 999).isEmpty)
            // News of others, or of the same, change nothing about it.
            unsettled.note([], of: ["y"], at: now, random: { 0 })
            unsettled.note(["x"], of: ["x"], at: now, random: { 0 })
            #expect(unsettled.pause(at: now) == .seconds(seconds))
            // A clock that goes back makes it no longer.
            #expect(unsettled.pause(at: 0) == .seconds(seconds))
            now += UInt64(seconds) * 1_000
            #expect(unsettled.due(at: now) == ["x"])
            unsettled.note(["x"], of: ["x"], at: now, random: { 0 })
        }
        unsettled.silence("x")
        #expect(unsettled.silenced == ["x"])
        unsettled.note([], of: ["x"], at: now, random: { 0 })
        #expect(unsettled.names.isEmpty && unsettled.silenced.isEmpty)
        unsettled.note(["z"], of: ["z"], at: now, random: { 0 })
        #expect(unsettled.pause(at: now) == .seconds(1))
    }

    @Test func whatNobodySubscribesToIsForgotten() {
        var unsettled = UnsettledDatasets(backOff: BackOff(first: .seconds(1), jitter: 0))
        unsettled.note(["x", "y"], of: ["x", "y"], at: 0, random: { 0 })
        unsettled.silence("y")
        unsettled.keep(["x", "z"])
        #expect(unsettled.names == ["x"] && unsettled.silenced.isEmpty)
        unsettled.keep(["z"])
        #expect(unsettled.pause(at: 0) == nil)
    }

    /// No dataset is lost, and none is asked about in between, over random runs.
    @Test(arguments: 0..<8)
    func whatIsUnsettledIsAskedAboutAgain(_ run: UInt64) {
        let seed = Seed.drawn().rawValue &+ run
        var random = SeededGenerator(seed: seed)
        var unsettled = UnsettledDatasets(backOff: BackOff(first: .milliseconds(100)))
        var expected: Set<String> = []
        var now: UInt64 = 1_000
        for _ in 0..<300 {
            now += UInt64.random(in: 0..<400, using: &random)
            let news = Set((0..<4).map { "\($0)" }.filter { _ in Bool.random(using: &random) })
            let due = unsettled.due(at: now)
            #expect(due.isEmpty || due == expected, "seed \(seed)")
            let ran = news.union(due)
            let left = ran.filter { _ in Bool.random(using: &random) }
            unsettled.note(left, of: ran, at: now, random: { random.next() })
            expected = expected.subtracting(ran).union(left)
            #expect(unsettled.names == expected, "seed \(seed)")
            let pause = unsettled.pause(at: now)
            #expect((pause == nil) == expected.isEmpty, "seed \(seed)")
            #expect(pause.map { $0 <= .seconds(300) } ?? true, "seed \(seed)")
            if !due.isEmpty, let pause { #expect(pause > .zero, "seed \(seed)") }
        }
    }

    @Test func millisecondsAreRoundedUp() {
        #expect(Duration.zero.millisecondsRoundedUp == 0)
        #expect(Duration.milliseconds(-5).millisecondsRoundedUp == 0)
        #expect(Duration.nanoseconds(1).millisecondsRoundedUp == 1)
        #expect(Duration.milliseconds(1_500).millisecondsRoundedUp == 1_500)
        #expect(Duration.seconds(Int64.max).millisecondsRoundedUp == .max)
    }
}
