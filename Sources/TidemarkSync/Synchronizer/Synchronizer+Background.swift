import Synchronization
import Tidemark

/// The tasks of a ``Synchronizer`` that nobody waits for.
struct BackgroundWork: Sendable {
    /// By the clock, and when the network comes back.
    var scheduled: [Task<Void, Never>] = []
    /// Waits for the peer's announcements.
    var watching: Task<Void, Never>?
    /// Which datasets it asks about.
    var watched = Subscriptions()

    mutating func takeAll() -> [Task<Void, Never>] {
        defer { (scheduled, watching) = ([], nil) }
        return scheduled + [watching].compactMap { $0 }
    }
}

extension Synchronizer {
    /// Begins to synchronise all datasets in the background: at once, after each
    /// ``SyncSchedule/interval``, ``SyncSchedule/afterWrite`` those that have changed, and whenever
    /// a network that may be used comes back. Goes on with the subscriptions that the store keeps
    /// from an earlier synchronizer of this name. Without any of these there is nothing to begin.
    /// Calling it again changes nothing.
    ///
    /// Errors go to ``SyncDelegate/syncFailedInBackground(_:)`` and
    /// ``SyncEvent/backgroundFailure(_:)``, and the schedule goes on.
    public func start() {
        background.withLock { work in
            guard work.scheduled.isEmpty, !queue.isClosed else { return }
            if let interval = runner.schedule.interval {
                work.scheduled.append(clockTask(interval))
            }
            if let delay = runner.schedule.afterWrite {
                work.scheduled.append(writeTask(delay))
            }
            if let connectivity = runner.connectivity {
                work.scheduled.append(networkTask(connectivity))
            }
        }
        resumeSubscriptions()
    }

    /// Ends what goes by the clock and the network; a run that only they had asked for is
    /// cancelled. It has ended when this returns. Subscriptions go on. Calling it again, or before
    /// `start`, is fine.
    public func stop() async {
        let tasks = background.withLock { work in
            defer { work.scheduled = [] }
            return work.scheduled
        }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    /// Whether ``start()`` was called and ``stop()`` not yet.
    public var isStarted: Bool { background.withLock { !$0.scheduled.isEmpty } }

    // The tasks hold nothing of the synchronizer but its parts, so that one that was let go
    // without a word ends with its owner, and they with it.

    private func clockTask(_ interval: Duration) -> Task<Void, Never> {
        Task { [runner, queue] in
            while !Task.isCancelled {
                // Without a network there is nothing to do now: when it is back, the other task
                // sees to it.
                if runner.networkRefusal == nil {
                    await queue.runInBackground(nil)
                }
                do throws(CancellationError) {
                    try await runner.environment.sleep(for: max(interval, .milliseconds(1)))
                } catch {
                    return
                }
            }
        }
    }

    private func writeTask(_ delay: Duration) -> Task<Void, Never> {
        // From here on no change is missed. What is older leaves with the first run, which is the
        // business of the others if there are any.
        let changes = store.changedDatasets()
        let isAlone = runner.schedule.interval == nil && runner.connectivity == nil
        return Task { [runner, queue] in
            if isAlone { await queue.runInBackground(nil) }
            await runner.follow(changes, after: delay, queue)
        }
    }

    private func networkTask(_ connectivity: any ConnectivitySource) -> Task<Void, Never> {
        Task { [runner, queue] in
            // What there is at the start is the business of the clock, if there is one.
            var wasAllowed = runner.schedule.interval != nil && runner.networkRefusal == nil
            for await state in connectivity.changes() {
                let isAllowed = runner.options.network.refusal(of: state) == nil
                if isAllowed, !wasAllowed {
                    await queue.runInBackground(nil)
                }
                wasAllowed = isAllowed
            }
        }
    }
}

extension RunQueue {
    /// Takes part in a run although nobody is told what comes of it but by events, all of which
    /// are on their way when this returns.
    @discardableResult
    func runInBackground(_ names: Set<String>?) async -> Outcome {
        await join(SyncWish(names: names, isBackground: true))
    }
}
