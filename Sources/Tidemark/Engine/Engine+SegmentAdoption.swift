// How segments that were made of another replica's blocks become part of the store.
//
// Order, and what a crash leaves behind:
// 1. The segments are whole and durable, under names that no manifest has: opening removes them.
// 2. If an empty dataset has the very number that the entries have, it gets another one, durably:
//    so that nobody who opens the store after the next step has the records without their state.
// 3. The manifest names them as the oldest runs. Nobody knows their number yet, which is not given
//    out any more: they are entries of no dataset, and merges drop them.
// 4. One block of the log gives the dataset its number and state. With it the records are there.
//
// All of this is done in compaction's turn: a merge between steps 3 and 4 would drop the entries.
// The entries have no place in the sequence of commits; a reader of an earlier moment has another
// number of the dataset, and an older view.

extension EngineState {
    func canAdopt(_ offer: SegmentOffer, into state: DatasetState) -> Bool {
        // Versions of our own that we do not know would be a sign that this store went back in
        // time, and what the deletion of the dataset wiped must not come back.
        state.isVisible && state.neverHadRecords
            && offer.knowledge.lifecycle.wiped.covers(state.lifecycle.wiped)
            && ownIDs.allSatisfy {
                offer.knowledge.vector[$0] == 0 && offer.outstanding[$0] == 0
            }
            && isFree(offer.dataset)
    }

    /// Whether no entry of any dataset ever had the number.
    private func isFree(_ number: DatasetID) -> Bool {
        if datasetNumbers.isFree(number) { return true }
        // Who gives it up needs another.
        return datasetNumbers.next <= DatasetNumbers.last && emptyHolder(of: number) != nil
    }

    /// The dataset that has the number, which may be any: several are taken over side by side. nil
    /// if it has entries of that number.
    fileprivate func emptyHolder(of number: DatasetID) -> DatasetState? {
        catalog.state(numbered: number).flatMap { holder in
            holder.isVisible && holder.neverHadRecords ? holder : nil
        }
    }
}

extension Engine {
    /// Makes segments part of the store. False if the dataset has got records meanwhile; then the
    /// files are still there and belong to nothing.
    ///
    /// - Parameter numbers: of the segments, run by run, the newest run first.
    func install(
        _ numbers: [[UInt64]], as adopted: AdoptedState, in state: DatasetState,
        offer: SegmentOffer, from peer: ReplicaID, notes: [SystemNote]
    ) throws(StoreError) -> Bool {
        try takeCompaction()
        defer { endCompaction() }
        return try stoppingOnFailure { () throws(StoreError) in
            try storage.syncDirectory(path)
            var runs: [SegmentRun] = []
            for run in numbers {
                var segments: [SealedSegment] = []
                for number in run {
                    segments.append(
                        try SealedSegment(
                            number: number, path: filePath(FileName.sealed(number)),
                            identity: identity, storage: storage, cache: cache,
                            valueFiles: valueFiles))
                }
                runs.append(SegmentRun(segments))
            }
            guard try makeNumberFree(for: offer, state) else { return false }
            try updateManifest { manifest in
                manifest.segments += runs.flatMap(\.manifestEntries)
                manifest.nextDataset = max(manifest.nextDataset, adopted.records + 1)
                manifest.expiresFrom = min(manifest.expiresFrom, adopted.expiresFrom)
            }
            guard try show(runs, as: adopted, in: state, offer, from: peer, notes) else {
                let removed = Set(numbers.joined())
                try updateManifest { manifest in
                    manifest.segments.removeAll { removed.contains($0.number) }
                }
                return false
            }
            return true
        }
    }

    /// Takes the right to compact, and nothing more.
    func takeCompaction() throws(StoreError) {
        try withLock { (held) throws(StoreError) in
            try held.checkWritable()
            try held.checkIsNoCompactor()
            // As a merge does, it makes segments.
            while held.turn.isTaken || held.sealing.loanCount > 0 {
                held.awaitBackground()
                try held.checkWritable()
            }
            held.turn.take()
        }
    }

