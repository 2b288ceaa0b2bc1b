extension Engine {
    /// Compares a page with what is here and applies it with its checkpoint, all under one lock:
    /// what `replicate(_:into:)` does with records that were compared one by one. Nothing can move
    /// on in between, so nothing is compared twice.
    ///
    /// - Throws: `invalidArgument` if a record is beyond the limits, and what stops a writer; then
    ///   nothing was applied.
    func merge(
        _ page: MergePage, by rule: MergeRule, then end: MergeEnd, into state: DatasetState
    ) throws(StoreError) -> MergeOutcome {
        try checkBounds(of: page, end)
        var merge = PageComparison(
            page, rule: rule, latestBelieved: latestBelieved.rawValue, ours: end.ours,
            told: end.told)
        try page.bytes.withBytes { (all) throws(StoreError) in
            _ = try commitBlock(
                nil, waking: merge.hasWrites ? state.name : nil, isStaging: true
            ) { (held) throws(StoreError) in
                if !page.items.isEmpty || end.isLast {
                    try held.check(end.meeting, with: end.peer, isLast: end.isLast, in: state)
                }
                try merge.compare(
                    with: currentView, state.recordsID, seen: state.vector,
                    wiped: state.lifecycle.wiped, all)
                merge.outcome.syncCountBefore = SyncCount(rawValue: state.syncCount)
                try held.check(end.notes + end.traces)
                return merge.bytesMax + held.bytesMax(of: end, after: merge, in: state)
                    + held.bytesMax(of: end.notes + end.traces)
            } write: { (held, block, memtable) throws(StoreError) -> Void? in
                // Nothing to apply, or refused.
                guard merge.outcome.isApplied,
                    merge.hasWrites || !end.notes.isEmpty || held.isNews(end, of: merge, in: state)
                else { return nil }
                let notes = merge.hasWrites ? end.notes + end.traces : end.notes
                let replaced = try held.replacedVectors(of: notes)
                try held.placeRecords(of: merge, in: state, &block)
                try held.apply(merge, all, to: state, &block, memtable)
                let stamps = NoteStamps(
                    counts: (merge.outcome.syncCountBefore.rawValue, state.syncCount))
                try held.append(
                    notes, stamps: stamps, replaced: replaced, to: &block, memtable: memtable)
                held.note(end, of: merge, in: state, &block)
                // What is noted of a dataset may be news to its peers.
                if !end.notes.isEmpty { held.touch(state) }
                return ()
            }
        }
        return merge.outcome
    }
}

extension EngineParts {
    /// The limits that every record keeps that is stored here.
    fileprivate func checkBounds(of page: MergePage, _ end: MergeEnd) throws(StoreError) {
        for item in page.items {
            guard item.keyCount <= Limits.keyBytesMax, item.valueCount <= Limits.valueBytesMax,
                item.counter > 0, item.highest <= Limits.countMax,
                item.time < UInt64(Int64.max), item.expiresAt <= EntryLayout.expiryMax
            else { throw .beyondLimits }
        }
        guard page.vectors.allSatisfy(\.isCountable), end.vector.isCountable,
            end.through.rawValue <= Limits.countMax,
            page.authors.allSatisfy({ $0.utf8.count <= Limits.authorBytesMax }),
            end.meeting?.isStorable ?? true
        else { throw .beyondLimits }
    }
}

extension EngineState {
    /// The log's bytes that everything but the records may take.
    fileprivate func bytesMax(
        of end: MergeEnd, after merge: PageComparison, in state: DatasetState
    ) -> Int {
        let bytes = StateItem.dataset(state, state.lifecycle).byteCount
        guard let checkpoint = checkpoint(end, of: merge, in: state) else { return bytes }
        return bytes + bytesMax(of: end.meeting, in: state)
            + StateItem.seen(end.vector, name: state.name).byteCount
            + StateItem.checkpoint(checkpoint, of: end.peer, name: state.name).byteCount
    }

    // MARK: - The checkpoint

