import Tidemark

extension SyncSession {
    /// Brings what the peer knows of the dataset's life into ours, before any record is compared.
    /// If it was deleted there and still lives here, the options decide.
    func settleLifecycle(_ theirs: PeerLifecycle) async throws(SyncError) {
        guard try isDeletedThereOnly(theirs) else {
            return try engine(dataset.name) { () throws(StoreError) in try dataset.join(theirs) }
        }
        guard try isOfOurs(theirs) else { return try recreate(beside: theirs) }
        let action = await action(after: theirs)
        // Asking takes time, in which it may have been deleted here, too, or made anew.
        guard try isDeletedThereOnly(theirs) else { return try await settleLifecycle(theirs) }
        switch action {
        case .keepAndStop:
            throw SyncError(
                .datasetDeleted,
                "the dataset was deleted on the other side and still lives here; "
                    + "choose discardLocal or keepAndRecreate for onDatasetDeleted")
        case .discardLocal:
            // First ours: after a crash between the two steps it is deleted on either view.
            try engine(dataset.name) { () throws(StoreError) in
                // What lies in a part is nothing that a deletion here could reach but record by
                // record; theirs reaches it.
                if part != nil { try dataset.join(theirs) }
                _ = try store.deleteDataset(dataset.name)
                try dataset.join(theirs)
            }
        case .keepAndRecreate:
            try recreate(beside: theirs)
        }
    }

    /// Our stamp is no answer to a deletion that we have not heard of if its date is not believed:
    /// some clock was ahead when the dataset was made, and what the deletion has seen of ours would
    /// go unasked.
    private func isDeletedThereOnly(_ theirs: PeerLifecycle) throws(SyncError) -> Bool {
        let ours = try engine(dataset.name) { () throws(StoreError) in
            PeerLifecycle(try dataset.knowledge().lifecycle)
        }
        guard theirs.isDeleted, !ours.isDeleted else { return false }
        let isNews = !ours.wiped.covers(theirs.wiped)
        return theirs.isLater(than: ours) || isNews && ours.time > store.latestBelieved
    }

    private func action(after theirs: PeerLifecycle) async -> DatasetDeletedAction {
        let deletion = DatasetDeletion(dataset: dataset.name, peer: peer, time: theirs.time)
        let action =
            await options.deletedDatasetHandler?(deletion) ?? options.onDatasetDeleted
        options.observer?(.datasetDeletedRemotely(deletion, action))
        return action
    }

    /// Whether who deleted the dataset can have known ours. One of the same name that was made here
    /// and never met anybody is another one: nobody has deleted it.
    private func isOfOurs(_ theirs: PeerLifecycle) throws(SyncError) -> Bool {
        try engine(dataset.name) { () throws(StoreError) in
            let ours = try dataset.vector
            return try dataset.hasPeers()
                || theirs.wiped.dots.contains { ours[$0.replica] > 0 }
        }
    }

    /// Writes every record anew that the deletion covers, so that it no longer does, has what is
    /// held outlast it likewise, and brings the dataset back to life. Interrupted, it has made some
    /// writes too many and lost none.
    private func recreate(beside theirs: PeerLifecycle) throws(SyncError) {
        try rewrite { record in !record.isDeleted && theirs.wiped.covers(record.version.vector) }
        // While the deletions of records are still here: what they have seen is not kept.
        let isKept = try engine(dataset.name) { () throws(StoreError) in
            try dataset.keepHeld(beside: theirs.wiped)
        }
        guard isKept else { throw .writtenBeforeKept }
        try engine(dataset.name) { () throws(StoreError) in
            try dataset.join(theirs)
            try dataset.renewLifecycle()
        }
    }

    /// Gives every record that the condition holds for a new dot, with the same value. A dataset
    /// that was deleted has none.
    ///
    /// - Parameters:
    ///   - ids: of which the new writes claim no more than their content says.
    ///   - content: what is written in place of a record.
    func rewrite(
        where isDue: (Record) -> Bool, claimingNothingOf ids: Set<ReplicaID> = [],
        as content: (Record) -> ReplicatedWrite.Content = {
            .resolve(value: $0.value, seen: $0.version, expiresAt: $0.expiresAt)
        }
    ) throws(SyncError) {
        for _ in 0..<SyncLimits.comparisonRoundsMax {
            let isDone = try engine(dataset.name) { () throws(StoreError) in
                let cursor: RecordCursor
                do throws(StoreError) {
                    cursor = try dataset.records(includingDeleted: true)
                } catch {
                    guard error.code == .datasetNotFound else { throw error }
                    return true
                }
                var batch = ReplicationBatch()
                var bytes = 0
                var isDone = true
                while let record = try cursor.next() {
                    guard isDue(record) else { continue }
                    batch.writes.append(
                        ReplicatedWrite(
                            key: record.key, content: content(record),
                            expected: record.version))
                    bytes += record.key.count + (record.value?.count ?? 0)
                    guard
                        batch.writes.count >= options.pageRecordsMax
                            || bytes >= options.pageBytesMax
                    else { continue }
                    isDone = try isApplied(batch, ids) && isDone
                    batch = ReplicationBatch()
                    bytes = 0
                }
                return try isApplied(batch, ids) && isDone
            }
            if isDone { return }
        }
        throw .writtenBeforeKept
    }

    /// Writes records anew, which says nothing of what is held of their keys.
    ///
    /// - Returns: false if any of them was written meanwhile; then nothing has happened.
    private func isApplied(
        _ batch: ReplicationBatch, _ ids: Set<ReplicaID>
    ) throws(StoreError) -> Bool {
        var unheld = try batch.claimingNothingHeld(in: dataset)
        if !ids.isEmpty {
            let claims = ids.reduce(try dataset.vectorWithoutHeld()) { $0.removing($1) }
            unheld.writes = unheld.writes.map { write in
                ReplicatedWrite(
                    key: write.key, content: write.content, expected: write.expected,
                    claims: claims)
            }
        }
        return try dataset.replicate(unheld).isEmpty
    }
}

extension SyncError {
    fileprivate static let writtenBeforeKept = SyncError(
        .contended, "records were written here faster than they could be kept; repeat")
}
