import Tidemark

// Where an exchange goes wrong on purpose: see `PlantedBugs`. All of it is dead code outside of
// tests, where the option is empty.

extension SyncSession {
    func has(_ bug: PlantedBugs) -> Bool { store.options.plantedBugs.contains(bug) }

    /// Applies what a page came to.
    func replicate(_ batch: ReplicationBatch) throws(StoreError) -> [[UInt8]] {
        if has(.checkpointApartFromRecords) {
            var ahead = ReplicationBatch()
            (ahead.checkpoint, ahead.seen) = (batch.checkpoint, batch.seen)
            _ = try dataset.replicate(ahead)
        }
        var batch = batch
        if has(.outcomeWithoutJournal) {
            batch.notes.removeAll { note in
                if case .dot = note.stamp { true } else { false }
            }
        }
        let moved = try dataset.replicate(batch)
        if moved.isEmpty, has(.applyPageTwice) { try applyAgain(batch.writes) }
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
        guard !store.options.plantedBugs.contains(.unboundedPages) else {
            return PageBounds(records: .max, bytes: .max)
        }
        return PageBounds(records: records, bytes: bytes)
    }
}

extension SyncResponder {
    func has(_ bug: PlantedBugs) -> Bool { store.options.plantedBugs.contains(bug) }
}
