/// Writes that are committed together: those of a batch, or one alone.
protocol WriteSource {
    var count: Int { get }
    /// Whether all writes are within their bounds, and none has a condition.
    var isPlain: Bool { get }
    /// Upper bound of what the entries take in a log.
    var entryBytesMax: Int { get }
    /// In the order of the writes; one may stand there several times.
    var states: States { get }
    associatedtype States: RandomAccessCollection where States.Element == DatasetState

    /// Hands a write to the body, which may borrow key and value during the call.
    func withWrite(
        at index: Int, _ body: (StagedWrite) throws(StoreError) -> Void
    ) throws(StoreError)

    /// Hands all writes to the body, one after the other: the place of the dataset's state in
    /// ``states``, counted from 0, what is done, key and value, which may be borrowed during the
    /// call, and when the record expires.
    func forEach(_ body: (Int, EntryKind, ByteView, ByteView, UInt64) -> Void)
}

extension WriteBatch: WriteSource {
    var states: some RandomAccessCollection<DatasetState> { datasets.lazy.map(\.state) }
}

/// One write that is too large to be put into the log under the lock.
struct LargeWrite: WriteSource {
    let write: StagedWrite

    var count: Int { 1 }
    var isPlain: Bool { false }
    var states: some RandomAccessCollection<DatasetState> { CollectionOfOne(write.state) }

    var entryBytesMax: Int {
        LogBlockWriter.byteCountMax(key: write.key.count, value: write.value.count)
    }

    func withWrite(
        at index: Int, _ body: (StagedWrite) throws(StoreError) -> Void
    ) throws(StoreError) {
        try body(write)
    }

    func forEach(_ body: (Int, EntryKind, ByteView, ByteView, UInt64) -> Void) {
        body(0, write.kind, write.key, write.value, write.expiresAt)
    }
}

// What is written and how much of it is found out under the lock, and published under it. In
// between a large batch is put into the log without the lock, and so no reader, no sealing and no
// sync waits for it: only other writers do.

extension Engine {
    /// Applies writes as one block of the log: all of them or none. Returns the last one's dot.
    ///
    /// Whether plain writes may be written follows from what is known of all of them and from the
    /// datasets that they name, so they are walked over once, and what those to one dataset have
    /// in common is looked up once. Others are each checked first.
    ///
    /// - Parameter validate: called under the lock before anything is written, each time that
    ///   others may have written meanwhile.
    /// - Throws: `invalidArgument`, `versionMismatch`, `datasetNotFound`, what `validate` throws,
    ///   and what stops a writer.
    @discardableResult
    func commit(
        _ source: some WriteSource, durability: Durability?,
        validate: (EngineState) throws(StoreError) -> Void = { _ in }
    ) throws(StoreError) -> Dot? {
        let (lastDot, position) = try withLock { (held) throws(StoreError) in
            try held.commit(source, validate)
        }
        try makeDurable(position, durability)
        return lastDot
    }
}

extension EngineState {
    fileprivate func commit(
        _ source: some WriteSource, _ validate: (EngineState) throws(StoreError) -> Void
    ) throws(StoreError) -> (Dot?, LogPosition) {
        var plan = BatchPlan()
        let memtable = try room { () throws(StoreError) in
            try validate(self)
            plan = try self.plan(source)
            return plan.byteCountMax
        }
        let lastDot =
            plan.byteCountMax > Self.lockedBytesMax && !plan.revives
            ? try writeWithoutLock(source, plan, memtable)
            : write(source, plan, memtable)
        return (lastDot, LogPosition(endOf: memtable.log))
    }

    /// Writes that take more are put into the log without the lock: to hold it for these takes no
    /// longer than to wait for a processor.
    static let lockedBytesMax = 64 << 10

    /// Checks writes, so that nothing can fail once the first byte is in the log, and counts the
    /// bytes that their block may take.
    private func plan(_ source: some WriteSource) throws(StoreError) -> BatchPlan {
        guard source.isPlain, source.states.allSatisfy(takesPlainWrites) else {
            return try planEach(source)
        }
        var plan = BatchPlan()
        plan.byteCountMax = source.states.reduce(source.entryBytesMax) { sum, state in
            sum + LogBlockWriter.definitionBytesMax(state.vector)
        }
        return plan
    }

    /// Whether a write without a condition needs no look at anything but the dataset: it does not
    /// replace what an unfinished exchange has brought, and does not make the dataset anew.
    private func takesPlainWrites(_ state: DatasetState) -> Bool {
        state.isVisible && state.outstanding.isEmpty && !state.lifecycle.isDeleted
    }

