import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// Exchanges that end before their time: cancelled at any point, or late. What was applied stays
/// whole, and the next exchange goes on from there.
struct InterruptionTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    private static let union = MergePolicy.custom { conflict in
        let all = Set(conflict.local.value ?? []).union(conflict.remote.value ?? [])
        return .value(all.sorted())
    }

    /// Three pages to pull, with two conflicts, and four to push.
    private func fill() async throws {
        for number: UInt8 in 0..<4 { try a.dataset().put([0], for: [number]) }
        try await a.dataset().synchronize(with: b.transport)
        for number: UInt8 in 0..<2 {
            try a.dataset().put([0, 1], for: [number])
            try b.dataset().put([0, 2], for: [number])
        }
        for number: UInt8 in 10..<15 { try b.dataset().put([number], for: [number]) }
        for number: UInt8 in 20..<28 { try a.dataset().put([number], for: [number]) }
    }

    private func healAndCheck(_ policy: MergePolicy) async throws {
        for replica in [a, b] {
            #expect(try replica.store.verify(threads: 1).damages.isEmpty)
            try replica.reopen()
        }
        let options = SyncOptions(policy: policy, pageRecordsMax: 3)
        try await a.dataset().synchronize(with: b.transport, options: options)
        try expectEqual([a, b])
        let again = try await a.dataset().synchronize(
            with: b.transport, options: Self.allowsNoConflict)
        #expect(again.pulled + again.pushed == 0)
        #expect(try a.dataset().records().collect().allSatisfy { !$0.isDirty })
        #expect(try a.dataset().count() == 4 + 5 + 8)
        for replica in [a, b] {
            #expect(try replica.store.verify(threads: 1).damages.isEmpty)
        }
    }

    private static let allowsNoConflict = SyncOptions(policy: .custom { _ in .stop })

    private static func cancelTask() {
        unsafe withUnsafeCurrentTask { task in unsafe task?.cancel() }
    }

    /// An exchange has hello, three pulls and four pushes; two points each.
    @Test(arguments: 1...8, InterposedTransport.Moment.allCases)
    func cancelledAtEveryMessage(
        _ number: Int, _ moment: InterposedTransport.Moment
    ) async throws {
        try await fill()
        let (dataset, responder) = (try a.dataset(), b.responder)
        let transport = InterposedTransport(responder) { point in
            guard point.number == number, point.moment == moment else { return }
            Self.cancelTask()
        }
        let task = Task {
            try await dataset.synchronize(
                with: transport, options: SyncOptions(policy: Self.union, pageRecordsMax: 3))
        }
        let error = await #expect(throws: SyncError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(transport.messageCount == number)
        try await healAndCheck(Self.union)
        #expect(try a.dataset().get([0]) == [0, 1, 2])
    }

    /// The handler of conflicts is the other thing that is waited for.
    @Test(arguments: 1...2, ["throws", "returns", "throws another error"])
    func cancelledInTheHandler(_ number: Int, _ way: String) async throws {
        try await fill()
        let dataset = try a.dataset()
        let (transport, count) = (b.transport, Counter())
        struct AnotherError: Error {}
        let task = Task {
            try await dataset.synchronize(
                with: transport,
                options: SyncOptions(
                    policy: .custom { conflict in
                        guard count.next() == number else { return .keepLocal }
                        Self.cancelTask()
                        switch way {
                        case "throws": throw CancellationError()
                        case "returns": return .keepLocal
                        default: throw AnotherError()
                        }
                    }, pageRecordsMax: 3))
        }
        let error = await #expect(throws: SyncError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(try b.dataset().get([0]) == [0, 2])
        try await healAndCheck(.keepLocal)
    }

    @Test func cancelledBeforeItBegins() async throws {
        try await fill()
        let (store, transport) = (a.store, InterposedTransport(b.responder) { _ in })
        let task = Task {
            Self.cancelTask()
            return await store.synchronizeEach(with: transport, datasets: ["notes"])
        }
        let report = await task.value
        #expect(report.error?.code == .cancelled)
        #expect(report["notes"]?.error?.code == .cancelled)
        #expect(transport.messageCount == 0)
        try await healAndCheck(Self.union)
    }

    /// A store that went back in time, written since, and healed a few records at a time.
    @Test(arguments: [1, 4, 9])
    func aRestoredStoreHealsAFewRecordsAtATime(_ recordsMax: Int) async throws {
        for number: UInt8 in 0..<10 { try a.dataset().put([0], for: [number]) }
        try await a.dataset().synchronize(with: b.transport)
        try a.backUp()
        for number: UInt8 in 5..<20 { try a.dataset().put([1], for: [number]) }
        try await a.dataset().synchronize(with: b.transport)
        try a.restore()
        // What is written now is later than what was lost.
        a.clock.putForward(bySeconds: 1)
        for number: UInt8 in 18..<24 { try a.dataset().put([2], for: [number]) }
        let options = SyncOptions(pageRecordsMax: 3, recordsPerRunMax: recordsMax)
        var runs = 0
        var isComplete = false
        while !isComplete, runs < 200 {
            isComplete = try await a.dataset().synchronize(
                with: b.transport, options: options
            ).isComplete
            runs += 1
        }
        #expect(isComplete)
        try await a.dataset().synchronize(with: b.transport)
        try expectEqual([a, b])
        let values = try b.dataset().records().collect().map { $0.value?.first }
        #expect(values == [UInt8](0..<24).map { $0 < 5 ? 0 : $0 < 18 ? 1 : 2 })
    }

    // MARK: - Deadlines

    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: 0...7)
    func aLateExchangeEndsAndGoesOnLater(_ goodMessages: Int) async throws {
        try await fill()
        let clock = ManualClock()
        var options = SyncOptions(
            policy: Self.union, pageRecordsMax: 3, deadline: .seconds(7))
        options.clock = clock
        let transport = HangingTransport(b.responder, after: goodMessages) { _ in clock.ring() }
        let report = await a.store.synchronizeEach(
            with: transport, datasets: ["notes"], options: options)
        #expect(report.firstError?.code == .timedOut)
        #expect(report.firstError?.message.contains("7.0 seconds") == true)
        #expect(report["notes"]?.error?.code == .timedOut)
        #expect(transport.messageCount == goodMessages + 1)
        // What was done until then is told, too: two pages of three records.
        if goodMessages == 3 { #expect(report["notes"]?.result?.pulled == 6) }
        try await healAndCheck(Self.union)
    }

    @Test(.timeLimit(.minutes(Patience.minutes)))
    func aLateExchangeOfOneDatasetThrows() async throws {
        try await fill()
        let clock = ManualClock()
        var options = SyncOptions(pageRecordsMax: 3, deadline: .milliseconds(20))
        options.clock = clock
        let transport = HangingTransport(b.responder, after: 2) { _ in clock.ring() }
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: transport, options: options)
        }
        #expect(error?.code == .timedOut)
        #expect(error?.dataset == "notes")
    }

    @Test(.timeLimit(.minutes(Patience.minutes)))
    func beforeTheDeadlineNothingIsDifferent() async throws {
        try await fill()
        var options = SyncOptions(
            policy: Self.union, pageRecordsMax: 3, deadline: .milliseconds(20))
        options.clock = ManualClock()
        let result = try await a.dataset().synchronize(with: b.transport, options: options)
        #expect(result.isComplete)
        try await healAndCheck(Self.union)
    }

    /// Cancelled from outside, an exchange with a deadline was cancelled and is not late.
    @Test(.timeLimit(.minutes(Patience.minutes)))
    func cancelledIsNotLate() async throws {
        try await fill()
        var options = SyncOptions(policy: Self.union, pageRecordsMax: 3, deadline: .seconds(1))
        options.clock = ManualClock()
        let (hangs, source) = AsyncStream.makeStream(of: Void.self)
        let transport = HangingTransport(b.responder, after: 3) { _ in source.yield() }
        let (dataset, chosen) = (try a.dataset(), options)
        let task = Task { try await dataset.synchronize(with: transport, options: chosen) }
        for await _ in hangs { break }
        task.cancel()
        let error = await #expect(throws: SyncError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        try await healAndCheck(Self.union)
    }
}

/// Numbers from 1.
private final class Counter: Sendable {
    private let count = Mutex(0)

    func next() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
}
