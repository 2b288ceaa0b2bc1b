extension Dataset {
    /// Hands out the newest version of each key that has one, tombstones included, in the order of
    /// the keys as they are given, all as of one moment.
    ///
    /// - Parameter body: returns false if it has no room for the record, which ends the run before
    ///   it.
    /// - Returns: how many of the keys were looked at, and what was known at the moment.
    package func withRecords(
        of keys: [[UInt8]], _ body: (ChangeView) throws(StoreError) -> Bool
    ) throws(StoreError) -> (lookedAt: Int, run: ChangeRun) {
        let (moment, id, knowledge) = try momentAsStored { $0.knowledge }
        let run = ChangeRun(through: .zero, isLast: false, knowledge: knowledge)
        guard id != 0 else { return (keys.count, run) }
        var lookedAt = 0
        for key in keys {
            let isTaken = try key.withBytes { (key) throws(StoreError) in
                try moment.view.withNewest(
                    of: key, in: id, sequenceMax: moment.sequenceMax
                ) { (entry, tables) throws(StoreError) -> Bool in
                    guard let entry, let tables else { return true }
                    return try body(ChangeView(entry, tables))
                }
            }
            guard isTaken else { break }
            lookedAt += 1
        }
        return (lookedAt, run)
    }

    /// Hands out the newest version of each key that has changed after `since`, tombstones
    /// included, but for deletions that count as forgotten, in the order of the keys, all as of one
    /// moment. O(records that are looked at).
    ///
    /// - Parameters:
    ///   - start: the first key that is looked at; nil for the first there is.
    ///   - excluding: leaves out versions of which this proves dot and whole vector known.
    ///   - countMax: records that are looked at, handed out or not: at least 1.
    ///   - scannedBytesMax: bytes of keys and values that are looked at, as they lie beside each
    ///     other, before the last record: at least 1.
    ///   - body: returns false if it has no room for the record, which ends the run before it.
    /// - Returns: the first key that was not looked at, nil if there is none, and what was known at
    ///   the moment.
    package func withRecords(
        from start: [UInt8]?, since: SyncCount, excluding: VersionVector, countMax: Int,
        scannedBytesMax: Int,
        _ body: (ChangeView) throws(StoreError) -> Bool
    ) throws(StoreError) -> (next: [UInt8]?, run: ChangeRun) {
        let (moment, id, knowledge) = try momentAsStored { $0.knowledge }
        let run = ChangeRun(through: .zero, isLast: false, knowledge: knowledge)
        guard id != 0 else { return (nil, run) }
        let forgotten = knowledge.forgotten
        let hasForgotten = !forgotten.isEmpty
        var known = KnownChanges(excluding, wiped: knowledge.lifecycle.wiped)
        var steps = try ScanSteps(
            moment, dataset: id, range: KeyRange(from: start), order: .forward,
            includingDeleted: true)
        var (lookedAt, scannedBytes) = (0, 0)
        while let entry = try steps.nextEntry() {
            guard lookedAt < countMax, scannedBytes < scannedBytesMax else {
                return (entry.key.array, run)
            }
            lookedAt += 1
            scannedBytes += entry.key.count + entry.valueField.count
            guard entry.syncCount > since.rawValue else { continue }
            let change = ChangeView(entry, steps.tables)
            let isForgotten =
                hasForgotten && change.isDeleted
                && forgotten.covers(steps.tables.version(of: entry))
            guard !change.isDropped, !isForgotten, !known.contains(change) else { continue }
            guard try body(change) else { return (entry.key.array, run) }
        }
        return (nil, run)
    }
}
