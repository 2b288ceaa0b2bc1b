package import Tidemark

extension Dataset {
    /// Hands out settled conflicts that are still in the journal one by one, the newest first, so
    /// that none need be kept in memory. O(entries).
    ///
    /// - Parameter body: returns whether to go on.
    /// - Throws: `closed`, `corruption`, `inputOutput`; what the body throws.
    package func forEachSettledConflict(
        _ body: (SettledConflict) throws(StoreError) -> Bool
    ) throws(StoreError) {
        let list = TimedNotes(which: .conflicts, dataset: self)
        try list.forEach(order: .backward) { (time, bytes) throws(StoreError) in
            guard let entry = SettledConflict(dataset: name, time: time, decoding: bytes) else {
                return true
            }
            return try body(entry)
        }
    }

    /// Hands out since when each conflict waits, the one that has waited longest first. Those that
    /// were settled by themselves meanwhile are among them. O(what waits).
    ///
    /// - Parameter body: returns whether to go on.
    /// - Throws: `closed`, `corruption`, `inputOutput`; what the body throws.
    package func forEachWaitingConflict(
        _ body: (HybridTime) throws(StoreError) -> Bool
    ) throws(StoreError) {
        try PendingBook.forEach(in: self) { (found) throws(StoreError) in
            try body(found.entry.time)
        }
    }

    /// The last batch of changes that each peer brought and that is still remembered. O(batches).
    ///
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    package func latestArrivals() throws(StoreError) -> [ReplicaID: RecordArrival] {
        var latest: [ReplicaID: RecordArrival] = [:]
        for arrival in try arrivals() where latest[arrival.peer] == nil {
            latest[arrival.peer] = arrival
        }
        return latest
    }
}