    private func planEach(_ source: some WriteSource) throws(StoreError) -> BatchPlan {
        var plan = BatchPlan()
        var defined: DatasetState?
        for index in 0..<source.count {
            try source.withWrite(at: index) { (staged) throws(StoreError) in
                try check(staged)
                try checkExpectation(of: staged)
                plan.byteCountMax += LogBlockWriter.byteCountMax(
                    key: staged.key.count, value: staged.value.count)
                let state = staged.state
                if defined !== state {
                    plan.byteCountMax += revivalBytesMax(staged)
                    plan.byteCountMax += LogBlockWriter.definitionBytesMax(state.vector)
                    defined = state
                }
                if isRevival(staged) { plan.revives = true }
                if !state.outstanding.isEmpty, let vector = try vectorOfReplaced(staged) {
                    if plan.seen.isEmpty {
                        plan.seen = Array(repeating: nil, count: source.count)
                    }
                    plan.seen[index] = vector
                    plan.byteCountMax += LogBlockWriter.definitionBytesMax(
                        state.vector.union(vector))
                }
            }
        }
        return plan
    }

    // MARK: - Writing

    private func write(
        _ source: some WriteSource, _ plan: BatchPlan, _ memtable: Memtable
    ) -> Dot? {
        var block = LogBlockWriter(memtable.log, isStaging: true)
        var changes = BatchChanges(clock: clock, sequence: sequence, keepsRuns: false)
        append(source, plan, to: &block, memtable, &changes)
        take(changes)
        publish(block, in: memtable)
        return changes.lastDot
    }

    /// The same without the lock. What changes of the engine and of the datasets is kept apart
    /// until the block is whole.
    private func writeWithoutLock(
        _ source: some WriteSource, _ plan: BatchPlan, _ memtable: Memtable
    ) throws(StoreError) -> Dot? {
        let log = memtable.log
        let mark = log.durable
        var changes = BatchChanges(clock: clock, sequence: sequence, keepsRuns: true)
        let prepared = withoutLock {
            var block = LogBlockWriter(log, isStaging: true)
            append(source, plan, to: &block, memtable, &changes)
            return log.prepare(payloadCount: block.count, mark: mark)
        }
        // Nobody ever sees what was written when a sync failed meanwhile.
        try checkWritable()
        take(changes)
        log.add(prepared)
        publishAppended(memtable)
        return changes.lastDot
    }

    /// Gives up the lock and takes it again when the body returns. Nobody else writes meanwhile:
    /// ``awaitWriter()``.
    ///
    /// - Parameter isWorthIt: whether to give it up at all.
    func withoutLock<Result, Failure: Error>(
        if isWorthIt: Bool = true, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard isWorthIt else { return try body() }
        isWritingWithoutLock = true
        lastBeforeWriter = clock.last
        defer {
            isWritingWithoutLock = false
            writerDone.broadcast()
            if unreadable != nil { keepReadable() }
        }
        return try unlockedForWriter(body)
    }

    /// Waits for whoever writes without the lock, and gives it up meanwhile.
    func awaitWriter() {
        while isWritingWithoutLock { wait(for: writerDone) }
    }

    /// Stamps the writes of a batch and puts them into log and memtable. Under the lock, or while
    /// nobody else writes.
    @inline(__always)
    private func append(
        _ source: some WriteSource, _ plan: BatchPlan, to block: inout LogBlockWriter,
        _ memtable: Memtable, _ changes: inout BatchChanges
    ) {
        let now = storage.wallClockMilliseconds()
        let (states, isPlain) = (source.states, plan.seen.isEmpty)
        // A member of what is passed by reference is not kept in a register.
        var (clock, sequence) = (changes.clock, changes.sequence)
        var (putCount, deleteCount, index) = (0, 0, 0)
        var run: PlainRun?
        source.forEach { (dataset, kind, key, value, expiresAt) in
            if run?.dataset != dataset {
                if let run { end(run, &changes) }
                let state = states[states.index(states.startIndex, offsetBy: dataset)]
                run = beginRun(dataset, state, &block, memtable, changes)
            }
            if plan.revives, kind == .delete, let ended = run, ended.state.lifecycle.isDeleted {
                // Its last record may be going; that it is there must not depend on who knows.
                end(ended, &changes)
                (self.clock, self.sequence) = (clock, sequence)
                revive(ended.state, &block)
                (clock, sequence) = (self.clock, self.sequence)
                run = beginRun(dataset, ended.state, &block, memtable, changes)
            }
            var origin: UInt32?
            if !isPlain, let seen = plan.seen[index], let state = run?.state {
                origin = originOfWrite(seen: state.vector.union(seen), &block, memtable)
            }
            guard let id = run?.id,
                let stamp = run?.next(&clock, now, expiresAt, origin: origin)
            else { return }
            index += 1
            sequence += 1
            if kind == .put {
                putCount += 1
                if run?.mayHaveGaps ?? true { gaps.notePut(key, in: id) }
            } else {
                deleteCount += 1
                if changes.keepsRuns {
                    relocked { noteDeletion(of: key, in: id, memtable) }
                } else {
                    noteDeletion(of: key, in: id, memtable)
                }
            }
            block.append(
                kind, dataset: id, key: key, value: value, stamp: stamp, sequence: sequence,
                into: memtable)
        }
        if let run { end(run, &changes) }
        memtable.settle()
        (changes.clock, changes.sequence) = (clock, sequence)
        (changes.putCount, changes.deleteCount) = (putCount, deleteCount)
    }

