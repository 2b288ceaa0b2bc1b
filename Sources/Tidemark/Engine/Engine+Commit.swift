internal import Synchronization

/// A write on its way into the log. Key and value are borrowed from the caller.
struct StagedWrite {
    let state: DatasetState
    let kind: EntryKind
    let key: ByteView
    let value: ByteView
    /// nil: unconditional. `.some(nil)`: there may be no live record.
    let expected: Dot??
    /// In milliseconds since 1970; 0 for a record that does not expire.
    var expiresAt: UInt64 = 0
}

extension EngineParts {
    func check(_ staged: StagedWrite) throws(StoreError) {
        guard staged.state.isVisible else { throw .datasetNotFound(staged.state.name) }
        guard (1...Limits.keyBytesMax).contains(staged.key.count) else {
            throw StoreError(
                .invalidArgument,
                "a key of \(staged.key.count) bytes; keys have 1...\(Limits.keyBytesMax) bytes")
        }
        guard staged.value.count <= Limits.valueBytesMax else {
            throw StoreError(
                .invalidArgument,
                "a value of \(staged.value.count) bytes; values have at most "
                    + "\(Limits.valueBytesMax). Keep larger things in files")
        }
        guard staged.expiresAt <= EntryLayout.expiryMax else {
            throw StoreError(
                .invalidArgument,
                "an expiry at \(staged.expiresAt) ms since 1970; at most "
                    + "\(EntryLayout.expiryMax). Put a record that stays without an expiry")
        }
    }
}

extension EngineState {
    func checkExpectation(of staged: StagedWrite) throws(StoreError) {
        guard let expected = staged.expected else { return }
        let now = storage.wallClockMilliseconds()
        let found = try currentView.withNewest(
            of: staged.key, in: staged.state.recordsID, sequenceMax: sequence
        ) { (entry, tables) throws(StoreError) -> Dot? in
            guard let entry, let tables, entry.isLive(at: now) else { return nil }
            return tables.dot(of: entry)
        }
        guard found == expected else {
            throw StoreError(
                .versionMismatch,
                "the record in \(staged.state.name) is at \(found?.description ?? "no version"), "
                    + "not at \(expected?.description ?? "no version"); read it again")
        }
    }

    /// Stamps a local write and puts it into log and memtable.
    ///
    /// - Parameter now: by the wall clock, in milliseconds since 1970.
    func append(
        _ staged: StagedWrite, seen: VersionVector?, at now: UInt64,
        to block: inout LogBlockWriter, memtable: Memtable
    ) -> Dot {
        let state = staged.state
        // Its last record may be going; that it is there must not depend on who knows that.
        if isRevival(staged) { revive(state, &block) }
        if let seen {
            return appendLocal(
                state, kind: staged.kind, key: staged.key, value: staged.value,
                expiresAt: staged.expiresAt, seen: seen, to: &block, memtable: memtable)
        }
        let origin = originOfWrites(to: state, &block, memtable)
        return stamp(
            state, kind: staged.kind, key: staged.key, value: staged.value,
            expiresAt: staged.expiresAt, origin: origin, at: now, to: &block, memtable: memtable)
    }

    /// The number of the origin of local writes to a dataset that descend from all that it has
    /// seen. Defined in the block if the log does not have it yet.
    @inline(__always)
    func originOfWrites(
        to state: DatasetState, _ block: inout LogBlockWriter, _ memtable: Memtable
    ) -> UInt32 {
        if let known = state.origin, known.log == memtable.log.number { return known.number }
        let origin = block.number(
            of: replicaID, state.vector.removing(replicaID), options.author,
            in: memtable.tables)
        state.origin = (memtable.log.number, origin)
        return origin
    }

    /// Whether a local write is a deletion in a dataset that was deleted, and is there only because
    /// of records which that deletion had not seen. Whoever goes on with it makes it anew.
    func isRevival(_ staged: StagedWrite) -> Bool {
        staged.kind == .delete && staged.state.lifecycle.isDeleted
    }

    func revive(_ state: DatasetState, _ block: inout LogBlockWriter) {
        var lifecycle = state.lifecycle
        lifecycle.isDeleted = false
        stampNow(&lifecycle)
        change(state, to: lifecycle, id: state.recordsID, isVisible: true, &block)
    }