    /// The checkpoint behind the page; nil if a conflict was left, so that it must come again.
    fileprivate func checkpoint(
        _ end: MergeEnd, of merge: PageComparison, in state: DatasetState
    ) -> PeerCheckpoint? {
        guard merge.rule != .leave || merge.outcome.conflicts.isEmpty else { return nil }
        var checkpoint = state.peers[end.peer] ?? PeerCheckpoint()
        checkpoint.pulledThrough = end.through
        checkpoint.vector.formUnion(end.vector)
        if end.acknowledged <= merge.outcome.syncCountBefore {
            checkpoint.pushedThrough = max(checkpoint.pushedThrough, end.acknowledged)
        }
        return checkpoint
    }

    /// Whether there is anything to note. A page that brings nothing leaves no trace: two idle
    /// replicas stay idle.
    fileprivate func isNews(
        _ end: MergeEnd, of merge: PageComparison, in state: DatasetState
    ) -> Bool {
        guard let checkpoint = checkpoint(end, of: merge, in: state) else { return false }
        // Who was asked remembers everybody who pushes.
        let isKnown = merge.rule != .leave || state.peers[end.peer] != nil
        return !isKnown || checkpoint != state.peers[end.peer] ?? PeerCheckpoint()
            || !state.vector.covers(end.vector)
    }

    fileprivate func note(
        _ end: MergeEnd, of merge: PageComparison, in state: DatasetState,
        _ block: inout LogBlockWriter
    ) {
        guard let checkpoint = checkpoint(end, of: merge, in: state) else { return }
        if end.isLast {
            inherit(end.meeting, in: state, &block)
            note(end.vector, in: state, &block)
        }
        note(checkpoint, of: end.peer, in: state, &block)
    }

    // MARK: - The records

    /// Gives a dataset that had no records a number for them, and makes one visible that gets a
    /// live record.
    fileprivate func placeRecords(
        of merge: PageComparison, in state: DatasetState, _ block: inout LogBlockWriter
    ) throws(StoreError) {
        var isVisible = !state.lifecycle.isDeleted || merge.hasLiveWrites || state.isVisible
        if isVisible, state.lifecycle.isDeleted, merge.hasWrites, !merge.hasLiveWrites {
            // The last record that kept it there may be among those that are deleted now.
            let deleted = merge.decisions.indices.filter { merge.decisions[$0].step != .ignore }
            isVisible = try hasLiveRecords(
                state, besides: Set(deleted.map { merge.page.key(at: $0) }))
        }
        var id = state.recordsID
        if id == 0, isVisible || merge.hasWrites { id = try takeDatasetID() }
        guard id != state.recordsID || isVisible != state.isVisible else { return }
        change(state, to: state.lifecycle, id: id, isVisible: isVisible, &block)
    }

    fileprivate func apply(
        _ merge: PageComparison, _ all: ByteView, to state: DatasetState,
        _ block: inout LogBlockWriter, _ memtable: Memtable
    ) throws(StoreError) {
        let page = merge.page
        var origins = AdoptedOrigins(page)
        let latestBelieved = latestBelieved
        var groups = [UInt32?](repeating: nil, count: merge.groupCount)
        try merge.kept.withBytes { (kept) throws(StoreError) in
            for index in merge.decisions.indices {
                let decision = merge.decisions[index]
                guard decision.step != .ignore else { continue }
                let item = page.items[index]
                let key = MergePage.key(of: item, in: all)
                switch decision.step {
                case .ignore:
                    continue
                case .takeIncoming:
                    let time = HybridTime(rawValue: item.time)
                    clock.see(time, notAfter: latestBelieved)
                    append(
                        item.hasValue ? .put : .delete, key, MergePage.value(of: item, in: all),
                        expiresAt: item.expiresAt,
                        origin: origins.number(of: item, &block, memtable.tables),
                        counter: item.counter, time: time, of: state, to: &block,
                        memtable: memtable)
                case .takeJoined:
                    origins.noteApplied(item)
                    adopt(
                        merge.merges[Int(decision.merge)], &groups,
                        item.hasValue ? .put : .delete, key,
                        MergePage.value(of: item, in: all), expiresAt: item.expiresAt,
                        into: state, &block, memtable)
                case .keepJoined:
                    origins.noteApplied(item)
                    let merge = merge.merges[Int(decision.merge)]
                    // Within the bytes, as it was counted when they were added.
                    let value = unsafe ByteView(
                        base: kept.base + merge.value.lowerBound, count: merge.value.count)
                    adopt(
                        merge, &groups, merge.kind, key, value, expiresAt: merge.expiresAt,
                        into: state, &block, memtable)
                }
            }
        }
        origins.noteApplied(to: state)
    }