    /// Begins, or goes on, to write to a dataset of a batch.
    private func beginRun(
        _ dataset: Int, _ state: DatasetState, _ block: inout LogBlockWriter,
        _ memtable: Memtable, _ changes: BatchChanges
    ) -> PlainRun {
        let kept = changes.keptRuns[ObjectIdentifier(state)]
        return PlainRun(
            dataset: dataset, state: state, id: state.recordsID,
            mayHaveGaps: gaps.mayHave(state.recordsID),
            origin: originOfWrites(to: state, &block, memtable),
            counter: kept?.counter ?? state.vector[replicaID],
            syncCount: kept?.syncCount ?? state.syncCount,
            expiresFrom: kept?.expiresFrom ?? .max)
    }

    private func end(_ run: PlainRun, _ changes: inout BatchChanges) {
        let dot = Dot(replica: replicaID, counter: run.counter)
        changes.lastDot = dot
        if changes.keepsRuns {
            changes.keptRuns[ObjectIdentifier(run.state)] = run
        } else {
            take(run, dot)
        }
    }

    /// Gives the dataset what the writes have taken of its counts.
    private func take(_ run: PlainRun, _ dot: Dot) {
        touch(run.state)
        run.state.vector.insert(dot)
        run.state.syncCount = run.syncCount
        if run.expiresFrom < .max { noteExpiry(of: .put, run.expiresFrom, in: run.state) }
    }

    private func take(_ changes: BatchChanges) {
        for run in changes.keptRuns.values {
            take(run, Dot(replica: replicaID, counter: run.counter))
        }
        clock.see(changes.clock.last)
        sequence = changes.sequence
        counted.puts &+= changes.putCount
        counted.deletes &+= changes.deleteCount
    }
}

/// What is known of the writes of a batch once they are checked.
private struct BatchPlan {
    var byteCountMax = 0
    /// For writes to a dataset in the middle of an exchange, what the replaced version had seen;
    /// empty if there are none.
    var seen: [VersionVector?] = []
    /// Whether a dataset is made anew.
    var revives = false
}

/// What a batch changes beside the log and its memtable.
private struct BatchChanges {
    var clock: HybridClock
    var sequence: UInt64
    var putCount = 0
    var deleteCount = 0
    var lastDot: Dot?
    /// Whether the datasets stay as they are until the end, and what becomes of them is kept here.
    let keepsRuns: Bool
    var keptRuns: [ObjectIdentifier: PlainRun] = [:]

    init(clock: HybridClock, sequence: UInt64, keepsRuns: Bool) {
        self.clock = clock
        self.sequence = sequence
        self.keepsRuns = keepsRuns
    }
}

/// Writes of a batch to one dataset, one after the other: what they have in common, and where the
/// counts of the dataset are.
private struct PlainRun {
    /// The place among the states of the batch.
    let dataset: Int
    let state: DatasetState
    /// Of the dataset's records.
    let id: DatasetID
    let mayHaveGaps: Bool
    let origin: UInt32
    var counter: UInt64
    var syncCount: UInt64
    /// In milliseconds since 1970; `.max` if none of its records expires.
    var expiresFrom: UInt64

    /// The stamp of the next write.
    @inline(__always)
    mutating func next(
        _ clock: inout HybridClock, _ now: UInt64, _ expiresAt: UInt64, origin: UInt32?
    ) -> Stamp {
        counter += 1
        syncCount += 1
        if expiresAt > 0 { expiresFrom = min(expiresFrom, expiresAt) }
        return Stamp(
            syncCount: syncCount, origin: origin ?? self.origin, counter: counter,
            time: clock.next(wallClockMilliseconds: now).rawValue, expiresAt: expiresAt)
    }
}
