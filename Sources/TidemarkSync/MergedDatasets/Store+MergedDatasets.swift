public import Tidemark

// Which datasets are to go into which: in a dataset of the store's own, under the name of the
// dataset into which they go, a zero byte and their own name. The value is form (1 or 2), counted
// origin, 8 bytes time and 16 bytes replica of the stamp that the dataset's life had then: one of
// the same name that is made later is another dataset. With form 2 there follow 8 bytes that say
// how much deletions had wiped, by which it is still known when another one of the same name, made
// elsewhere, was joined with it and gave it its stamp.

extension Store {
    /// Notes that a dataset is to go into another one, so that peers are told of it when they
    /// exchange that one: for whoever links two identities, mostly a hub. Notes of datasets that
    /// are gone by now are removed with it. O(notes of the target).
    ///
    /// - Parameters:
    ///   - merged: an existing dataset, and whose it was.
    ///   - target: the dataset into which it is to go; noted as one that nobody has made yet if it
    ///     is not there.
    /// - Throws: `invalidArgument` for a name or an origin out of bounds or a dataset into itself,
    ///   `datasetNotFound`, and what `put` throws.
    public func noteMerged(
        _ merged: MergedDataset, into target: String
    ) throws(StoreError) {
        guard merged.origin.utf8.count <= SyncLimits.originBytesMax, merged.name != target else {
            throw StoreError(
                .invalidArgument,
                "the dataset \(merged.name) cannot go into \(target): give it another name, and an "
                    + "origin of at most \(SyncLimits.originBytesMax) bytes")
        }
        guard let source = try existingDataset(merged.name) else {
            throw StoreError(
                .datasetNotFound,
                "there is no dataset \(merged.name) to be merged; correct the name")
        }
        guard let dataset = try datasetForSync(target, creating: true) else { return }
        let mark = try MergeMark(merged.origin, source)
        let known = try mergeNotes(into: target, limit: .max)
        guard !known.merged.contains(merged) else { return }
        let home = try systemDataset(.merged)
        let key = MergeMark.key(merged.name, target)
        var batch = ReplicationBatch()
        let stale = known.stale.filter { $0 != key }.prefix(SyncLimits.mergedDatasetsMax)
        batch.notes = stale.map { SystemNote(in: home, key: $0, value: nil) }
        batch.notes.append(SystemNote(in: home, key: key, value: mark.encoded))
        _ = try dataset.replicate(batch)
    }

    /// Datasets that are to go into one, and still exist, in the order of their names; at most
    /// ``SyncLimits/mergedDatasetsMax``.
    ///
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    public func mergedDatasets(into target: String) throws(StoreError) -> [MergedDataset] {
        try mergeNotes(into: target, limit: SyncLimits.mergedDatasetsMax).merged
    }

    /// Datasets that are to go into one, and the keys of notes about such as are gone: a dataset
    /// that was deleted never comes back with the stamp that the note names.
    ///
    /// - Parameter limit: how many datasets to find at most.
    private func mergeNotes(
        into target: String, limit: Int
    ) throws(StoreError) -> (merged: [MergedDataset], stale: [[UInt8]]) {
        guard let notes = try existingSystemDataset(.merged) else { return ([], []) }
        let prefix = SystemDataset.prefix(of: target)
        let cursor = try notes.records(in: .prefix(prefix))
        var merged: [MergedDataset] = []
        var stale: [[UInt8]] = []
        while merged.count < limit, let note = try cursor.next() {
            let bytes = Array(note.key.dropFirst(prefix.count))
            // Those of a later version stay.
            guard let name = String(validating: bytes, as: UTF8.self),
                let mark = MergeMark(decoding: note.value ?? [])
            else { continue }
            if let source = try existingDataset(name), try mark.isOf(source) {
                merged.append(MergedDataset(name: name, origin: mark.origin))
            } else {
                stale.append(note.key)
            }
        }
        return (merged, stale)
    }

