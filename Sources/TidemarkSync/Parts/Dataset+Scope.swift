public import Tidemark

/// What becomes of records here that do not belong to the scope, or no longer do.
public enum OutOfScopeAction: Hashable, Sendable {
    /// They go from this store, and from no other: writes of its own, and what was here while the
    /// dataset was whole, once a peer that keeps everything has them.
    case drop
    /// They stay as they were when they were last told of.
    case keep
}

extension Dataset {
    /// The part of the dataset that is kept here; nil if all of it is. While a dataset becomes
    /// whole again it is ``SyncScope/everything``. O(log n).
    ///
    /// - Throws: `corruption` if it cannot be read, `closed`, `inputOutput`.
    public func syncScope() throws(StoreError) -> SyncScope? {
        try PartBook(self)?.part.scope
    }

    /// Keeps only a part of the dataset here from now on: a *partial replica*. The next exchange
    /// with each peer brings what the scope has in addition. What does not belong to it goes now,
    /// or, if the dataset was kept whole, with the next exchange: a peer must have it.
    ///
    /// ```swift
    /// try orders.setSyncScope(.prefix("berlin/"))
    /// try await orders.synchronize(with: hub)
    /// ```
    ///
    /// A partial replica answers those only that keep no more than it does: any other exchange that
    /// a store begins with it ends with ``SyncError/Code/partialReplica`` for this dataset. Its own
    /// writes leave it as ever, whether they belong to the scope or not, for a peer that keeps
    /// everything.
    ///
    /// O(n), durable as the store's writes are.
    ///
    /// - Parameters:
    ///   - scope: nil to keep the whole dataset again. It counts as whole, and answers others, from
    ///     the end of the next exchange that brings all of it.
    ///   - action: also for what leaves the scope later.
    /// - Returns: how many records went.
    /// - Throws: `invalidArgument` if the scope is beyond its bounds, `readOnly`, `closed`,
    ///   `diskFull`, `inputOutput`, `corruption`, `writerStopped`.
    @discardableResult
    public func setSyncScope(
        _ scope: SyncScope?, leaving action: OutOfScopeAction = .drop
    ) throws(StoreError) -> Int {
        try scope?.checkBounds()
        // What was swept may go.
        try SweepBook.forgetAll(of: self)
        while true {
            guard let book = try PartBook(self) else {
                guard let scope else { return 0 }
                // All that a peer had told until now is here.
                // So far from the end that no number of scopes comes there.
                let part = PartRecord(
                    generation: max(1, store.randomNumber() >> 1), scope: scope, action: action,
                    isFirst: true, isHandingOver: true, former: .everything)
                if try PartBook.begin(part, self) { break }
                continue
            }
            let next = book.part.following(scope, action)
            guard next != book.part else { return 0 }
            if try book.change(to: next) { break }
        }
        try noteScopeChanged()
        return try sweepPart()
    }

    /// So that an exchange of all datasets looks at this one.
    private func noteScopeChanged() throws(StoreError) {
        guard let book = try PartBook(self) else { return }
        var batch = ReplicationBatch()
        batch.notes = [book.note(PartProgress(generation: book.part.generation), with: .nobody)]
        _ = try replicate(batch)
    }

    // MARK: - What does not belong to it

    /// Lets go what does not belong to the part that is kept, if that is asked for, and notes that
    /// it is not handed on. O(n).
    ///
    /// - Returns: how many records went.
    @discardableResult
    func sweepPart() throws(StoreError) -> Int {
        guard var book = try PartBook(self) else { return 0 }
        let part = book.part
        let isLettingGo = store.has(.scopeDropsWhatMatches)
        let unsent = try UnsentWrites(self)
        let cursor: RecordCursor
        do throws(StoreError) {
            cursor = try records(includingDeleted: true)
        } catch {
            guard error.code == .datasetNotFound else { throw error }
            return 0
        }
        var dropped = 0
        var drops: [LocalDrop] = []
        var lost = VersionVector()
        while let record = try cursor.next() {
            let belongs = part.scope.keeps(record) && !isLettingGo
            guard !record.isDropped, !belongs, !unsent.contains(record) else { continue }
            lost.formUnion(record.version.vector)
            guard part.action == .drop, !part.isHandingOver, !record.isDeleted else { continue }
            drops.append(LocalDrop(key: record.key, expected: record.version))
            guard drops.count >= SyncLimits.dropsAtOnce else { continue }
            try book.lose(lost, to: .nobody)
            dropped += try drop(drops)
            drops = []
        }
        try book.lose(lost, to: .nobody)
        return dropped + (try drop(drops))
    }

    /// Lets records go that are as they were.
    ///
    /// - Returns: how many were.
    func drop(_ drops: [LocalDrop]) throws(StoreError) -> Int {
        var batch = ReplicationBatch()
        batch.drops = drops
        while !batch.drops.isEmpty {
            let moved = Set(try replicate(batch))
            if moved.isEmpty { break }
            batch.drops.removeAll { moved.contains($0.key) }
        }
        return batch.drops.count
    }
}

extension PartRecord {
    /// What takes its place.
    ///
    /// - Parameter scope: nil to keep the whole dataset again.
    fileprivate func following(_ scope: SyncScope?, _ action: OutOfScopeAction) -> PartRecord {
        var next = self
        next.action = action
        next.isEnding = scope == nil
        let wanted = scope ?? .everything
        guard wanted.encoded != self.scope.encoded else { return next }
        next.scope = wanted
        next.former = self.scope
        // The number was read from disk, where any may stand.
        next.generation &+= 1
        next.isFirst = false
        return next
    }
}

/// Tells what no peer is known to have: writes under the ids of this store, and versions that have
/// seen such.
struct UnsentWrites {
    private let ownIDs: [ReplicaID]
    private let acknowledged: VersionVector
    private let handedThrough: SyncCount

    init(_ dataset: Dataset) throws(StoreError) {
        ownIDs = dataset.store.ownIDs
        let handed = try dataset.handedOver()
        acknowledged = handed.vector
        // The position goes past what was left out of a push.
        handedThrough =
            try FailedBook(dataset, .outgoing).isEmpty ? handed.through : .zero
    }

    func contains(_ record: Record) -> Bool { contains(record.version, at: record.syncCount) }

    /// - Parameter syncCount: of the version, in our order of change.
    func contains(_ version: Version, at syncCount: SyncCount) -> Bool {
        syncCount > handedThrough
            && ownIDs.contains { version.vector[$0] > acknowledged[$0] }
    }
}

extension Store {
    /// The store's present id, and those under which it wrote before.
    var ownIDs: [ReplicaID] { [replicaID] + formerReplicaIDs }
}
