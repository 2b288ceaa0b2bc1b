import Synchronization
public import Tidemark

// Subscriptions: one task asks the peer for news of all subscribed datasets and has them exchanged
// when there is any.
//
//   peer known? ─no─▶ a run ─▶ ...
//     │ yes
//     ▼
//   watch (waits at the peer) ─ news ─▶ a run of those datasets ─▶ ...
//
// A notice is a count. It counts as done when this side's checkpoint has reached it; as long as
// it has not (the run failed, a conflict is pending), the next question waits as after a failure.

/// Which datasets are watched.
struct Subscriptions: Hashable, Sendable {
    var names: Set<String> = []
    /// Besides those, all that there are here.
    var isAll = false

    var isEmpty: Bool { names.isEmpty && !isAll }
}

/// That a dataset of a peer has come to a count: what a peer's push of any kind (a long poll, a
/// message queue, a mobile push service) has to carry.
public struct SyncNotice: Hashable, Sendable {
    public let dataset: String
    /// The peer's count of the dataset.
    public let syncCount: SyncCount
    /// Whose count it is.
    public let peer: ReplicaID

    public init(dataset: String, syncCount: SyncCount, peer: ReplicaID) {
        self.dataset = dataset
        self.syncCount = syncCount
        self.peer = peer
    }
}

extension Synchronizer {
    /// Has these datasets exchanged in the background whenever the peer announces that they
    /// changed there, until ``unsubscribe(_:)`` or ``unsubscribeAll()``.
    ///
    /// A dataset that neither side has yet may be subscribed to. Over a transport or a peer that
    /// cannot hold back an answer, the peer is asked at ``SynchronizerOptions/pollInterval``.
    /// Subscriptions last as long as the synchronizer. The deletion of a dataset is not announced.
    public func subscribe(_ names: [String]) {
        changeSubscriptions { $0.names.formUnion(names) }
    }

    /// Subscribes to all datasets that there are here, whichever they are at the time.
    public func subscribeAll() {
        changeSubscriptions { $0.isAll = true }
    }

    /// Ends the subscription to these datasets, but for those that ``subscribeAll()`` covers.
    public func unsubscribe(_ names: [String]) {
        changeSubscriptions { $0.names.subtract(names) }
    }

    /// Ends all subscriptions. A run that only they had asked for is cancelled, and has ended when
    /// this returns.
    public func unsubscribeAll() async {
        let task = background.withLock { work in
            work.subscriptions = Subscriptions()
            defer { work.watching = nil }
            return work.watching
        }
        task?.cancel()
        await task?.value
    }

    /// The names that were subscribed to one by one, in their order.
    public var subscriptions: [String] {
        background.withLock { $0.subscriptions.names.sorted() }
    }

    /// Takes note of an announcement that came by other ways, and has the dataset exchanged in the
    /// background if the announced count is ahead of what is here.
    ///
    /// - Returns: whether it was. The run has ended then, well or not.
    /// - Throws: `store`.
    @discardableResult
    public func receive(_ notice: SyncNotice) async throws(SyncError) -> Bool {
        let reached = try runner.pulledThrough(notice.dataset, of: notice.peer)
        guard notice.syncCount > reached else { return false }
        await queue.runInBackground([notice.dataset])
        return true
    }

    private func changeSubscriptions(_ change: (inout Subscriptions) -> Void) {
        background.withLock { work in
            let before = work.subscriptions
            change(&work.subscriptions)
            guard work.subscriptions != before, !queue.isClosed else { return }
            // The question that is on its way is about others.
            work.watching?.cancel()
            let (runner, queue, subscriptions) = (self.runner, self.queue, work.subscriptions)
            work.watching =
                subscriptions.isEmpty
                ? nil : Task { await runner.watch(subscriptions, queue) }
        }
    }
}

extension SyncRunner {
    /// Until the task is cancelled.
    fileprivate func watch(_ subscriptions: Subscriptions, _ queue: RunQueue) async {
        var failures = 0
        while !Task.isCancelled {
            var delay: Duration?
            do throws(SyncError) {
                switch try await step(subscriptions, queue) {
                case .goesOn: failures = 0
                case .rests: (failures, delay) = (0, options.pollInterval)
                case .isBehind: failures += 1
                }
            } catch {
                guard !Task.isCancelled else { return }
                failures += 1
                events.send(.backgroundFailure(error))
            }
            if failures > 0 {
                delay = options.backOff.delay(after: failures, random: environment.random())
            }
            guard let delay else { continue }
            do throws(CancellationError) {
                // Never none at all, whatever the options say: there may be no await in between.
                try await environment.sleep(for: max(delay, .milliseconds(1)))
            } catch {
                return
            }
        }
    }

    private enum Step {
        /// Ask again.
        case goesOn
        /// There was nothing, and the peer did not wait for it.
        case rests
        /// What was announced did not arrive, or there is no peer to ask yet.
        case isBehind
    }

    private func step(
        _ subscriptions: Subscriptions, _ queue: RunQueue
    ) async throws(SyncError) -> Step {
        try await untilConnected()
        var names = subscriptions.names
        if subscriptions.isAll {
            let ours = try engine { () throws(StoreError) in try store.datasetNames() }
            names.formUnion(ours)
        }
        guard names.count <= SyncLimits.watchedDatasetsMax else {
            throw SyncError(
                .tooLarge,
                "\(names.count) datasets are subscribed to and \(SyncLimits.watchedDatasetsMax) "
                    + "can be; subscribe to fewer by name, or synchronise at an interval")
        }
        guard let peer = status.peer else {
            // Who the peer is, and what it has, an exchange tells.
            await queue.runInBackground(names.isEmpty ? nil : names)
            return status.peer == nil ? .isBehind : .goesOn
        }
        guard !names.isEmpty else { return .rests }
        var items: [WatchRequest.Item] = []
        for name in names.sorted() {
            items.append(
                WatchRequest.Item(dataset: name, since: try pulledThrough(name, of: peer)))
        }
        let answer: WatchAnswer
        do throws(SyncError) {
            answer = try await PeerConnection(transport: transport).watch(
                WatchRequest(
                    from: store.replicaID, to: peer,
                    waitMilliseconds: SyncLimits.watchMillisecondsMax, items: items))
        } catch {
            guard error.code == .peerChanged else { throw error }
            forgetPeer()
            return .goesOn
        }
        guard !answer.news.isEmpty else { return answer.hasWaited ? .goesOn : .rests }
        await queue.runInBackground(Set(answer.news.map(\.dataset)))
        for item in answer.news {
            guard try pulledThrough(item.dataset, of: peer) >= item.since else {
                return .isBehind
            }
        }
        return .goesOn
    }

    /// Up to which of the peer's changes of a dataset everything is here.
    func pulledThrough(_ name: String, of peer: ReplicaID) throws(SyncError) -> SyncCount {
        try engine(name) { () throws(StoreError) in
            try store.datasetForSync(name, creating: false)?.checkpoint(for: peer).pulledThrough
                ?? .zero
        }
    }
}
