public import Tidemark

extension Dataset {
    /// Settles a conflict that ``MergePolicy/leavePending`` left, by a write here that descends
    /// from both versions. The next exchange hands it over.
    ///
    /// - Parameter resolution: ``Resolution/stop`` leaves it as it is.
    /// - Throws: `versionMismatch` if the record has been changed here since; the next exchange
    ///   tells the conflict as it is then. Otherwise what `put` throws.
    public func settle(_ conflict: Conflict, as resolution: Resolution) throws(StoreError) {
        guard let outcome = conflict.settled(as: resolution) else { return }
        var batch = ReplicationBatch()
        batch.writes = outcome.writes
        guard try replicate(batch).isEmpty else {
            throw StoreError(
                .versionMismatch,
                "the record was changed here since the conflict was told; synchronise again and "
                    + "settle the conflict as it is then")
        }
    }
}
