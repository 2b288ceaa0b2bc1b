// Whether either side of an exchange is late: see `Meeting`.

extension EngineState {
    /// The batch with what was written here since the peer was asked and outlives, each record
    /// written anew. O(changes since).
    ///
    /// - Throws: `changesExpired` if that is more than belongs into one batch: the exchange is to
    ///   be repeated, which begins with asking about it.
    func whole(
        _ batch: ReplicationBatch, in state: DatasetState
    ) throws(StoreError) -> ReplicationBatch {
        guard let outlivers = batch.outlivers, state.syncCount > outlivers.since.rawValue,
            state.recordsID != 0
        else { return batch }
        var whole = batch
        let taken = Set(batch.writes.map(\.key))
        let own = ownIDs
        let latest = latestBelieved
        var bytes = 0
        var steps = changeSteps(of: state, since: outlivers.since)
        while let write = try steps.next({
            (entry, tables) throws(StoreError) -> ReplicatedWrite? in
            let version = tables.version(of: entry)
            guard own.contains(version.dot.replica),
                !version.vector.covers(outlivers.forgotten.vector)
            else { return nil }
            let key = entry.key.array
            let forgotten = outlivers.forgotten(of: key)
            guard !taken.contains(key), !version.vector.covers(forgotten.vector) else {
                return nil
            }
            let value: [UInt8]? = entry.kind == .put ? try tables.value(of: entry) : nil
            return ReplicatedWrite(
                key: key,
                content: Outlivers.content(
                    value: value, of: version, seen: version.vector,
                    expiresAt: value != nil && entry.expiresAt > 0 ? entry.expiresAt : nil,
                    after: forgotten, latestBelieved: latest),
                expected: version)
        }) {
            guard let write else { continue }
            bytes +=
                write.key.count + (write.value?.count ?? 0)
                + LogBlockWriter.definitionBytesMax(write.version.vector)
            guard bytes <= Limits.outliversBytesMax else { throw .late(state.name) }
            whole.writes.append(write)
        }
        return whole
    }

    private func changeSteps(of state: DatasetState, since: SyncCount) -> ChangeSteps {
        ChangeSteps(momentAsStored(), dataset: state.recordsID, since: since.rawValue)
    }

    /// - Parameter isLast: whether what the sender has seen is to count as seen here.
    /// - Throws: `changesExpired` if either side is late.
    func check(
        _ meeting: Meeting?, with peer: ReplicaID?, isLast: Bool, in state: DatasetState
    ) throws(StoreError) {
        guard let meeting else { return }
        let others = state.freshStarts.values.filter { $0.peer != peer }
        let isSenderLate =
            !meeting.isJudged && !meeting.vector.covers(state.knownForgotten.vector)
            || !others.allSatisfy { meeting.vector.covers($0.forgotten.vector) }
        guard !isSenderLate else { throw .late(state.name) }
        let forgotten = meeting.forgotten.vector
        guard !state.vector.covers(forgotten) else { return }
        guard state.vector.union(meeting.settled).covers(forgotten) else {
            throw .late(state.name)
        }
        if isLast, let through = meeting.settledThrough,
            try hasChanges(of: state, since: through, lacking: forgotten)
        {
            throw .late(state.name)
        }
    }

    /// Whether anything changed after a count that has not seen all of the given. O(changes since).
    private func hasChanges(
        of state: DatasetState, since: SyncCount, lacking vector: VersionVector
    ) throws(StoreError) -> Bool {
        guard state.syncCount > since.rawValue, state.recordsID != 0 else { return false }
        var steps = changeSteps(of: state, since: since)
        let forgotten = state.knownForgotten
        while let isLacking = try steps.next({ (entry, tables) throws(StoreError) -> Bool in
            let version = tables.version(of: entry)
            // What is forgotten here has nothing left to say, nor has the mark of a dropped record.
            let isForgotten =
                entry.kind == .delete && (entry.stamp.counter == 0 || forgotten.covers(version))
            return !isForgotten && !version.vector.covers(vector)
        }) {
            if isLacking { return true }
        }
        return false
    }

    /// After a fresh start what the sender has forgotten is forgotten here, too. To be noted
    /// before its vector is joined.
    func inherit(
        _ meeting: Meeting?, in state: DatasetState, _ block: inout LogBlockWriter
    ) {
        guard let meeting, !state.vector.covers(meeting.forgotten.vector) else { return }
        note(meeting.forgotten, in: state, &block)
    }

    /// Bytes that the note of what is inherited may take in the log.
    func bytesMax(of meeting: Meeting?, in state: DatasetState) -> Int {
        meeting.map { StateItem.forgotten($0.forgotten, name: state.name).byteCount } ?? 0
    }
}

extension StoreError {
    fileprivate static func late(_ dataset: String) -> StoreError {
        StoreError(
            .changesExpired,
            "one side of an exchange of \(dataset) lacks deletions that the other has forgotten; "
                + "repeat the exchange, so that it starts afresh")
    }
}