    /// Sees to it that no dataset has the number, and that none gets it. False if that cannot be.
    private func makeNumberFree(
        for offer: SegmentOffer, _ state: DatasetState
    ) throws(StoreError) -> Bool {
        var isFree = false
        _ = try commitBlock(.disk) { held in
            guard let holder = held.emptyHolder(of: offer.dataset) else { return 0 }
            let empty = AdoptedState(
                records: .max, isVisible: true, lifecycle: holder.lifecycle)
            return StateItem.adopted(empty, name: holder.name).byteCount
        } write: { (held, block, _) throws(StoreError) -> Void? in
            guard held.canAdopt(offer, into: state) else { return nil }
            guard let holder = held.emptyHolder(of: offer.dataset) else {
                held.datasetNumbers.take(offer.dataset)
                isFree = true
                return nil
            }
            let empty = AdoptedState(
                records: try held.takeDatasetID(), isVisible: true, lifecycle: holder.lifecycle)
            held.adopt(empty, in: holder, &block)
            isFree = true
            return ()
        }
        return isFree
    }

    /// Shows the runs and what is known of their dataset. False if it has records by now.
    private func show(
        _ runs: [SegmentRun], as adopted: AdoptedState, in state: DatasetState,
        _ offer: SegmentOffer, from peer: ReplicaID, _ notes: [SystemNote]
    ) throws(StoreError) -> Bool {
        let forgotten = offer.knowledge.forgotten
        var whole = adopted
        var checkpoint = PeerCheckpoint()
        let shown: Void? = try commitBlock(.disk, waking: state.name) { (held) throws(StoreError) in
            try held.check(notes)
            whole.lifecycle = state.lifecycle.joined(with: adopted.lifecycle)
            // All of ours is the peer's, too.
            checkpoint = state.peers[peer] ?? PeerCheckpoint()
            checkpoint.pulledThrough = SyncCount(rawValue: adopted.syncCount)
            checkpoint.pushedThrough = checkpoint.pulledThrough
            checkpoint.vector.formUnion(adopted.vector)
            return StateItem.adopted(whole, name: state.name).byteCount
                + StateItem.forgotten(forgotten, name: state.name).byteCount
                + StateItem.checkpoint(checkpoint, of: peer, name: state.name).byteCount
                + held.bytesMax(of: notes)
        } write: { (held, block, memtable) throws(StoreError) -> Void? in
            guard state.isVisible, state.neverHadRecords,
                offer.knowledge.lifecycle.wiped.covers(state.lifecycle.wiped)
            else { return nil }
            let replaced = try held.replacedVectors(of: notes)
            views.replace { $0.with(runs: $0.runs + runs) }
            let number = state.recordsID
            held.adopt(whole, in: state, &block)
            held.note(forgotten, in: state, &block)
            // No entry ever had it, so that it may do for another dataset.
            held.datasetNumbers.giveBack(number)
            held.note(checkpoint, of: peer, in: state, &block)
            try held.append(notes, replaced: replaced, to: &block, memtable: memtable)
            held.turn.isWanted = true
            return ()
        }
        return shown != nil
    }
}

extension EngineState {
    /// Puts a state that is taken over into the log and into effect.
    fileprivate func adopt(
        _ adopted: AdoptedState, in state: DatasetState, _ block: inout LogBlockWriter
    ) {
        block.append(.adopted(adopted, name: state.name))
        let formerID = state.recordsID
        see(adopted.lifecycle.time)
        see(HybridTime(rawValue: adopted.timeMax))
        // The commit's own entries come after this one in the sequence.
        state.adopt(adopted, lastSequence: sequence)
        catalog.renumber(state, from: formerID)
        catalog.keepForSnapshots(state)
        sequence += 1
        if adopted.expiresFrom < .max { noteExpiry(of: .put, adopted.expiresFrom, in: state) }
        touch(state)
    }
}
