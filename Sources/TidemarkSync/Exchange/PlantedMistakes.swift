import Tidemark

// Where an exchange goes wrong on purpose: see `PlantedBugs`. In a release build each question is
// answered when it is compiled, and what would follow is not there.

extension Store {
    /// Whether a mistake is to be made.
    @inline(__always)
    func has(_ mistake: @autoclosure () -> PlantedBugs) -> Bool {
        #if PLANTED_BUGS
        options.plantedBugs.contains(mistake())
        #else
        false
        #endif
    }

    /// What a peer is told of may be acted upon there, so it must not be lost here any more.
    func syncBeforeSending() throws(StoreError) {
        if !has(.skipSyncBeforeSend) { try sync() }
    }

    /// Whether what the peer has seen is joined into what this store has: once all of it has come.
    func joinsVector(atEnd isLast: Bool = true) -> Bool {
        (isLast || has(.joinVectorWithFirstPage)) && !has(.skipVectorJoin)
    }

    /// Whether a mistake is to be made that is made with single records.
    var mergesRecordByRecord: Bool {
        has(.checkpointApartFromRecords) || has(.applyPageTwice) || has(.applyConflictUnasked)
    }
}

extension SyncSession {
    /// Applies what a page came to.
    func replicate(_ batch: ReplicationBatch) throws(StoreError) -> [[UInt8]] {
        if store.has(.checkpointApartFromRecords) {
            var ahead = ReplicationBatch()
            (ahead.checkpoint, ahead.seen) = (batch.checkpoint, batch.seen)
            _ = try dataset.replicate(ahead)
        }
        var batch = batch
        if store.has(.outcomeWithoutJournal) {
            batch.notes.removeAll { note in
                if case .dot = note.stamp { true } else { false }
            }
        }
        let moved = try dataset.replicate(batch)
        if moved.isEmpty, store.has(.applyPageTwice) { try applyAgain(batch.writes) }
        return moved
    }

    /// As new writes of this store, with new counts.
    private func applyAgain(_ writes: [ReplicatedWrite]) throws(StoreError) {
        var again = ReplicationBatch()
        again.writes = writes.compactMap { write -> ReplicatedWrite? in
            guard case .adopt(let value, let version, let expiresAt) = write.content else {
                return nil
            }
            return ReplicatedWrite(
                key: write.key,
                content: .resolve(value: value, seen: version, expiresAt: expiresAt),
                expected: version)
        }
        if !again.writes.isEmpty { _ = try dataset.replicate(again) }
    }
}

extension Dataset {
    /// What a page of changes may hold.
    func pageBounds(records: Int, bytes: Int) -> PageBounds {
        guard !store.has(.unboundedPages) else {
            return PageBounds(records: .max, bytes: .max)
        }
        return PageBounds(records: records, bytes: bytes)
    }
}
