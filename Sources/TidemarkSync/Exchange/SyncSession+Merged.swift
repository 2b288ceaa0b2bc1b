import Tidemark

// Datasets of the peer that are to go into this one. Their contents are pulled, a handler decides,
// and what it decided is handed over: the moved records with this dataset's push, and when that has
// come to its end, the retired datasets by an exchange of each. What keeps their deletion from
// going first, whatever is cut off, says `MovedRecords.swift`.

extension SyncSession {
    /// Asks the handler, if there is one and the peer has told of any, once in the exchange. Those
    /// that were retired here before, and that the peer has yet to hear of, are not asked about.
    func takeMerged(_ told: [MergedDataset]) async throws(SyncError) {
        guard let handler = options.mergedDatasetsHandler, !told.isEmpty, !hasTakenMerged else {
            return
        }
        var merged: [MergedDataset] = []
        var gone: [String] = []
        for one in told where try isForUs(one) {
            let isComplete = try await exchange(one.name)
            let isHere = try engine(one.name) { () throws(StoreError) -> Bool in
                guard try store.existingDataset(one.name) != nil else { return false }
                if isComplete { try store.noteMerged(one, into: dataset.name) }
                return true
            }
            if !isHere {
                gone.append(one.name)
            } else if isComplete {
                merged.append(one)
            }
            // Of any other there is more at the peer, which its retirement here would not reach.
        }
        hasTakenMerged = true
        retired = gone
        guard !merged.isEmpty else { return }
        let datasets = MergedDatasets(
            dataset: dataset.name, peer: peer, merged: merged, store: store)
        let action = await handler(datasets)
        options.observer?(.datasetsMerged(datasets, action))
        switch action {
        case .leave:
            return
        case .merge(let policy):
            for one in merged {
                try await store.mergeDataset(one.name, into: dataset.name, by: policy)
            }
        case .discard:
            for one in merged {
                try engine(one.name) { () throws(StoreError) in
                    _ = try store.deleteDataset(one.name)
                }
            }
        }
        retired += merged.map(\.name)
    }

    /// Hands over what became of merged datasets, after everything that was moved out of them.
    func retireMerged() async throws(SyncError) {
        defer { retired = [] }
        for name in retired { _ = try await exchange(name) }
    }

    /// A peer must draw nothing out of us by the names that it gives: of the datasets that are here
    /// only those are exchanged that were exchanged with it before.
    private func isForUs(_ merged: MergedDataset) throws(SyncError) -> Bool {
        guard merged.name != dataset.name else { return false }
        return try engine(merged.name) { () throws(StoreError) -> Bool in
            guard let ours = try store.existingDataset(merged.name) else { return true }
            // Only a part of it could be moved, and all of it would be deleted.
            guard try !PartBook.isPart(ours) else { return false }
            // One in which there never was anything gives nothing away: its first exchange was cut
            // off when no more had come than that there is such a dataset.
            guard try ours.knowledge().syncCount > .zero else { return true }
            return try ours.checkpoint(for: peer).pulledThrough > .zero
        }
    }

    /// Whether records went from this dataset into another one in which the peer may lack them.
    func waitsForMoved() throws(SyncError) -> Bool {
        try engine(dataset.name) { () throws(StoreError) in try dataset.waitsForMoved(with: peer) }
    }

    /// Exchanges another dataset over the same connection. What is the matter with that one alone
    /// does not hold up this one: its own events and lists tell of it.
    ///
    /// - Returns: whether everything was.
    private func exchange(_ name: String) async throws(SyncError) -> Bool {
        var options = options
        options.mergedDatasetsHandler = nil
        let other = try engine(name) { () throws(StoreError) in
            try store.datasetForSync(name, creating: true)
        }
        guard let other else { return false }
        let session = SyncSession(
            store: store, dataset: other, connection: connection, options: options, peer: peer)
        let done: SyncResult
        do throws(SyncError) {
            done = try await session.run(greeting: nil)
        } catch {
            guard error.isOfOneDataset else { throw error }
            done = session.resultSoFar()
        }
        result.bytesSent += done.bytesSent
        result.bytesReceived += done.bytesReceived
        return done.isComplete
    }
}

extension SyncError {
    /// Whether it is about records or the life of one dataset, so that others may go on.
    fileprivate var isOfOneDataset: Bool {
        [
            .conflictPending, .recordRefused, .tooLarge, .datasetDeleted, .partialReplica,
            .contended,
        ].contains(code)
    }
}
