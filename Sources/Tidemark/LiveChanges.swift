/// Changes of a dataset as they happen.
///
///     var changes = orders.liveChanges(since: saved, in: .prefix("open/")).makeAsyncIterator()
///     while let record = try await changes.next() {
///         apply(record)
///         save(changes.position)
///     }
///
/// The consumer pulls: a slow one costs the records of one small piece and eight bytes for each
/// of the dataset's changes in the logs, however much is written meanwhile, and holds no segment
/// or log longer than until the next one is sealed or compacted. It then goes on from where it was,
/// as long as the store can still tell what was deleted since; when it cannot, ``Iterator/next()``
/// throws `changesExpired`, and the dataset is to be read afresh.
public struct LiveChanges: AsyncSequence, Sendable {
    let dataset: Dataset
    let since: SyncCount
    let range: KeyRange

    public func makeAsyncIterator() -> Iterator {
        Iterator(ChangePull(dataset, since: since, in: range))
    }

    public struct Iterator: AsyncIteratorProtocol {
        private var pull: ChangePull

        init(_ pull: ChangePull) {
            self.pull = pull
        }

        /// The count to go on from in another life: everything up to here has been given, or is of
        /// keys that were not asked for. O(1).
        public var position: SyncCount { pull.position }

        public mutating func next() async throws(StoreError) -> Record? {
            try await next(isolation: nil)
        }

        /// The next change; nil when the task is cancelled or the store is closed.
        /// - Throws: `changesExpired` if the consumer fell so far behind that deletions it has
        ///   not seen are forgotten, or the dataset was deleted and made again; `datasetNotFound`
        ///   when the dataset is deleted, `corruption`, `inputOutput`.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(StoreError) -> Record? {
            while !Task.isCancelled {
                switch try nextStep() {
                case .record(let record): return record
                // Nothing of interest for a long while: let others have the thread.
                case .paused: await Task.yield()
                case .passEnded: continue
                case .caughtUp: await sleepUntilChanged()
                case nil: return nil
                }
            }
            return nil
        }

        /// nil if the store is closed.
        private mutating func nextStep() throws(StoreError) -> ChangePull.Step? {
            do {
                return try pull.next()
            } catch {
                guard error.code == .closed else { throw error }
                return nil
            }
        }

        private func sleepUntilChanged() async {
            let known = pull.position.rawValue
            let state = pull.dataset.state
            let engine = pull.dataset.engine
            await engine.waiters.wait(for: .named([state.name])) {
                // A dataset that is gone is news, too.
                engine.withLock { held in state.syncCount > known || !state.isVisible }
            }
        }
    }
}
