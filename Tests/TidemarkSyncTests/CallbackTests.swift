import Glibc
import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// Everything that an app hands in is called while no lock is held, and every run ends in exactly
/// one completion, whichever way it goes.
///
///     started ─▶ transport, merge, progress, pending, deletion ... ─▶ ended | failed, and no more
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct CallbackTests {
    /// The ways in which a run ends.
    enum Ending: String, CaseIterable, Sendable {
        case success, refusal, attemptsUsedUp, cancellation, deadline, shutdown, offline
        case handlerThrows, handlerStops, leftPending
        case discarded, recreated, keptAndStopped

        /// The one completion.
        var completion: String {
            switch self {
            case .refusal: "failed unauthorized"
            case .attemptsUsedUp: "failed unreachable"
            case .cancellation, .shutdown: "failed cancelled"
            case .deadline: "failed timedOut"
            case .offline: "failed offline"
            case .success, .handlerThrows, .handlerStops, .leftPending, .discarded, .recreated,
                .keptAndStopped:
                "ended notes"
            }
        }

        /// What the dataset failed with, in a run that ended.
        var datasetError: SyncError.Code? {
            switch self {
            case .handlerThrows, .handlerStops, .leftPending: .conflictPending
            case .keptAndStopped: .datasetDeleted
            default: nil
            }
        }

        /// What must have been called at least. A deadline may come before anything.
        var callbacks: Set<String> {
            switch self {
            case .success: ["network", "transport", "merge", "progress", "clock", "delegate"]
            case .refusal: ["network", "transport", "clock", "delegate"]
            case .attemptsUsedUp: ["network", "transport", "clock", "random", "delegate"]
            case .cancellation, .shutdown, .handlerThrows, .handlerStops:
                ["network", "transport", "merge", "clock", "delegate"]
            case .leftPending: ["network", "transport", "pending", "clock", "delegate"]
            case .deadline, .offline: ["network", "clock", "delegate"]
            case .discarded, .recreated, .keptAndStopped:
                ["network", "transport", "deletion", "clock", "delegate"]
            }
        }

        var isOfADeletion: Bool { [.discarded, .recreated, .keptAndStopped].contains(self) }
    }

    /// Does what an app may do in a callback, while one runs and on another thread: were any lock
    /// held meanwhile, it would wait for ever.
    final class Probe: Sendable {
        private struct State {
            var places: Set<String> = []
            /// Whether a lock was held once. One such find is enough to wait for.
            var isStuck = false
            weak var synchronizer: Synchronizer?
        }

        private let store: Store
        private let state = Mutex(State())

        init(_ store: Store) {
            self.store = store
        }

        func attach(_ synchronizer: Synchronizer) {
            state.withLock { $0.synchronizer = synchronizer }
        }

        var synchronizer: Synchronizer? { state.withLock { $0.synchronizer } }

        /// Where it was called.
        var places: Set<String> { state.withLock { $0.places } }

        func visit(_ place: String) {
            let (synchronizer, isStuck) = state.withLock { state in
                state.places.insert(place)
                return (state.synchronizer, state.isStuck)
            }
            guard !isStuck else { return }
            let store = store
            let threads = ThreadGroup()
            let finish = Finish()
            threads.start {
                do {
                    try store.dataset("probe").put("1", for: "key")
                    _ = try store.existingDataset("notes")?.count()
                    _ = try synchronizer?.subscriptions
                } catch {
                    finish.fail(error)
                }
                _ = (synchronizer?.isRunning, synchronizer?.isStarted, synchronizer?.peer)
                _ = (synchronizer?.lastError, synchronizer?.lastSuccess)
                _ = synchronizer?.events()
                finish.end()
            }
            guard finish.comes() else {
                // Its thread is left where it stands: nothing can free it.
                state.withLock { $0.isStuck = true }
                Issue.record("a lock is held while \(place) is called")
                return
            }
            threads.join()
            if let error = finish.error { Issue.record(error) }
        }
    }

    /// What became of a probe.
    private final class Finish: Sendable {
        private let state = Mutex<(isOver: Bool, error: (any Error)?)>((false, nil))

        var error: (any Error)? { state.withLock { $0.error } }

        func fail(_ error: any Error) { state.withLock { $0.error = error } }

        func end() { state.withLock { $0.isOver = true } }

        /// Looks again and again: a callback blocks the thread that it is called on, too.
        func comes() -> Bool {
            let begin = ContinuousClock.now
            while !state.withLock({ $0.isOver }) {
                guard ContinuousClock.now - begin < Patience.limit else { return false }
                usleep(100)
            }
            return true
        }
    }

    private struct ProbedNetwork: ConnectivitySource {
        let probe: Probe
        let inner: ConnectivitySwitch

        var connectivity: Connectivity {
            probe.visit("network")
            return inner.connectivity
        }

        func changes() -> AsyncStream<Connectivity> { inner.changes() }
    }

    private struct ProbedEnvironment: SyncEnvironment {
        let probe: Probe
        let inner = VirtualEnvironment(passesBySleeping: true)

        func now() -> UInt64 {
            probe.visit("clock")
            return inner.now()
        }

        func sleep(for duration: Duration) async throws(CancellationError) {
            try await inner.sleep(for: duration)
        }

        func random() -> UInt64 {
            probe.visit("random")
            return inner.random()
        }
    }

    actor Recorder: SyncDelegate {
        private let probe: Probe
        private(set) var labels: [String] = []

        init(_ probe: Probe) {
            self.probe = probe
        }

        private func note(_ event: SyncEvent) {
            probe.visit("delegate")
            labels.append(event.label)
        }

        /// Returns when so many calls have come, or at the end of all patience.
        func until(_ count: Int) async throws {
            let begin = ContinuousClock.now
            while labels.count < count, ContinuousClock.now - begin < Patience.limit {
                try await Task.sleep(for: .milliseconds(1))
            }
        }

        func syncStarted(datasets: [String]?) { note(.started(datasets: datasets)) }
        func syncChangedLocal(_ keys: [[UInt8]], in dataset: String) {
            note(.localChanged(dataset: dataset, keys: keys))
        }
        func syncChangedRemote(_ keys: [[UInt8]], in dataset: String) {
            note(.remoteChanged(dataset: dataset, keys: keys))
        }
        func syncSettled(_ conflicts: [SyncResult.Settlement], in dataset: String) {
            note(.conflictsSettled(dataset: dataset, conflicts))
        }
        func syncFoundPending(_ keys: [[UInt8]], in dataset: String) {
            note(.conflictsPending(dataset: dataset, keys: keys))
        }
        func syncFailedRecords(_ keys: [[UInt8]], in dataset: String) {
            note(.recordsFailed(dataset: dataset, keys: keys))
        }
        func syncFoundDeleted(_ deletion: DatasetDeletion, action: DatasetDeletedAction) {
            note(.datasetDeletedRemotely(deletion, action))
        }
        func syncFoundMerged(_ datasets: MergedDatasets, action: MergedDatasetsAction) {
            note(.datasetsMerged(datasets, action))
        }
        func syncFailedInBackground(_ error: SyncError) { note(.backgroundFailure(error)) }
        func syncEnded(_ report: SyncReport) { note(.ended(report)) }
        func syncFailed(_ error: SyncError) { note(.failed(error)) }
        func syncEventsLost(_ count: Int) { note(.lost(count)) }
    }

    private struct TestFailure: Error {}

    /// What goes wrong inside of the app's own code, or beside it.
    private static func exchange(
        _ ending: Ending, _ probe: Probe, cancel: @escaping @Sendable () -> Void
    ) -> SyncOptions {
        let merge: @Sendable (Conflict) async throws -> Resolution = { _ in
            probe.visit("merge")
            switch ending {
            case .handlerThrows: throw TestFailure()
            case .handlerStops: return .stop
            case .cancellation:
                cancel()
                try await sleepUntilCancelled()
            case .shutdown:
                Task { await probe.synchronizer?.shutdown() }
                try await sleepUntilCancelled()
            case .deadline:
                try await sleepUntilCancelled()
            default: break
            }
            return .keepLocal
        }
        var options = SyncOptions(
            policy: ending == .leftPending ? .leavePending : .custom(merge),
            onPending: { _ in probe.visit("pending") },
            progress: { _ in probe.visit("progress") })
        options.deletedDatasetHandler = { _ in
            probe.visit("deletion")
            return switch ending {
            case .discarded: .discardLocal
            case .recreated: .keepAndRecreate
            default: .keepAndStop
            }
        }
        return options
    }

    @Test(arguments: Ending.allCases)
    func everyEndingIsOneCompletionAndNoLockIsHeld(_ ending: Ending) async throws {
        let (a, b) = try TestReplica.two()
        if ending.isOfADeletion {
            try a.dataset().put("base", for: "both")
            try await a.store.synchronize(with: b.transport)
            try b.store.deleteDataset("notes")
        } else {
            try b.dataset().put("theirs", for: "both")
        }
        try a.dataset().put("ours", for: "both")

        let probe = Probe(a.store)
        let call = Mutex<Task<SyncReport, any Error>?>(nil)
        let exchange = Self.exchange(ending, probe) {
            let task = call.withLock { $0 }
            task?.cancel()
        }
        let transport = CountingTransport(b.transport) { _ in
            probe.visit("transport")
            return switch ending {
            case .refusal: SyncError(.unauthorized, "of the test")
            case .attemptsUsedUp: SyncError(.unreachable, "of the test")
            default: nil
            }
        }
        let gate = GatedTransport(transport)
        let recorder = Recorder(probe)
        let synchronizer = Synchronizer(
            store: a.store, transport: gate,
            options: SynchronizerOptions(
                exchange: exchange, deadline: ending == .deadline ? .seconds(1) : nil),
            connectivity: ProbedNetwork(
                probe: probe, inner: ConnectivitySwitch(ending == .offline ? .offline : .free)),
            delegate: recorder, environment: ProbedEnvironment(probe: probe))
        probe.attach(synchronizer)
        let events = synchronizer.events()
        let task: Task<SyncReport, any Error> = Task {
            try await synchronizer.synchronize(["notes"])
        }
        call.withLock { $0 = task }
        gate.open()
        let outcome = await task.result
        await synchronizer.shutdown()

        var seen: [SyncEvent] = []
        for await event in events { seen.append(event) }
        expectOneCompletionEach(seen)
        #expect(seen.filter(\.isCompletion).map(\.label) == [ending.completion])
        #expect(seen.last?.isCompletion == true)
        try await recorder.until(seen.count)
        #expect(await recorder.labels == seen.map(\.label))
        #expect(probe.places.isSuperset(of: ending.callbacks), "\(probe.places)")
        switch outcome {
        case .success(let report):
            #expect(ending.completion == "ended notes")
            #expect(report.isComplete && ending.datasetError == nil)
        case .failure(let error):
            let code = (error as? SyncError)?.code
            if let datasetError = ending.datasetError {
                #expect(code == datasetError)
                #expect(synchronizer.lastReport?["notes"]?.error?.code == datasetError)
            } else {
                #expect(code.map { "failed \($0)" } == ending.completion)
            }
        }
        try await expectNoHarm(ending, a, b, messages: transport.count)
    }

    /// Nothing was pushed that was not decided, and the next exchange ends well.
    private func expectNoHarm(
        _ ending: Ending, _ a: TestReplica, _ b: TestReplica, messages: Int
    ) async throws {
        switch ending {
        case .success, .recreated:
            #expect(try b.dataset().text("both") == "ours")
        case .discarded:
            #expect(try a.store.existingDataset("notes") == nil)
        case .keptAndStopped:
            #expect(try a.dataset().text("both") == "ours")
            #expect(try b.store.existingDataset("notes") == nil)
        case .refusal, .attemptsUsedUp, .cancellation, .deadline, .shutdown, .offline,
            .handlerThrows, .handlerStops, .leftPending:
            #expect(try b.dataset().text("both") == "theirs")
            #expect(try a.dataset().text("both") == "ours")
        }
        if ending == .attemptsUsedUp { #expect(messages == SynchronizerOptions().attemptsMax) }
        if ending == .offline { #expect(messages == 0) }
        try await a.store.synchronize(
            with: b.transport, options: SyncOptions(onDatasetDeleted: .discardLocal))
        try expectEqual([a, b])
    }

    /// A delegate may take its time: neither the run nor the caller waits for it.
    @Test func aDelegateThatNeverReturnsDelaysNobody() async throws {
        let (a, b) = try TestReplica.two()
        struct Stuck: SyncDelegate {
            let released: AsyncStream<Void>

            func syncStarted(datasets: [String]?) async {
                for await _ in released {}
            }
        }
        let (released, release) = AsyncStream.makeStream(of: Void.self)
        try a.dataset().put("1", for: "key")
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport, delegate: Stuck(released: released))
        for _ in 0..<3 { try await synchronizer.synchronize() }
        await synchronizer.shutdown()
        release.finish()
        try expectEqual([a, b])
    }
}
