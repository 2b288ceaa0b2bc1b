/// Reading the past: <doc:History> says what is kept, and what each moment means.
extension Dataset {
    /// The value that a key had at a past moment; nil if there was no live record. O(log n), and
    /// a step for each version in between.
    ///
    /// - Throws: `historyExpired` if what could be read then may not all be kept any more,
    ///   `invalidArgument` for a moment that has not come yet, and what `get` throws.
    public func get(_ key: [UInt8], at moment: PastMoment) throws(StoreError) -> [UInt8]? {
        try record(for: key, at: moment)?.value
    }

    public func get(_ key: String, at moment: PastMoment) throws(StoreError) -> [UInt8]? {
        try get(Array(key.utf8), at: moment)
    }

    /// The record that a key had at a past moment.
    ///
    /// - Parameter includingDeleted: whether to give the tombstone of a record that was deleted
    ///   then, if it is still kept.
    /// - Throws: as ``get(_:at:)-([UInt8],_)``.
    public func record(
        for key: [UInt8], at moment: PastMoment, includingDeleted: Bool = false
    ) throws(StoreError) -> Record? {
        try snapshot(at: moment).record(for: key, in: self, includingDeleted: includingDeleted)
    }

    /// Records as of a past moment, in the order of their keys.
    /// - Throws: as ``get(_:at:)-([UInt8],_)``.
    public func records(
        at moment: PastMoment, in range: KeyRange = .all, order: ScanOrder = .forward,
        includingDeleted: Bool = false
    ) throws(StoreError) -> RecordCursor {
        try snapshot(at: moment).records(
            of: self, in: range, order: order, includingDeleted: includingDeleted)
    }

    /// The number of live records at a past moment. O(n).
    /// - Throws: as ``get(_:at:)-([UInt8],_)``.
    public func count(at moment: PastMoment) throws(StoreError) -> Int {
        try snapshot(at: moment).count(of: self)
    }

    /// From when on the dataset can be read as of a past moment. Moves on with compaction.
    /// - Throws: `datasetNotFound`, `closed`, `corruption`, `inputOutput`.
    public func historyStart() throws(StoreError) -> HistoryStart {
        let moment = try engine.moment()
        let (id, _) = try engine.scope(of: state, at: moment)
        return try engine.historyStart(of: state, id: id, at: moment)
    }

    /// The versions of a key that are kept, newest first: as they were written, tombstones
    /// included, and values also of records that have expired since. One that is stored more than
    /// once, as when it was joined with what it had won over, is given once, as it was stored last.
    /// O(versions).
    ///
    /// - Parameter limit: how many to give at most: 0...
    public func history(
        of key: [UInt8], limit: Int = .max
    ) throws(StoreError) -> [Record] {
        try key.withBytes { (key) throws(StoreError) in
            try engine.history(of: key, in: state, limit: limit, withCopies: false)
        }
    }

    /// The same with each copy of a version that is stored more than once.
    package func storedVersions(
        of key: [UInt8], limit: Int = .max
    ) throws(StoreError) -> [Record] {
        try key.withBytes { (key) throws(StoreError) in
            try engine.history(of: key, in: state, limit: limit, withCopies: true)
        }
    }

    private func snapshot(at moment: PastMoment) throws(StoreError) -> Snapshot {
        try Snapshot(engine, at: moment, of: self)
    }
}

extension Store {
    /// All datasets as of a past time, by the meaning that ``PastMoment/time(_:)`` gives it. O(1).
    ///
    /// A dataset of which not everything is kept that could be read then throws `historyExpired`
    /// when it is read; one that was deleted since throws `datasetNotFound`.
    ///
    /// - Throws: `invalidArgument` if the time has not come yet, `closed`.
    public func snapshot(at time: HybridTime) throws(StoreError) -> Snapshot {
        try Snapshot(engine, at: .time(time), of: nil)
    }

    /// One dataset as it was when the change with that sync count was its last. Reading another one
    /// from the snapshot throws `invalidArgument`.
    ///
    /// - Throws: `historyExpired` if what could be read then may not all be kept any more,
    ///   `invalidArgument` if the change has not come yet, `datasetNotFound`, `closed`,
    ///   `corruption`, `inputOutput`.
    public func snapshot(
        at syncCount: SyncCount, of dataset: Dataset
    ) throws(StoreError) -> Snapshot {
        let snapshot = try Snapshot(engine, at: .syncCount(syncCount), of: dataset)
        try snapshot.check(dataset)
        return snapshot
    }
}
