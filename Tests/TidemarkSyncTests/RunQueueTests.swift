import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// One run at a time, and every caller gets the outcome of a run that began after its call.
///
///     A ──▶ [run 1 ............] ▶ A
///        B ──▶ (waits)           [run 2 ....] ▶ B, C
///           C ──▶ (waits)
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct RunQueueTests {
    let a: TestReplica
    let b: TestReplica
    let time = VirtualEnvironment(passesBySleeping: true)

    init() throws { (a, b) = try TestReplica.two() }

    private func synchronizer(_ transport: any SyncTransport) -> Synchronizer {
        Synchronizer(store: a.store, transport: transport, environment: time)
    }

    private func call(
        _ synchronizer: Synchronizer, _ names: [String]? = nil
    ) -> Task<SyncReport, any Error> {
        Task { try await synchronizer.synchronize(names) }
    }

    /// Returns when so many callers wait for the next run.
    private func untilWaiting(_ count: Int, _ queue: RunQueue) async {
        while queue.waitingCount < count { await Task.yield() }
    }

    @Test func whoComesDuringARunSharesTheNext() async throws {
        let gate = GatedTransport(b.transport)
        let synchronizer = synchronizer(gate)
        let events = synchronizer.events()
        try a.dataset("x").put("1", for: "key")
        try a.dataset("y").put("1", for: "key")
        let first = call(synchronizer, ["x"])
        await gate.untilArrived(1)
        let others = ["x", "y", "y"].map { call(synchronizer, [$0]) }
        await untilWaiting(3, synchronizer.queue)
        // Written after the first run began, and before the others' does.
        try a.dataset("y").put("2", for: "late")
        gate.open()
        #expect(try await first.value.datasets.map(\.dataset) == ["x"])
        #expect(try await others[0].value.datasets.map(\.dataset) == ["x"])
        #expect(try await others[1].value.datasets.map(\.dataset) == ["y"])
        #expect(try await others[2].value["y"]?.result?.pushed == 2)
        let seen = await collect(events, completions: 2)
        #expect(seen.filter(\.isStart).map(\.label) == ["started x", "started x,y"])
        expectOneCompletionEach(seen)
        #expect(try b.dataset("y").text("late") == "2")
    }

    @Test func aCancelledCallerLeavesTheOthersAlone() async throws {
        let gate = GatedTransport(b.transport)
        let synchronizer = synchronizer(gate)
        let first = call(synchronizer)
        await gate.untilArrived(1)
        let (second, third) = (call(synchronizer), call(synchronizer))
        await untilWaiting(2, synchronizer.queue)
        second.cancel()
        let error = await #expect(throws: SyncError.self) { try await second.value }
        #expect(error?.code == .cancelled)
        #expect(synchronizer.queue.waitingCount == 1)
        gate.open()
        _ = try await first.value
        _ = try await third.value
    }

    @Test func theLastCallerTakesTheRunAlong() async throws {
        let gate = GatedTransport(b.transport)
        let synchronizer = synchronizer(gate)
        let events = synchronizer.events()
        let first = call(synchronizer)
        await gate.untilArrived(1)
        let second = call(synchronizer)
        await untilWaiting(1, synchronizer.queue)
        // Nobody is left who waits for a second run: there is none.
        second.cancel()
        _ = await second.result
        first.cancel()
        let error = await #expect(throws: SyncError.self) { try await first.value }
        #expect(error?.code == .cancelled)
        #expect(!synchronizer.isRunning)
        gate.open()
        _ = try await synchronizer.synchronize()
        let seen = await collect(events, completions: 2)
        #expect(seen.map(\.label) == ["started all", "failed cancelled", "started all", "ended "])
    }

    @Test func shutdownAnswersEverybody() async throws {
        let gate = GatedTransport(b.transport)
        let synchronizer = synchronizer(gate)
        let events = synchronizer.events()
        let first = call(synchronizer)
        await gate.untilArrived(1)
        let second = call(synchronizer)
        await untilWaiting(1, synchronizer.queue)
        await synchronizer.shutdown()
        for task in [first, second, call(synchronizer)] {
            let error = await #expect(throws: SyncError.self) { try await task.value }
            #expect(error?.code == .cancelled)
        }
        var seen: [SyncEvent] = []
        for await event in events { seen.append(event) }
        #expect(seen.map(\.label) == ["started all", "failed cancelled"])
        for await _ in synchronizer.events() { Issue.record("an event after the end") }
        await synchronizer.shutdown()
    }

    /// Many callers, some of whom give up at some time: every one gets exactly one answer, and who
    /// gets a report has what it wrote before its call on the other side.
    @Test(arguments: 0..<6)
    func noCallerIsLost(_ run: UInt64) async throws {
        let seed = baseSeed &+ run
        print("noCallerIsLost: TIDEMARK_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        let transport = CountingTransport(b.transport) { number in
            (number &* 7 &+ Int(truncatingIfNeeded: seed)) % 11 == 0
                ? SyncError(.unreachable, "lost by the test") : nil
        }
        let synchronizer = synchronizer(transport)
        let events = synchronizer.events()
        let (a, b) = (self.a.store, self.b.store)
        var calls: [Task<Int, any Error>] = []
        for number in 0..<60 {
            let task = Task { () async throws -> Int in
                let name = "dataset-\(number % 3)"
                try a.dataset(name).put("\(number)", for: "key \(number)")
                do throws(SyncError) {
                    let report = try await synchronizer.synchronize([name])
                    #expect(report.datasets.map(\.dataset) == [name])
                    if report.isComplete {
                        let text = try? b.dataset(name).text("key \(number)")
                        #expect(text == "\(number)", "seed \(seed)")
                    }
                } catch {
                    #expect([.cancelled, .unreachable].contains(error.code), "seed \(seed)")
                }
                return 1
            }
            calls.append(task)
            if Int.random(in: 0..<3, using: &random) == 0 {
                calls.randomElement(using: &random)?.cancel()
            }
            if Int.random(in: 0..<3, using: &random) == 0 { await Task.yield() }
        }
        var answers = 0
        for task in calls { answers += try await task.value }
        #expect(answers == 60)
        #expect(!synchronizer.isRunning)
        await synchronizer.shutdown()
        var seen: [SyncEvent] = []
        for await event in events { seen.append(event) }
        expectOneCompletionEach(seen, "seed \(seed)")
        #expect(seen.contains { $0.isStart })
    }
}
