extension Engine {
    /// Applies a batch as one block of the log: all of it or none.
    ///
    /// Whether a plain batch may be written follows from what it knows of all its writes and from
    /// the datasets that it names, so its writes are walked over once, and what those to one
    /// dataset have in common is looked up once. Any other goes through
    /// ``commit(_:durability:validate:write:)``.
    ///
    /// - Throws: as there.
    func commit(_ batch: WriteBatch, durability: Durability?) throws(StoreError) {
        guard let position = try commitPlain(batch) else {
            _ = try commit(batch.count, durability: durability) {
                (index, body) throws(StoreError) in
                try batch.withWrite(at: index, body)
            }
            return
        }
        try makeDurable(position, durability)
    }

    /// Returns where the batch ends in the log; nil if it is not plain, or a dataset is in a state
    /// in which writes are not. Then nothing was written.
    private func commitPlain(_ batch: WriteBatch) throws(StoreError) -> LogPosition? {
        guard batch.isPlain else { return nil }
        monitor.lock()
        defer { monitor.unlock() }
        var isPlain = true
        let memtable = try room { () throws(StoreError) in
            var bytes = batch.entryBytesMax
            isPlain = true
            for dataset in batch.datasets {
                guard takesPlainWrites(dataset.state) else {
                    isPlain = false
                    return 0
                }
                bytes += LogBlockWriter.definitionBytesMax(dataset.state.vector)
            }
            return bytes
        }
        guard isPlain else { return nil }
        var block = LogBlockWriter(memtable.log, isStaging: true)
        append(batch, to: &block, memtable)
        memtable.settle()
        publish(block, in: memtable)
        return LogPosition(log: memtable.log.number, offset: memtable.log.appended)
    }

    /// Whether a write without a condition needs no look at anything but the dataset: it does not
    /// replace what an unfinished exchange has brought, and does not make the dataset anew.
    private func takesPlainWrites(_ state: DatasetState) -> Bool {
        state.isVisible && state.outstanding.isEmpty && !state.lifecycle.isDeleted
    }

    /// Stamps the writes of a plain batch and puts them into log and memtable. Under `monitor`.
    private func append(
        _ batch: WriteBatch, to block: inout LogBlockWriter, _ memtable: Memtable
    ) {
        let now = storage.wallClockMilliseconds()
        // Nobody else writes meanwhile, and a member of a class is not kept in a register.
        var clock = clock
        var sequence = sequence
        var (putCount, deleteCount) = (0, 0)
        var run: PlainRun?
        batch.forEach { (dataset, kind, key, value, expiresAt) in
            if run?.dataset != dataset {
                if let run { end(run) }
                run = beginRun(dataset, batch.datasets[dataset].state, &block, memtable)
            }
            guard let id = run?.id, let stamp = run?.next(&clock, now, expiresAt) else { return }
            sequence += 1
            if kind == .put {
                putCount += 1
                if run?.mayHaveGaps ?? true { gaps.notePut(key, in: id) }
                if expiresAt > 0, let state = run?.state {
                    noteExpiry(of: kind, expiresAt, in: state)
                }
            } else {
                deleteCount += 1
                noteDeletion(of: key, in: id, memtable)
            }
            block.append(
                kind, dataset: id, key: key, value: value, stamp: stamp, sequence: sequence,
                into: memtable)
        }
        if let run { end(run) }
        self.clock = clock
        self.sequence = sequence
        counted.puts &+= putCount
        counted.deletes &+= deleteCount
    }

    /// Begins to write to a dataset of a batch.
    private func beginRun(
        _ dataset: Int, _ state: DatasetState, _ block: inout LogBlockWriter, _ memtable: Memtable
    ) -> PlainRun {
        touch(state)
        return PlainRun(
            dataset: dataset, state: state, id: state.recordsID,
            mayHaveGaps: gaps.mayHave(state.recordsID),
            origin: originOfWrites(to: state, &block, memtable),
            counter: state.vector[replicaID], syncCount: state.syncCount)
    }

    /// Gives the dataset what the writes have taken of its counts.
    private func end(_ run: PlainRun) {
        run.state.vector.insert(Dot(replica: replicaID, counter: run.counter))
        run.state.syncCount = run.syncCount
    }
}

/// Writes of a batch to one dataset, one after the other: what they have in common, and where the
/// counts of the dataset are.
private struct PlainRun {
    /// The place among the batch's datasets.
    let dataset: Int
    let state: DatasetState
    /// Of the dataset's records.
    let id: DatasetID
    let mayHaveGaps: Bool
    let origin: UInt32
    var counter: UInt64
    var syncCount: UInt64

    /// The stamp of the next write.
    @inline(__always)
    mutating func next(_ clock: inout HybridClock, _ now: UInt64, _ expiresAt: UInt64) -> Stamp {
        counter += 1
        syncCount += 1
        return Stamp(
            syncCount: syncCount, origin: origin, counter: counter,
            time: clock.next(wallClockMilliseconds: now).rawValue, expiresAt: expiresAt)
    }
}
