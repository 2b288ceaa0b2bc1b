extension Dataset {
    /// The count of the last operation applied here: the position to go on from with
    /// ``changes(since:in:)``.
    public var syncCount: SyncCount {
        get throws(StoreError) { try knowledge().syncCount }
    }

    /// Everything this dataset has seen.
    public var vector: VersionVector {
        get throws(StoreError) { try knowledge().vector }
    }

    /// What has changed since a sync count, as of now: the newest version of each key, tombstones
    /// included, in the order of change. Costs in proportion to the changes.
    ///
    /// - Parameters:
    ///   - syncCount: of the last change already known; ``SyncCount/zero`` for everything.
    ///   - range: changes of other keys are passed over, and no records made of them.
    /// - Throws: `changesExpired` if deletions after that count are forgotten.
    public func changes(
        since syncCount: SyncCount, in range: KeyRange = .all
    ) throws(StoreError) -> RecordCursor {
        let changes = try engine.changes(of: state, since: syncCount, in: range)
        return RecordCursor(changes.steps, changes.dirtiness)
    }

    /// The same, and then what changes from now on, until the task is cancelled or the store is
    /// closed. What changes twice while the consumer is busy is given once.
    ///
    /// - Parameters:
    ///   - syncCount: of the last change already known; ``SyncCount/zero`` for everything.
    ///   - range: which keys: ``KeyRange/prefix(_:)-(String)``, ``KeyRange/only(_:)-(String)``, or
    ///     any other. Changes of other keys are passed over, and no records made of them.
    public func liveChanges(
        since syncCount: SyncCount, in range: KeyRange = .all
    ) -> LiveChanges {
        LiveChanges(dataset: self, since: syncCount, range: range)
    }

    /// A hash of all live records, whatever the order in which they came: equal on two replicas
    /// if, and but for chance only if, both hold the same keys at the same versions.
    ///
    /// O(n) when it is first asked for after the store was opened. From then on the store keeps
    /// sums over stretches of neighbouring keys in memory and walks only over those in which
    /// anything has changed: O(1) if nothing has, and all of it once more after a compaction that
    /// dropped the tombstone of something deleted since.
    ///
    /// The sum, modulo 2^128, of XXH3-128 over each record's dot, time, time of expiry, key and
    /// value. What was deleted does not count, since each replica forgets that in its own time.
    /// Neither does what has expired, so replicas agree once the clocks of all have passed the
    /// time; nor what was dropped: see ``Record/isDropped``.
    ///
    /// - Throws: `datasetNotFound`, `closed`, `corruption`, `inputOutput`.
    public func digest() throws(StoreError) -> ConvergenceDigest {
        try engine.recordSums(of: state, .contents, isExchange: false).total.digest
    }

    /// The same.
    ///
    /// - Parameter tell: called now and then on the calling thread while records are walked over,
    ///   with the bytes of their keys and values since the last call.
    package func digest(
        tell: @escaping (UInt64) -> Void
    ) throws(StoreError) -> ConvergenceDigest {
        let sums = try engine.recordSums(of: state, .contents, isExchange: false, tell: tell)
        return sums.total.digest
    }
}