    /// The log's bytes that making a dataset anew may take.
    func revivalBytesMax(_ staged: StagedWrite) -> Int {
        let state = staged.state
        return state.lifecycle.isDeleted
            ? StateItem.dataset(state, state.lifecycle).byteCount : 0
    }

    /// Former ids of this store under which another one wrote, too, as long as the dataset claims
    /// to have seen nothing of them: a dot of theirs may name another write elsewhere.
    func doubtedIDs(in state: DatasetState) -> [ReplicaID] {
        guard !state.outstanding.isEmpty else { return [] }
        return manifest.formerReplicaIDs.filter { id in
            state.vector[id] == 0 && state.outstanding[id] > 0
                && !manifest.closedReplicaIDs.contains(id)
        }
    }

    /// What of a record's vector a write says that replaces it: nothing of ids in doubt, or it
    /// would hide what others have under the same dots, and nobody here has seen.
    func certain(_ vector: VersionVector, in state: DatasetState) -> VersionVector {
        doubtedIDs(in: state).reduce(vector) { $0.removing($1) }
    }

    /// While an exchange is unfinished the dataset's vector does not cover all that lies here:
    /// what the write replaces is looked at, so that it descends from just that. nil if the
    /// dataset's vector covers it.
    func vectorOfReplaced(_ staged: StagedWrite) throws(StoreError) -> VersionVector? {
        try currentView.withNewest(
            of: staged.key, in: staged.state.recordsID, sequenceMax: .max
        ) { (entry, tables) throws(StoreError) -> VersionVector? in
            guard let entry, let tables else { return nil }
            let seen = certain(tables.version(of: entry).vector, in: staged.state)
            return staged.state.vector.covers(seen) ? nil : seen
        }
    }

    /// A local write that has seen something else than the dataset's vector says.
    ///
    /// - Parameters:
    ///   - seen: what it has seen in any case.
    ///   - claims: what it has seen of all else in the dataset's vector, at most; nil for all.
    ///   - time: of the write that it repeats; nil for now.
    func appendLocal(
        _ state: DatasetState, kind: EntryKind, key: ByteView, value: ByteView,
        expiresAt: UInt64 = 0, seen: VersionVector, claiming claims: VersionVector? = nil,
        at time: HybridTime? = nil, to block: inout LogBlockWriter, memtable: Memtable
    ) -> Dot {
        let claimed = claims.map { state.vector.intersection($0) } ?? state.vector
        let origin = originOfWrite(seen: claimed.union(seen), &block, memtable)
        return stamp(
            state, kind: kind, key: key, value: value, expiresAt: expiresAt, origin: origin,
            at: storage.wallClockMilliseconds(), or: time, to: &block, memtable: memtable)
    }

    /// The number of the origin of a local write that has seen just that.
    func originOfWrite(
        seen: VersionVector, _ block: inout LogBlockWriter, _ memtable: Memtable
    ) -> UInt32 {
        block.number(
            of: replicaID, seen.removing(replicaID), options.author, in: memtable.tables)
    }

    /// - Parameters:
    ///   - now: by the wall clock, in milliseconds since 1970.
    ///   - fixedTime: the time of the version, if it is not to be drawn from the clock.
    @inline(__always)
    private func stamp(
        _ state: DatasetState, kind: EntryKind, key: ByteView, value: ByteView,
        expiresAt: UInt64, origin: UInt32, at now: UInt64, or fixedTime: HybridTime? = nil,
        to block: inout LogBlockWriter, memtable: Memtable
    ) -> Dot {
        let dot = state.vector.insertNext(of: replicaID)
        let time = fixedTime ?? clock.next(wallClockMilliseconds: now)
        append(
            kind, key, value, expiresAt: expiresAt, origin: origin, counter: dot.counter,
            time: time, of: state, to: &block, memtable: memtable)
        return dot
    }

    /// Gives an entry its place in the order of change and puts it into log and memtable.
    func append(
        _ kind: EntryKind, _ key: ByteView, _ value: ByteView, expiresAt: UInt64,
        origin: UInt32, counter: UInt64, time: HybridTime, of state: DatasetState,
        to block: inout LogBlockWriter, memtable: Memtable
    ) {
        state.syncCount += 1
        sequence += 1
        let stamp = Stamp(
            syncCount: state.syncCount, origin: origin, counter: counter, time: time.rawValue,
            expiresAt: expiresAt)
        if expiresAt > 0 { noteExpiry(of: kind, expiresAt, in: state) }
        if kind == .put {
            gaps.notePut(key, in: state.recordsID)
            counted.puts &+= 1
        } else {
            counted.deletes &+= 1
            noteDeletion(of: key, in: state.recordsID, memtable)
        }
        block.append(
            kind, dataset: state.recordsID, key: key, value: value, stamp: stamp,
            sequence: sequence, into: memtable)
        touch(state)
    }
}

