import Tidemark

// Datasets of the peer that are to go into this one. Their contents are pulled, a handler decides,
// and what it decided is handed over: the moved records with this dataset's push, and when that has
// come to its end, the retired datasets by an exchange of each. What keeps their deletion from
// going first, whatever is cut off, says `MovedRecords.swift`.

extension SyncSession {
    /// Asks the handler, if there is one and the peer has told of any, once in the exchange. Those
    /// that were retired here before, and that the peer has yet to hear of, are not asked about.
    func takeMerged() async throws(SyncError) {
        let told = moves.merged
        guard let handler = options.mergedDatasetsHandler, !told.isEmpty, !moves.isAsked else {
            return
        }
        var merged: [MergedDataset] = []
        var gone: [String] = []
        for one in told where try canTake(one) {
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
        moves.isAsked = true
        moves.retired = gone
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
        moves.retired += merged.map(\.name)
    }

    /// Hands over what became of merged datasets, after everything that was moved out of them.
    func retireMerged() async throws(SyncError) {
        defer { moves.retired = [] }
        for name in moves.retired { _ = try await exchange(name) }
    }

    /// A peer must draw nothing out of us by the names that it gives: of the datasets that are here
    /// only those are exchanged that were exchanged with it before, or are to be now.
    private func isForUs(_ name: String) throws(SyncError) -> Bool {
        guard name != dataset.name else { return false }
        if moves.mayExchange(name) { return true }
        return try engine(name) { () throws(StoreError) -> Bool in
            guard let ours = try store.existingDataset(name) else { return true }
            // One in which there never was anything gives nothing away: its first exchange was cut
            // off when no more had come than that there is such a dataset.
            guard try ours.knowledge().syncCount > .zero else { return true }
            return try ours.checkpoint(for: peer).pulledThrough > .zero
        }
    }

    /// Whether the peer can tell us to merge a dataset into this one. Of a part of it only that
    /// could be moved, and all of it would be deleted.
    private func canTake(_ merged: MergedDataset) throws(SyncError) -> Bool {
        let isPart = try engine(merged.name) { () throws(StoreError) in
            try store.existingDataset(merged.name).map(PartBook.isPart) ?? false
        }
        guard !isPart else { return false }
        return try isForUs(merged.name)
    }

    // MARK: - Moved records

    /// Whether records went from this dataset into another one in which the peer may lack them. If
    /// it has them, it is told from here on where they went.
    func waitsForMoved() throws(SyncError) -> Bool {
        try engine(dataset.name) { () throws(StoreError) in
            let waits = try dataset.waitsForMoved(with: peer)
            moves.told = try waits ? [] : dataset.movedInto()
            return waits
        }
    }

    /// What the peer tells of this dataset, and knows of us, once we have what went from it into
    /// others at the peer: those are exchanged first, if there is anything new in this one.
    ///
    /// - Returns: `greeted`, or `cutShort` if not all of the others has come. Then nothing of this
    ///   one is exchanged, so that its records stay here.
    /// - Throws: `recordsMoved` if another one is here and was never exchanged with the peer.
    func greetBehindMoved(
        _ known: DatasetGreeting?
    ) async throws(SyncError) -> ExchangeMachine.Event {
        var greeting = known
        if greeting == nil { greeting = try await greet() }
        guard let told = greeting, let theirs = told.knowledge, !told.moved.isEmpty else {
            return .greeted(greeting)
        }
        let hasNews = try engine(dataset.name) { () throws(StoreError) in
            let ours = try dataset.knowledge()
            return try theirs.syncCount > dataset.checkpoint(for: peer).pulledThrough
                || !ours.vector.covers(theirs.vector)
                || !PeerLifecycle(ours.lifecycle).covers(theirs.lifecycle)
        }
        guard hasNews || moves.isRefused else { return .greeted(greeting) }
        let targets = told.moved.filter { !moves.underWay.contains($0) }
        for name in targets {
            guard try isForUs(name) else { throw recordsMoved(name) }
            guard try await exchange(name) else { return .cutShort }
        }
        try engine(dataset.name) { () throws(StoreError) in try dataset.noteMoved(into: targets) }
        moves.isTaken = true
        return .greeted(try await greet())
    }

    private func recordsMoved(_ name: String) -> SyncError {
        SyncError(
            .recordsMoved,
            "records went from the dataset into \(name) at the peer, and \(name) was never "
                + "exchanged with it from here; exchange that one, or all datasets")
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
            store: store, dataset: other, connection: connection, options: options, peer: peer,
            underWay: moves.underWay.union([dataset.name]), mayExchange: moves.mayExchange)
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
            .contended, .recordsMoved,
        ].contains(code)
    }
}