    /// Moves the records of a dataset into another one, and deletes the emptied one. Each record
    /// goes in one atomic step, so that it is in one of the two at any time. The next exchanges
    /// hand over both: first what was moved, and when a peer has that, that it is gone from here.
    ///
    /// Of a key that both have with different values the policy decides: the target's record is the
    /// local one, and there is no ancestor. Records for which it decides nothing stay, and so do
    /// those to which a write is held in either of the two (``QuarantinedWrite``), and then the
    /// dataset does, too.
    /// Nobody may write to it meanwhile: what is written at the very end goes with it.
    ///
    /// O(records). Handlers are asked one at a time, while no lock is held. Interrupted, it goes on
    /// when it is called again.
    ///
    /// - Throws: `store`: `datasetNotFound` if there is no dataset of that name, and what `put`
    ///   throws; `partialReplica` if only a part of it is kept here; `contended` if a record is
    ///   written faster than it can be moved; `cancelled`.
    @discardableResult
    public func mergeDataset(
        _ name: String, into target: String, by policy: MergePolicy
    ) async throws(SyncError) -> DatasetMergeResult {
        let (source, destination) = try TidemarkSync.engine(name) {
            () throws(StoreError) -> (Dataset, Dataset) in
            guard let source = try existingDataset(name), name != target else {
                throw StoreError(
                    .datasetNotFound,
                    "there is no dataset \(name) that could go into \(target); correct the name")
            }
            try source.admitDue()
            let destination = try dataset(target)
            // In a part the peer is asked about it: see `SyncSession.admitHeld()`.
            if try !PartBook.isPart(destination) { try destination.admitDue() }
            return (source, destination)
        }
        let isPart = try TidemarkSync.engine(name) { () throws(StoreError) in
            try PartBook.isPart(source)
        }
        guard !isPart else {
            throw SyncError(
                .partialReplica,
                "only a part of the dataset is kept here, and the rest of it would be lost; keep "
                    + "all of it and exchange it before it is merged", dataset: name)
        }
        var result = DatasetMergeResult()
        var merge = try TidemarkSync.engine(name) { () throws(StoreError) in
            try DatasetMerge(self, source, destination)
        }
        let cursor = try TidemarkSync.engine(name) { () throws(StoreError) in
            try source.keys()
        }
        var hasBegun = false
        while let key = try merge.nextKey(of: cursor) {
            guard !Task.isCancelled else { throw .cancelled(dataset: name) }
            if !hasBegun {
                guard try !merge.isHeld(key) else {
                    result.left += 1
                    continue
                }
                try TidemarkSync.engine(name) { () throws(StoreError) in
                    try source.beginMoving(into: destination)
                }
                hasBegun = true
            }
            try await merge.move(key, by: policy, &result)
        }
        try TidemarkSync.engine(name) { () throws(StoreError) in
            try source.endMoving(into: destination)
        }
        guard result.left == 0 else { return result }
        result.isRetired = try TidemarkSync.engine(name) { () throws(StoreError) -> Bool in
            guard try source.count() == 0, try source.quarantined().isEmpty else { return false }
            return try deleteDataset(name)
        }
        return result
    }
}

/// Moves records from one dataset to another.
///
/// To move a record is to delete it where it was and to write it where it goes, and either would
/// win over what is held of its key there, which nobody has read. So it stays while anything is
/// held of it. What is held is read again with each record, in the transaction that moves it: what
/// comes to be held before its end is in conflict with it.
private struct DatasetMerge {
    private let store: Store
    private let source: Dataset
    private let destination: Dataset
    private var sourceHeld: HeldKeys
    private var destinationHeld: HeldKeys

    init(_ store: Store, _ source: Dataset, _ destination: Dataset) throws(StoreError) {
        self.store = store
        self.source = source
        self.destination = destination
        sourceHeld = try HeldKeys(source)
        destinationHeld = try HeldKeys(destination)
    }

    func nextKey(of cursor: KeyCursor) throws(SyncError) -> [UInt8]? {
        try engine(source.name) { () throws(StoreError) in try cursor.next() }
    }

    /// Whether any write to a key is held in either of the two.
    mutating func isHeld(_ key: [UInt8]) throws(SyncError) -> Bool {
        do throws(StoreError) {
            let transaction = try store.beginTransaction()
            defer { transaction.cancel() }
            return try isHeld(key, transaction)
        } catch {
            throw SyncError(error, dataset: source.name)
        }
    }

    private mutating func isHeld(
        _ key: [UInt8], _ transaction: Transaction
    ) throws(StoreError) -> Bool {
        // Both are to count as read.
        let isHeld = [
            try sourceHeld.contains(key, transaction),
            try destinationHeld.contains(key, transaction),
        ]
        return isHeld.contains(true)
    }

    mutating func move(
        _ key: [UInt8], by policy: MergePolicy, _ result: inout DatasetMergeResult
    ) async throws(SyncError) {
        for _ in 0..<SyncLimits.comparisonRoundsMax {
            let (remote, local) = try engine(source.name) { () throws(StoreError) in
                (try source.record(for: key), try destination.record(for: key))
            }
            // Deleted meanwhile.
            guard let remote else { return }
            var (value, expiresAt) = (remote.value, remote.expiresAt)
            let isConflict =
                local.map { $0.value != value || $0.expiresAt != expiresAt } ?? false
            if isConflict, let local {
                let conflict = Conflict(
                    dataset: destination.name, key: key, ancestry: .nonexistent, local: local,
                    remote: remote)
                switch try await policy.answer(
                    to: conflict, latestBelieved: store.latestBelieved)
                {
                case .pending:
                    result.left += 1
                    return
                case .settled(let outcome):
                    (value, expiresAt) = (outcome.value, outcome.expiresAt)
                }
            }
            switch try replaced(local, by: value, expiresAt, movedFrom: remote) {
            case .moved:
                result.moved += 1
                result.conflicts += isConflict ? 1 : 0
                return
            case .isHeld:
                result.left += 1
                return
            case .changed:
                continue
            }
        }
        throw SyncError(
            .contended, "a record was written faster than it could be moved; merge again",
            dataset: source.name, key: key)
    }

