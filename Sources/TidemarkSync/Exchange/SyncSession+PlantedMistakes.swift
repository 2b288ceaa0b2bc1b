import Tidemark

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
