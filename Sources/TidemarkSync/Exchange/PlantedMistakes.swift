import Tidemark

// Where an exchange goes wrong on purpose: see `PlantedBugs`. All of it is dead code outside of
// tests, where the option is empty.

extension SyncSession {
    func has(_ bug: PlantedBugs) -> Bool { store.options.plantedBugs.contains(bug) }

    /// Applies what a page came to.
    func replicate(_ batch: ReplicationBatch) throws(StoreError) -> [[UInt8]] {
        guard has(.checkpointApartFromRecords) else { return try dataset.replicate(batch) }
        var ahead = ReplicationBatch()
        (ahead.checkpoint, ahead.seen) = (batch.checkpoint, batch.seen)
        _ = try dataset.replicate(ahead)
        return try dataset.replicate(batch)
    }
}

extension SyncResponder {
    func has(_ bug: PlantedBugs) -> Bool { store.options.plantedBugs.contains(bug) }
}
