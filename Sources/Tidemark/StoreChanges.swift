/// A position in the changes of all datasets of a store on one replica: for each dataset the sync
/// count of the last change known.
public struct StorePosition: Hashable, Sendable {
    /// By name. A dataset that is missing here is not known at all.
    public var counts: [String: SyncCount]

    public init(_ counts: [String: SyncCount] = [:]) {
        self.counts = counts
    }

    /// Before every change.
    public static let zero = StorePosition()
}

/// What happened to a dataset.
public struct StoreChange: Hashable, Sendable {
    public enum Kind: Hashable, Sendable {
        /// A record was put or deleted: its newest version.
        case record(Record)
        /// The dataset was deleted with all that was in it.
        case datasetDeleted
        /// What changed since the position can no longer be told: `changesExpired` of this one
        /// dataset, or it was deleted and made again. Read the dataset afresh, now or later, and
        /// put what is found in the place of what is known; changes made after this was given
        /// follow.
        case datasetExpired
    }

    /// The name of the dataset.
    public let dataset: String
    public let kind: Kind
}

extension Store {
    /// What has changed in any dataset since a position, and then what changes from now on, until
    /// the task is cancelled or the store is closed.
    ///
    /// Each dataset's changes come in their order; nothing is said of the order among datasets. As
    /// with ``Dataset/liveChanges(since:in:)`` what changes twice while the consumer is busy is
    /// given once. Beginning costs O(datasets), and after that only those that change are looked
    /// at.
    ///
    /// - Parameters:
    ///   - position: where an earlier consumer came to; ``StorePosition/zero`` for everything.
    ///   - range: changes of other keys are passed over, and no records made of them.
    public func liveChanges(
        since position: StorePosition = .zero, in range: KeyRange = .all
    ) -> StoreChanges {
        StoreChanges(store: self, since: position, range: range)
    }
}

/// Changes of all datasets of a store as they happen.
///
///     var changes = store.liveChanges(since: saved).makeAsyncIterator()
///     while let change = try await changes.next() {
///         apply(change)
///         save(changes.position)
///     }
///
/// The consumer pulls, one dataset after the other; a slow one costs what ``LiveChanges`` costs,
/// and the names of the datasets that have changed.
public struct StoreChanges: AsyncSequence, Sendable {
    let store: Store
    let since: StorePosition
    let range: KeyRange

    public func makeAsyncIterator() -> Iterator {
        Iterator(store: store, position: since, range: range)
    }

    public struct Iterator: AsyncIteratorProtocol {
        private let store: Store
        private let range: KeyRange
        /// Where to go on from in another life. O(1).
        public private(set) var position: StorePosition
        private var mailbox: ChangeMailbox?
        /// Datasets to look at, the next one last.
        private var names: [String] = []
        private var pull: ChangePull?

        init(store: Store, position: StorePosition, range: KeyRange) {
            self.store = store
            self.position = position
            self.range = range
        }

        public mutating func next() async throws(StoreError) -> StoreChange? {
            try await next(isolation: nil)
        }

        /// The next change; nil when the task is cancelled or the store is closed.
        /// - Throws: `corruption`, `inputOutput`.
        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(StoreError) -> StoreChange? {
            while !Task.isCancelled, !store.engine.waiters.isClosed {
                if pull != nil {
                    switch try nextOfDataset() {
                    case .change(let change): return change
                    case .paused: await Task.yield()
                    case .ended: pull = nil
                    }
                } else if try !turnToNext() {
                    guard let mailbox else { continue }
                    await store.engine.waiters.wait(for: .all) { !mailbox.isEmpty }
                }
            }
            return nil
        }

        private enum Step {
            case change(StoreChange)
            case paused
            case ended
        }

        /// Begins with the next dataset that may have changed; false if there is none.
        private mutating func turnToNext() throws(StoreError) -> Bool {
            if mailbox == nil {
                // Opened before anything is looked at, so that no change falls between.
                mailbox = store.engine.waiters.openMailbox()
                names = try changedNames()
            } else if names.isEmpty, let mailbox {
                names = mailbox.takeAll().reversed()
            }
            guard let name = names.popLast() else { return false }
            let known: DatasetState?
            do {
                known = try store.engine.existingState(named: name)
            } catch let error where error.code == .closed {
                return true
            }
            guard let state = known else { return true }
            let since = position.counts[name] ?? .zero
            pull = ChangePull(Dataset(state, in: store), since: since, in: range)
            return true
        }

        /// Of those that have changed since the position, in reverse order.
        private func changedNames() throws(StoreError) -> [String] {
            let engine = store.engine
            var walk = try DatasetWalk(engine, .known)
            var names: [String] = []
            while let found = try walk.next() {
                let state = try walk.state(of: found)
                let known = position.counts[found.name]
                let hasChanged = engine.withLock { held in
                    state.isVisible ? state.syncCount > known?.rawValue ?? 0 : known != nil
                }
                if hasChanged { names.append(found.name) }
            }
            return names.reversed()
        }

        private mutating func nextOfDataset() throws(StoreError) -> Step {
            guard let name = pull?.dataset.name else { return .ended }
            do {
                switch try pull!.next() {
                case .record(let record):
                    position.counts[name] = pull!.position
                    return .change(StoreChange(dataset: name, kind: .record(record)))
                case .paused:
                    position.counts[name] = pull!.position
                    return .paused
                case .passEnded, .caughtUp:
                    // Whatever came after the pass began is in the mailbox.
                    position.counts[name] = pull!.position
                    return .ended
                }
            } catch {
                return try step(after: error, of: name)
            }
        }

        private mutating func step(
            after error: StoreError, of name: String
        ) throws(StoreError) -> Step {
            let dataset = pull?.dataset
            pull = nil
            switch error.code {
            case .closed:
                return .ended
            case .datasetNotFound:
                guard position.counts.removeValue(forKey: name) != nil else { return .ended }
                return .change(StoreChange(dataset: name, kind: .datasetDeleted))
            case .changesExpired:
                // Taken before the consumer reads afresh, so that nothing falls between. A store
                // that was closed just now is noticed by the next step.
                position.counts[name] = try? dataset?.syncCount
                return .change(StoreChange(dataset: name, kind: .datasetExpired))
            default:
                throw error
            }
        }
    }
}