    /// Stores a version that joins two. What it has seen is what the version has that was here,
    /// which was noted when that came, and what the incoming one has.
    ///
    /// - Parameter groups: the numbers of the origins that merges share, as far as they have one.
    fileprivate func adopt(
        _ joined: PageComparison.Merge, _ groups: inout [UInt32?], _ kind: EntryKind,
        _ key: ByteView, _ value: ByteView, expiresAt: UInt64, into state: DatasetState,
        _ block: inout LogBlockWriter, _ memtable: Memtable
    ) {
        see(joined.time)
        let origin: UInt32
        if let group = joined.group, let known = groups[group] {
            origin = known
        } else {
            origin = block.number(
                of: joined.dot.replica, joined.vector, joined.author, in: memtable.tables)
            if let group = joined.group { groups[group] = origin }
        }
        append(
            kind, key, value, expiresAt: expiresAt, origin: origin, counter: joined.dot.counter,
            time: joined.time, of: state, to: &block, memtable: memtable)
    }
}

/// The numbers that the origins of a page have in the tables of a log, each looked up once.
private struct AdoptedOrigins {
    private struct Adopted {
        var number: UInt32?
        /// Of the own entries of all that were stored.
        var highest: UInt64 = 0
    }

    private let page: MergePage
    private var adopted: [Adopted]

    init(_ page: MergePage) {
        self.page = page
        adopted = Array(repeating: Adopted(), count: page.origins.count)
    }

    mutating func number(
        of item: MergePage.Item, _ block: inout LogBlockWriter, _ tables: VersionTables
    ) -> UInt32 {
        noteApplied(item)
        let index = Int(item.origin)
        let isPlain = item.highest == item.counter
        if isPlain, let known = adopted[index].number { return known }
        let origin = page.origins[index]
        let replica = page.replicas[Int(origin.replica)]
        var vector = page.vectors[Int(origin.vector)]
        // Only a vector that says more than the dot has an entry of the replica itself.
        if !isPlain { vector.insert(Dot(replica: replica, counter: item.highest)) }
        let number = block.number(of: replica, vector, page.authors[Int(origin.author)], in: tables)
        if isPlain { adopted[index].number = number }
        return number
    }

    @inline(__always)
    mutating func noteApplied(_ item: MergePage.Item) {
        let index = Int(item.origin)
        adopted[index].highest = max(adopted[index].highest, item.highest)
    }

    /// What the stored versions had seen counts as applied: for each origin the most that any of
    /// them had, which covers the others.
    func noteApplied(to state: DatasetState) {
        for (origin, adopted) in zip(page.origins, adopted) where adopted.highest > 0 {
            let dot = Dot(
                replica: page.replicas[Int(origin.replica)], counter: adopted.highest)
            var vector = page.vectors[Int(origin.vector)]
            if state.vector.contains(dot), state.vector.covers(vector) { continue }
            vector.insert(dot)
            state.noteApplied(vector)
        }
    }
}

extension Dataset {
    /// Compares the records of a page with those that are here, applies what is new, and notes the
    /// checkpoint, in one atomic batch.
    ///
    /// - Parameter rule: for records that are concurrent with those here.
    /// - Throws: `invalidArgument` if a record is beyond the limits of the store.
    package func merge(
        _ page: MergePage, by rule: MergeRule, then end: MergeEnd
    ) throws(StoreError) -> MergeOutcome {
        try engine.merge(page, by: rule, then: end, into: state)
    }
}