extension Engine {
    /// Puts a block into the log and shows its entries to readers, and waits for the durability
    /// without the lock.
    ///
    /// - Parameters:
    ///   - durability: in place of the store's own.
    ///   - name: of a dataset for whose changes somebody may wait; asked when they can be seen.
    ///   - isStaging: whether the entries come into the memtable by the dozen, which is faster
    ///     where there are many.
    ///   - measure: counts the bytes of the block at most, and checks what must hold for it; called
    ///     again each time that others may have written meanwhile.
    ///   - write: called once, right after `measure`. nil if nothing is to be written: then nothing
    ///     may have been.
    /// - Returns: what `write` did.
    func commitBlock<Result>(
        _ durability: Durability?, waking name: @autoclosure () -> String? = nil,
        isStaging: Bool = false, measure: (EngineState) throws(StoreError) -> Int,
        write: (EngineState, inout LogBlockWriter, Memtable) throws(StoreError)
            -> sending Result?
    ) throws(StoreError) -> Result? {
        let committed = try withLock { (held) throws(StoreError) -> (Result, LogPosition)? in
            let memtable = try held.room { () throws(StoreError) in try measure(held) }
            var block = LogBlockWriter(memtable.log, isStaging: isStaging)
            guard let result = try write(held, &block, memtable) else {
                precondition(block.count == 0, "a block was begun and given up")
                return nil
            }
            if isStaging { memtable.settle() }
            held.publish(block, in: memtable)
            return (result, LogPosition(endOf: memtable.log))
        }
        guard let (result, position) = committed else { return nil }
        if let name = name() { waiters.wakeAll(for: name) }
        try makeDurable(position, durability)
        return result
    }
}

extension EngineState {
    /// Completes the block and shows its entries to readers.
    func publish(_ block: LogBlockWriter, in memtable: Memtable) {
        memtable.log.seal(payloadCount: block.count)
        publishAppended(memtable)
    }

    /// Shows readers what is in log and memtable.
    @inline(__always)
    func publishAppended(_ memtable: Memtable) {
        counted.commits &+= 1
        published.visibleSequence.store(sequence, ordering: .releasing)
        prepareNextLogIfDue()
    }

    // MARK: - Room

    /// The active memtable, with room for a block in its log. May make a new log and, when two
    /// segments wait to be sealed, give up the lock and wait for one of them. It also gives up the
    /// lock to have space for a large block reserved, or a log made for it.
    ///
    /// - Parameter measure: counts the bytes of the block at most, and checks what must hold for
    ///   it; called again after each wait, since others may have written meanwhile.
    func room(for measure: () throws(StoreError) -> Int) throws(StoreError) -> Memtable {
        while true {
            awaitWriter()
            try checkWritable()
            let payloadBytes = try measure()
            guard payloadBytes <= Limits.batchBytesMax else {
                throw StoreError(
                    .invalidArgument,
                    "a batch of up to \(payloadBytes) bytes; at most \(Limits.batchBytesMax) may "
                        + "be written at once. Split it")
            }
            guard let active else { throw .closed(path) }
            if active.log.remainingPayload >= payloadBytes,
                active.hasRoom(within: budget.memtableBytesMax)
            {
                // Sealing is behind: go on as it does, rather than run into its back.
                guard !pace.holdsBack(active) else {
                    waitForSealing(isPaced: true) {
                        self.active === active && pace.holdsBack(active)
                    }
                    continue
                }
                guard let space = active.log.spaceNeeded(payload: payloadBytes) else {
                    return active
                }
                let isLarge = payloadBytes > Self.lockedBytesMax
                try stoppingWriter { () throws(StoreError) in
                    active.log.reserved = try withoutLock(if: isLarge) { () throws(StoreError) in
                        try active.log.reserve(space)
                    }
                }
                // What was measured may point to what is gone once the lock was given up.
                if isLarge { continue }
                return active
            }
            // Sealing is behind: wait here rather than let memory grow.
            if sealing.isFull {
                waitForSealing { sealing.isFull }
                continue
            }
            // A file is not made while the lock is held, if it need not be.
            if payloadBytes > options.segmentBytes - Self.logOverhead {
                try stoppingWriter { () throws(StoreError) in
                    let number = fileNumbers.draw()
                    let log = try withoutLock { () throws(StoreError) in
                        try makeLog(number: number, payloadBytes: payloadBytes)
                    }
                    try checkWritable()
                    try rotate(to: log)
                }
            } else if supply.log == nil {
                askForLog()
                waitForNewLog()
            } else {
                try rotate()
            }
        }
    }

