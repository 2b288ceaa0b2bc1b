extension Engine {
    /// The state of a dataset, creating the dataset if there is none.
    ///
    /// - Parameter number: of one of the store's own datasets; nil for a user's.
    func openDataset(
        _ name: String, number: DatasetID? = nil
    ) throws(StoreError) -> DatasetState {
        if number == nil { try DatasetName.check(name) }
        if let known = try knownState(named: name), known.isVisible { return known }
        let state = try state(named: name)
        if state.isVisible { return state }
        _ = try commitBlock(nil) { held in
            StateItem.dataset(state, state.lifecycle).byteCount
        } write: { (held, block, _) throws(StoreError) -> Void? in
            if state.isVisible { return nil }
            var lifecycle = state.lifecycle
            lifecycle.isDeleted = false
            held.stampNow(&lifecycle)
            var id = state.recordsID != 0 ? state.recordsID : number ?? 0
            if id == 0 { id = try held.takeDatasetID() }
            held.change(state, to: lifecycle, id: id, isVisible: true, &block)
            return ()
        }
        return state
    }

    /// Deletes a dataset; its records are gone for readers at once and from the disk at the next
    /// compaction. Durable when it returns, whatever the store's durability: what was deleted may
    /// be dropped from then on. False if there was none.
    func deleteDataset(_ name: String) throws(StoreError) -> Bool {
        try DatasetName.check(name)
        guard let state = try existingState(named: name) else {
            try withLock { (held) throws(StoreError) in try held.checkWritable() }
            return false
        }
        let retired = try commitBlock(.memory) { (held) throws(StoreError) in
            guard state.isVisible else { return 0 }
            let wipe = held.wipe(of: state)
            return StateItem.dataset(state, wipe).byteCount
                + (try held.survivorBytesMax(of: state, wipe))
        } write: { (held, block, memtable) throws(StoreError) -> DatasetID? in
            guard state.isVisible else { return nil }
            var lifecycle = held.wipe(of: state)
            let remaining = try held.survivors(of: state, lifecycle)
            held.stampNow(&lifecycle)
            let retired = state.recordsID
            let id = remaining.isEmpty ? 0 : try held.takeDatasetID()
            held.change(state, to: lifecycle, id: id, isVisible: false, &block)
            for record in remaining {
                try held.bury(record, in: state, &block, memtable)
            }
            return retired
        }
        guard let retired else { return false }
        try forget(retired)
        waiters.wakeAll(for: name)
        return true
    }
}

extension EngineState {
    /// The lifecycle of the dataset once it is deleted, but for its stamp.
    fileprivate func wipe(of state: DatasetState) -> DatasetLifecycle {
        var lifecycle = state.lifecycle
        lifecycle.isDeleted = true
        lifecycle.wiped.formUnion(state.vector)
        return lifecycle
    }

    /// In the middle of an exchange the wipe cannot cover what the first pages brought, since it
    /// may not claim what has not come yet. Such records are deleted one by one instead, so that
    /// they go wherever else they are; tombstones among them stay.
    fileprivate func bury(
        _ record: Record, in state: DatasetState, _ block: inout LogBlockWriter,
        _ memtable: Memtable
    ) throws(StoreError) {
        try record.key.withBytes { (key) throws(StoreError) in
            if record.isDeleted {
                adopt(
                    record.version, .delete, key, .empty, expiresAt: record.expiresAt ?? 0,
                    into: state, &block, memtable)
            } else {
                _ = appendLocal(
                    state, kind: .delete, key: key, value: .empty, seen: record.version.vector,
                    to: &block, memtable: memtable)
            }
        }
    }
}

extension Engine {
    /// Makes the giving up of an id durable, after which its records may go.
    func forget(_ retired: DatasetID) throws(StoreError) {
        try syncAll()
        withLock { held in held.datasetNumbers.noteDurable(retired) }
    }
}

extension EngineState {
    /// Puts a new lifecycle and id of a dataset into the log and into effect.
    func change(
        _ state: DatasetState, to lifecycle: DatasetLifecycle, id: DatasetID,
        isVisible: Bool, _ block: inout LogBlockWriter
    ) {
        block.append(.dataset(id, isVisible: isVisible, name: state.name, lifecycle))
        let formerID = state.recordsID
        if formerID != 0, formerID != id { datasetNumbers.retire(formerID) }
        state.lifecycle = lifecycle
        see(lifecycle.time)
        // The commit's own entries come after this one in the sequence.
        state.place(records: id, isVisible: isVisible, lastSequence: sequence, time: clock.last)
        if id == 0 { state.forgetUnfinishedExchanges() }
        catalog.renumber(state, from: formerID)
        catalog.keepForSnapshots(state)
        sequence += 1
        touch(state)
    }

    /// Before anything is changed for which the number is needed.
    func takeDatasetID() throws(StoreError) -> DatasetID {
        guard let number = datasetNumbers.draw() else {
            throw StoreError(
                .invalidArgument,
                "the store has given out all \(DatasetNumbers.last) numbers of datasets; "
                    + "synchronise its datasets into a new store",
                location: StoreError.Location(path: path))
        }
        return number
    }

    func stampNow(_ lifecycle: inout DatasetLifecycle) {
        let now = clock.next(wallClockMilliseconds: storage.wallClockMilliseconds())
        // Later than the stamp that is there on whichever clock, also if that is not believed.
        lifecycle.time = max(now, lifecycle.time.next)
        lifecycle.replica = replicaID
    }
}