    /// What came of moving a record. Unless it was moved nothing has happened.
    private enum Step {
        case moved
        /// A write to it is held.
        case isHeld
        /// Either record was changed meanwhile, or what is held was.
        case changed
    }

    private mutating func replaced(
        _ local: Record?, by value: [UInt8]?, _ expiresAt: UInt64?, movedFrom remote: Record
    ) throws(SyncError) -> Step {
        do throws(StoreError) {
            return try replace(local, by: value, expiresAt, movedFrom: remote)
        } catch {
            guard error.code == .transactionConflict else {
                throw SyncError(error, dataset: source.name)
            }
            return .changed
        }
    }

    /// - Throws: `transactionConflict` if what was read has changed by its end, and what `put`
    ///   throws.
    private mutating func replace(
        _ local: Record?, by value: [UInt8]?, _ expiresAt: UInt64?, movedFrom remote: Record
    ) throws(StoreError) -> Step {
        let key = remote.key
        let transaction = try store.beginTransaction()
        defer { transaction.cancel() }
        let found = try transaction.record(for: key, in: source)?.version?.dot
        let present = try transaction.record(for: key, in: destination)?.version?.dot
        guard found == remote.version.dot, present == local?.version.dot else { return .changed }
        guard try !isHeld(key, transaction) else { return .isHeld }
        if let value {
            if local?.value != value || local?.expiresAt != expiresAt {
                try transaction.put(value, for: key, in: destination, expiresAt: expiresAt ?? 0)
            }
        } else {
            try transaction.delete(key, in: destination)
        }
        try transaction.delete(key, in: source)
        try transaction.commit()
        return .moved
    }
}

/// What is noted of a dataset that is to go into another one.
private struct MergeMark {
    private static let formWithoutWiped: UInt8 = 1
    private static let formWithWiped: UInt8 = 2
    let origin: String
    private let time: UInt64
    private let replica: ReplicaID
    /// The counters of all that deletions had wiped, added up: more with each deletion that wipes
    /// anything. nil if there was nothing that one here would wipe.
    private let wiped: UInt64?

    init(_ origin: String, _ source: Dataset) throws(StoreError) {
        let knowledge = try source.knowledge()
        let life = knowledge.lifecycle
        self.origin = origin
        time = life.time.rawValue
        replica = life.replica
        wiped = life.wiped.covers(knowledge.vector) ? nil : Self.sum(life.wiped)
    }

    private static func sum(_ vector: VersionVector) -> UInt64 {
        vector.dots.reduce(0) { $0 &+ $1.counter }
    }

    /// Whether it is about this very dataset, and not about one that was deleted since.
    func isOf(_ source: Dataset) throws(StoreError) -> Bool {
        let life = try source.knowledge().lifecycle
        if life.time.rawValue == time, life.replica == replica { return true }
        return wiped.map { $0 == Self.sum(life.wiped) } ?? false
    }

    static func key(_ name: String, _ target: String) -> [UInt8] {
        SystemDataset.prefix(of: target) + Array(name.utf8)
    }

    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.put(wiped == nil ? Self.formWithoutWiped : Self.formWithWiped)
        writer.putText(origin)
        writer.putFixed(time)
        writer.putFixed(replica.high)
        writer.putFixed(replica.low)
        if let wiped { writer.putFixed(wiped) }
        return writer.bytes
    }

    /// nil if the bytes are no such note.
    init?(decoding bytes: [UInt8]) {
        do throws(SyncError) {
            var reader = ByteReader(bytes)
            let form = try reader.takeByte()
            guard form == Self.formWithoutWiped || form == Self.formWithWiped else { return nil }
            origin = try reader.takeText("origin", max: SyncLimits.originBytesMax)
            time = try reader.takeFixed(UInt64.self)
            let high = try reader.takeFixed(UInt64.self)
            let low = try reader.takeFixed(UInt64.self)
            replica = ReplicaID(high: high, low: low)
            wiped = try form == Self.formWithWiped ? reader.takeFixed(UInt64.self) : nil
            try reader.finish()
        } catch {
            return nil
        }
    }
}
