public import Tidemark

extension Dataset {
    /// Conflicts in this dataset that were settled here and are still in the journal, the newest
    /// first. What is kept, ``SyncJournalOptions`` say.
    ///
    /// O(entries since that time).
    ///
    /// - Parameters:
    ///   - key: only those of this key; nil for all.
    ///   - start: none that were settled before.
    ///   - limit: how many to give at most: 0...
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    public func settledConflicts(
        of key: [UInt8]? = nil, since start: HybridTime = .zero, limit: Int = .max
    ) throws(StoreError) -> [SettledConflict] {
        var found: [SettledConflict] = []
        let list = TimedNotes(which: .conflicts, dataset: self)
        guard limit > 0 else { return [] }
        try list.forEach(since: start, order: .backward) { (time, bytes) throws(StoreError) in
            guard let entry = SettledConflict(dataset: name, time: time, decoding: bytes) else {
                return true
            }
            if key.map({ $0 == entry.key }) ?? true { found.append(entry) }
            return found.count < limit
        }
        return found
    }

    /// Takes entries out of the journal of settled conflicts. O(entries).
    ///
    /// - Parameter end: those settled before it go; nil for all.
    /// - Throws: what `delete` throws. Interrupted, it has taken out some, the oldest first.
    public func forgetSettledConflicts(before end: HybridTime? = nil) throws(StoreError) {
        let list = TimedNotes(which: .conflicts, dataset: self)
        guard let notes = try list.existing() else { return }
        let cursor = try notes.keys(in: list.range())
        var batch = WriteBatch()
        while let key = try cursor.next() {
            if let end, list.time(in: key) ?? .zero >= end { break }
            batch.delete(key, in: notes)
            guard batch.count >= SyncLimits.journalTrimMax else { continue }
            try store.write(batch)
            batch.removeAll(keepingCapacity: true)
        }
        if !batch.isEmpty { try store.write(batch) }
    }
}