    /// What a writer does that nothing can follow if it fails.
    func stoppingWriter(_ body: () throws(StoreError) -> Void) throws(StoreError) {
        do {
            try body()
        } catch {
            stopWriting(error)
            throw error
        }
    }

    /// Ends the active log, hands it over for sealing and goes on in the one that was prepared, or
    /// in one that is made now. To be called while nobody writes without the lock.
    func rotate() throws(StoreError) {
        try stoppingWriter { () throws(StoreError) in try rotate(to: try nextLog()) }
    }

    private func rotate(to log: LogSegment) throws(StoreError) {
        precondition(!isWritingWithoutLock, "a log ends while somebody writes to it")
        guard let old = active else { return }
        if let space = old.log.spaceNeeded(payload: 0) {
            old.log.reserved = try old.log.reserve(space)
        }
        old.log.end()
        let next = Memtable(
            log: log, sequenceBase: sequence,
            keys: supply.takeKeys(after: old.keyCount)
                ?? KeyTable(keysExpected: keysExpected(after: old.keyCount)),
            recycler: recycler)
        begin(log, after: old.log.number)
        durability.end(old.log)
        sealing.append(sealJob(for: old, nextLog: log.number))
        active = next
        updatePace()
        catalog.begin(next.era)
        views.replace { $0.with(memtables: [next] + $0.memtables) }
        broadcast()
    }
}

extension EngineParts {
    /// How many keys there will be in a memtable: about as many as in one before.
    func keysExpected(after count: Int) -> Int {
        min(count / 16 * 17, budget.keysExpectedMax)
    }
}

extension EngineState {
    /// The prepared log, or one made now.
    private func nextLog() throws(StoreError) -> LogSegment {
        if let prepared = supply.takeLog() {
            if prepared.number > active?.log.number ?? 0 { return prepared }
            // A log for a large block has come before it.
            try storage.remove(prepared.path)
        }
        return try makeLog(number: fileNumbers.draw(), payloadBytes: 0)
    }
}

extension EngineParts {
    /// By which the log is known again for this very file; 0 if nothing is.
    func placeMark(of log: LogSegment) -> UInt32 { storage.place(of: log.path)?.mark ?? 0 }

    /// - Parameter previous: the number of the log that it follows on; 0 for none.
    func begin(_ log: LogSegment, after previous: UInt64) {
        log.begin(
            header: FileHeader(
                kind: .log, segment: log.number, identity: identity,
                madeAt: storage.wallClockMilliseconds(), previousLog: previous,
                capacity: UInt32(log.capacity), place: placeMark(of: log)))
    }

    fileprivate func makeLog(number: UInt64, payloadBytes: Int) throws(StoreError) -> LogSegment {
        let needed = payloadBytes + Self.logOverhead
        return try makeLog(
            number: number, capacity: max(options.segmentBytes, needed), reserving: needed,
            isPrepared: false)
    }

    /// What a log needs beside the payload of its blocks.
    static let logOverhead = FileHeader.byteCount + 2 * BlockHeader.byteCount + 16

    /// Makes the file of a log, durable by name.
    func makeLog(
        number: UInt64, capacity: Int, reserving bytes: Int, isPrepared: Bool
    ) throws(StoreError) -> LogSegment {
        try ownership?.check()
        let log = try LogSegment(
            creating: filePath(FileName.log(number)), number: number,
            identity: identity, capacity: Pages.roundedUp(capacity),
            reserving: Pages.roundedUp(bytes),
            isPrepared: isPrepared, writesZeros: options.durability == .disk,
            storage: storage)
        try storage.syncDirectory(path)
        return log
    }
}
