// What a dataset knows of itself without being walked through.

extension Dataset {
    /// Bytes of a key and its value; nil if there is no live record. O(log n).
    /// - Throws: `datasetNotFound`, `closed`, `corruption`, `inputOutput`.
    public func size(of key: [UInt8]) throws(StoreError) -> Int? {
        try withValue(for: key) { value in
            guard let value else { return nil }
            return key.count + value.byteCount
        }
    }

    public func size(of key: String) throws(StoreError) -> Int? {
        try size(of: Array(key.utf8))
    }

    /// When the dataset was made, or last made anew after a deletion, by the clock of the replica
    /// that did. Replicas that have exchanged it agree. O(1).
    /// - Throws: `datasetNotFound`, `closed`.
    public var creationTime: HybridTime {
        get throws(StoreError) {
            try engine.withLock { (held) throws(StoreError) in
                try held.checkOpen()
                guard state.isVisible else { throw StoreError.datasetNotFound(state.name) }
                return state.lifecycle.time
            }
        }
    }

    /// How many records, tombstones included, were written here and are not known to be anywhere
    /// else: those with ``Record/isDirty``, but for such as a peer has taken and not yet said so.
    ///
    /// Costs in proportion to the changes since the last exchange with the peer that has most. As
    /// long as any record is listed that failed and was left out of an exchange, nothing is known
    /// by what was handed over: then it is O(n), and all that ``Record/isDirty`` says is counted.
    /// - Throws: `datasetNotFound`, `closed`, `corruption`, `inputOutput`.
    public func dirtyCount() throws(StoreError) -> Int {
        let handedThrough = try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            guard state.isVisible else { throw StoreError.datasetNotFound(state.name) }
            // Who has everything up to here has every write of ours up to here.
            return state.peers.values.reduce(SyncCount.zero) { max($0, $1.pushedThrough) }
        }
        // Positions are past what was left out. Looked at after them, since it is noted before.
        let since = try hasLeftOut() ? SyncCount.zero : handedThrough
        // Deletions that were forgotten are known wherever they need to be.
        let changes = try engine.changes(of: state, since: since, isExchange: true)
        let cursor = RecordCursor(changes.steps, changes.dirtiness)
        var count = 0
        while let isDirty = try cursor.next({ entry, tables in
            changes.dirtiness.isDirty(tables.dot(of: entry))
        }) {
            count += isDirty ? 1 : 0
        }
        return count
    }

    /// Whether any record of the dataset is listed as left out of what a peer was handed.
    private func hasLeftOut() throws(StoreError) -> Bool {
        guard let failed = try store.existingSystemDataset(.failed) else { return false }
        let prefix = Array(name.utf8) + [SystemDataset.outgoingFailures]
        return try failed.keys(in: .prefix(prefix), limit: 1).next() != nil
    }
}
