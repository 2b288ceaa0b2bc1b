import Synchronization
public import Tidemark

// Which datasets are watched is kept in the store, so that it holds in the next life of the
// process, too. A change is durable before it is acted upon; whoever watches then goes by what is
// kept. How the peer is asked for news says `SyncRunner+Watch.swift`.

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
    /// The store keeps the subscription, durably: a later synchronizer of the same
    /// ``SynchronizerOptions/name`` goes on with it once it is started. Any number of datasets may
    /// be subscribed to, also such as neither side has yet. Over a transport or a peer that cannot
    /// hold back an answer, the peer is asked at ``SynchronizerOptions/pollInterval``. The deletion
    /// of a dataset is not announced.
    ///
    /// - Throws: `store`, with `invalidArgument` for a name that no dataset can have. Nothing was
    ///   changed then.
    public func subscribe(_ names: [String]) throws(SyncError) {
        for name in names {
            try engine(name) { () throws(StoreError) in
                _ = try store.datasetForSync(name, creating: false)
            }
        }
        try changeSubscriptions { $0.names.formUnion(names) }
    }

    /// Subscribes to all datasets that there are here, whichever they are at the time.
    ///
    /// - Throws: `store`.
    public func subscribeAll() throws(SyncError) {
        try changeSubscriptions { $0.isAll = true }
    }

    /// Ends the subscription to these datasets, but for those that ``subscribeAll()`` covers.
    ///
    /// - Throws: `store`. Nothing was changed then.
    public func unsubscribe(_ names: [String]) throws(SyncError) {
        try changeSubscriptions { $0.names.subtract(names) }
    }

    /// Ends all subscriptions. A run that only they had asked for is cancelled, and has ended when
    /// this returns.
    ///
    /// - Throws: `store`. Nothing is watched then, but the subscriptions are still kept.
    public func unsubscribeAll() async throws(SyncError) {
        await stopWatching()
        try changeSubscriptions { $0 = Subscriptions() }
    }

    /// The names that are subscribed to one by one, in their order. O(n).
    ///
    /// - Throws: `store`.
    public var subscriptions: [String] {
        get throws(SyncError) { try keptSubscriptions().names.sorted() }
    }

    /// Whether all datasets are subscribed to.
    ///
    /// - Throws: `store`.
    public var isSubscribedToAll: Bool {
        get throws(SyncError) { try keptSubscriptions().isAll }
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

    /// Goes on with what is kept.
    func resumeSubscriptions() {
        do throws(SyncError) {
            try changeSubscriptions { _ in }
        } catch {
            runner.events.send(.backgroundFailure(error))
        }
    }

    /// Ends the watching, and no subscription.
    func stopWatching() async {
        let task = background.withLock { work in
            defer { work.watching = nil }
            return work.watching
        }
        task?.cancel()
        await task?.value
    }

    private func keptSubscriptions() throws(SyncError) -> Subscriptions {
        try engine { () throws(StoreError) in
            try SynchronizerBook(store, name: runner.options.name).subscriptions()
        }
    }

    /// Changes what is kept, and then what is watched. Under one lock, so that of two changes at a
    /// time the later one is the one that is watched, too.
    private func changeSubscriptions(
        _ change: (inout Subscriptions) -> Void
    ) throws(SyncError) {
        try background.withLock { work throws(SyncError) in
            let kept = try engine { () throws(StoreError) in
                let book = try SynchronizerBook(store, name: runner.options.name)
                let before = try book.subscriptions()
                var after = before
                change(&after)
                try book.replace(before, by: after)
                return after
            }
            guard !queue.isClosed, work.watching == nil || work.watched != kept else { return }
            // The question that is on its way is about others.
            work.watching?.cancel()
            work.watched = kept
            work.watching =
                kept.isEmpty ? nil : Task { [runner, queue] in await runner.watch(kept, queue) }
        }
    }
}
