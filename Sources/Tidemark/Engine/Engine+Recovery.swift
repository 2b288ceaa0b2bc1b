internal import Synchronization

extension EngineState {
    /// Brings back what the logs hold: each log's blocks up to where it ends, and nothing after
    /// a log that did not end in its last block (see `LogScanner` for what is a cut and what is
    /// damage).
    func recoverLogs() throws(StoreError) {
        var numbers: [UInt64] = []
        for name in try storage.listDirectory(path) {
            if let number = FileName.number(in: name, ending: ".log"),
                number >= manifest.oldestLog
            {
                numbers.append(number)
            }
        }
        numbers.sort()
        fileNumbers.noteUsed(numbers.last ?? 0)
        guard manifest.oldestLog == 0 || numbers.first == manifest.oldestLog else {
            throw Malformed("a log is missing").error(
                in: filePath(FileName.log(manifest.oldestLog)), at: nil)
        }
        let isClosedLogDue = manifest.closedLog > 0 && manifest.closedLog >= manifest.oldestLog
        guard !isClosedLogDue || numbers.contains(manifest.closedLog) else {
            throw Malformed("a log is missing").error(
                in: filePath(FileName.log(manifest.closedLog)), at: nil)
        }
        var logs: [LogSegment] = []
        for number in numbers { logs.append(try openLog(number)) }
        if options.isReadOnly { try checkLogsStillCount() }
        var previous: Memtable?
        var isCut = false
        // As the newest log says it.
        var place: UInt32 = 0
        for log in logs {
            guard let header = try header(of: log) else { continue }
            guard !isCut, follows(log, header, on: previous) else {
                isCut = true
                try checkNothingDurable(in: log)
                continue
            }
            // A log begins only when the one before it has ended.
            if let previous { handOver(previous, nextLog: log.number) }
            let memtable = Memtable(log: log, sequenceBase: sequence, recycler: recycler)
            isCut = try replay(memtable)
            previous = memtable
            place = header.place
        }
        if let last = previous {
            recovery.isCopied = !options.isReadOnly && isCopied(last.log, from: place)
            if isCut || options.isReadOnly {
                makeActive(last)
            } else {
                // It ended, and the log after it was never begun: a new one takes its place.
                handOver(last, nextLog: fileNumbers.next)
            }
        }
        sequence = max(sequence, 1)
        published.visibleSequence.store(sequence, ordering: .releasing)
    }

    private func openLog(_ number: UInt64) throws(StoreError) -> LogSegment {
        let name = filePath(FileName.log(number))
        do {
            return try LogSegment(
                opening: name, number: number, identity: manifest.identity,
                isReadOnly: options.isReadOnly, storage: storage)
        } catch let error where error.code == .notAStore {
            throw Malformed("a log went away while the store was opened").error(in: name, at: nil)
        }
    }

    /// The header of a log. nil if it was prepared and never begun, or lost its first page before
    /// that was ever durable; then it holds nothing.
    private func header(of log: LogSegment) throws(StoreError) -> FileHeader? {
        let head = unsafe ByteView(
            base: log.bytes.base, count: min(log.reserved, FileHeader.byteCount))
        let header: FileHeader
        do {
            header = try FileHeader(
                head, expecting: .log, segment: log.number, identity: nil, path: log.path)
        } catch let error where error.code == .corruption || error.code == .notAStore {
            // The oldest log was there before the manifest named it, at least its first page.
            let isCutShort =
                log.number == manifest.oldestLog && log.reserved < FileHeader.byteCount
            guard !isCutShort, !provesDurable(log) else { throw error }
            return nil
        }
        try manifest.check(log, header)
        return header
    }

    /// Whether the file of a log is not the one in which it was begun. A directory that was copied
    /// has such, and one that was put back from a copy.
    private func isCopied(_ log: LogSegment, from place: UInt32) -> Bool {
        let present = placeMark(of: log)
        return present != 0 && place != 0 && present != place
    }

    /// Whether a log is the one that comes next.
    private func follows(
        _ log: LogSegment, _ header: FileHeader, on previous: Memtable?
    ) -> Bool {
        guard let previous else {
            return manifest.oldestLog == 0 || log.number == manifest.oldestLog
        }
        return header.previousLog == previous.log.number
    }

    /// Whether any block of the log was written when an earlier one was known to be durable, or
    /// the log was begun before the last closing, which made everything durable.
    private func provesDurable(_ log: LogSegment) -> Bool {
        guard log.number != manifest.closedLog else { return true }
        var scanner = LogScanner(log.bytes, segment: log.number, log.identity, from: 0)
        scanner.lookBehindEnd()
        return scanner.markMax > 0
            || scanner.hasBlockBehindEnd && log.number < manifest.closedLog
    }

    /// A log behind a hole cannot count; if it was durable, what is before it was, too, and the
    /// hole is damage.
    private func checkNothingDurable(in log: LogSegment) throws(StoreError) {
        guard !provesDurable(log) else {
            throw Malformed(
                "blocks of this log were durable, yet the log does not follow whole on the one "
                    + "before it"
            ).error(in: log.path, at: 0)
        }
    }

    /// Reads a whole log into a memtable. Returns true if it stops without its last block.
    private func replay(_ memtable: Memtable) throws(StoreError) -> Bool {
        let log = memtable.log
        var scanner = LogScanner(log.bytes, segment: log.number, log.identity)
        var memo = ReplayMemo()
        while let (offset, payload) = scanner.next() {
            if payload.count > 0 { recovery.bringsBack = true }
            try replay(payload, at: offset, into: memtable, &memo)
        }
        memo.end()
        guard !scanner.isEnded else {
            // Nothing will be appended to it, so its epoch has no successor to need.
            log.resume(at: scanner.offset, afterEpoch: min(scanner.epochLast, .max - 1))
            return false
        }
        scanner.lookBehindEnd()
        if scanner.hasBlockBehindEnd { recovery.leavesOutBlocks = true }
        var durable = UInt64(scanner.markMax)
        if manifest.closedLog == log.number { durable = max(durable, manifest.closedAt) }
        // Before the log of the last closing all others had ended, durably.
        if manifest.closedLog > log.number { durable = .max }
        guard durable <= UInt64(scanner.offset) else {
            throw Malformed(
                "the block here is damaged: the log was durable "
                    + (durable == .max ? "to its end" : "up to byte \(durable)")
            ).error(in: log.path, at: UInt64(scanner.offset))
        }
        guard scanner.epochLast < .max || options.isReadOnly else {
            // No epoch is left for this log: it ends here, and a new one is begun.
            log.resume(at: scanner.offset, afterEpoch: scanner.epochLast - 1)
            log.end()
            return false
        }
        log.resume(at: scanner.offset, afterEpoch: min(scanner.epochLast, .max - 1))
        return true
    }

    private func replay(
        _ payload: ByteView, at offset: Int, into memtable: Memtable, _ memo: inout ReplayMemo
    ) throws(StoreError) {
        let log = memtable.log
        var reader = LogItemReader(payload, of: log)
        var isDatedElsewhere = false
        while let item = try reader.next(
            originCount: memtable.tables.originCount, at: offset, of: log)
        {
            switch item {
            case .replica, .vector, .author, .origin:
                try log.decoding(at: offset) { () throws(Malformed) in
                    try memtable.tables.define(item)
                }
            case .dataset(let id, let isVisible, let name, let lifecycle):
                try replay(dataset: id, isVisible, name, lifecycle)
            case .checkpoint(let name, let peer, let checkpoint):
                let state = try stateForReplay(named: name)
                state.register(peer, at: checkpoint)
                touch(state)
            case .seen(let name, let vector):
                let state = try stateForReplay(named: name)
                state.see(vector)
                touch(state)
            case .renamed(let id):
                takeReplicaID(id, isCopied: false)
            case .copied(let id):
                takeReplicaID(id, isCopied: true)
            case .adopted(let name, let adopted):
                try replay(adopted, name)
            case .disowned(let name, let id, let isSettled):
                // The entries before it count for what was seen until here.
                memo.end()
                memo = ReplayMemo()
                let state = try stateForReplay(named: name)
                state.disown(id, isSettled: isSettled)
                touch(state)
            case .forgotten(let name, let deletions):
                let state = try stateForReplay(named: name)
                see(deletions.time)
                state.forget(deletions)
                touch(state)
            case .retired(let name, let peer):
                let state = try stateForReplay(named: name)
                state.retire(peer)
                touch(state)
            case .dated:
                isDatedElsewhere = true
                continue
            case .entry(let entry, let start):
                try unsafe replay(
                    entry, at: start, isDatedElsewhere: isDatedElsewhere, into: memtable, &memo)
                isDatedElsewhere = false
                continue
            }
            // Whatever it was, it may have changed what the next entry means.
            memo.end()
            memo = ReplayMemo()
        }
    }

    private func replay(
        dataset id: DatasetID, _ isVisible: Bool, _ name: String, _ lifecycle: DatasetLifecycle
    ) throws(StoreError) {
        let state = try stateForReplay(named: name)
        let formerID = state.recordsID
        see(lifecycle.time)
        state.place(records: id, isVisible: isVisible, lastSequence: 0, time: clock.last)
        if id == 0 { state.forgetUnfinishedExchanges() }
        state.lifecycle = lifecycle
        catalog.renumber(state, from: formerID)
        datasetNumbers.noteUsed(id)
        touch(state)
    }

    private func replay(_ adopted: AdoptedState, _ name: String) throws(StoreError) {
        let state = try stateForReplay(named: name)
        let formerID = state.recordsID
        see(adopted.lifecycle.time)
        see(HybridTime(rawValue: adopted.timeMax))
        state.adopt(adopted, lastSequence: 0)
        catalog.renumber(state, from: formerID)
        if adopted.expiresFrom < .max { noteExpiry(of: .put, adopted.expiresFrom, in: state) }
        datasetNumbers.noteUsed(adopted.records)
        touch(state)
    }

    /// - Parameter isDatedElsewhere: whether its date is of somebody else's write.
    private func replay(
        _ entry: Entry, at start: UnsafeRawPointer, isDatedElsewhere: Bool,
        into memtable: Memtable, _ memo: inout ReplayMemo
    ) throws(StoreError) {
        sequence += 1
        unsafe memtable.insert(entry, at: start, sequence: sequence)
        let stamp = entry.stamp
        if memo.dataset != entry.dataset || memo.origin != stamp.origin {
            memo.end()
            // Entries of a dataset that was deleted later still lie in the log; they lead nowhere.
            let state = try stateForReplay(numbered: entry.dataset)
            let version = memtable.tables.version(of: entry)
            memo = ReplayMemo(
                dataset: entry.dataset, origin: stamp.origin, state: state,
                replica: version.dot.replica, isOwn: version.dot.replica == replicaID,
                counter: state?.vector[version.dot.replica] ?? 0)
            if memo.isOwn { state?.vector.insert(version.dot) }
            state?.noteApplied(version.vector)
            if let state { touch(state) }
        }
        guard let state = memo.state else { return }
        state.syncCount = max(state.syncCount, stamp.syncCount)
        if stamp.expiresAt > 0 { noteExpiry(of: entry.kind, stamp.expiresAt, in: state) }
        // What was written before and is stored once more, joined with what others had seen, was
        // not dated then.
        let isWrittenHere = memo.isOwn && stamp.counter > memo.counter
        memo.counter = max(memo.counter, stamp.counter)
        if !memo.isOwn { state.noteApplied(memtable.tables.version(of: entry).vector) }
        let time = HybridTime(rawValue: stamp.time)
        // What outlived a deletion is dated after that, by whoever saw to it, under its own dot.
        let isOfClock = isWrittenHere && !time.isOutliving && !isDatedElsewhere
        if isOfClock { clock.see(time) } else { see(time) }
    }

    /// Queues a complete log for sealing.
    private func handOver(_ memtable: Memtable, nextLog: UInt64) {
        views.replace { $0.with(memtables: [memtable] + $0.memtables) }
        guard !options.isReadOnly else { return }
        durability.end(memtable.log)
        sealing.append(sealJob(for: memtable, nextLog: nextLog))
    }

    /// - Parameter isCopied: whether the present one is given up because the files are copies, so
    ///   that no dot of it names two writes.
    func takeReplicaID(_ id: ReplicaID, isCopied: Bool) {
        guard id != replicaID else { return }
        // The manifest may have been written since, with the log that says so still unsealed.
        if !manifest.formerReplicaIDs.contains(replicaID) {
            manifest.formerReplicaIDs.append(replicaID)
        }
        if isCopied, !manifest.closedReplicaIDs.contains(replicaID) {
            manifest.closedReplicaIDs.append(replicaID)
        }
        replicaID = id
        for state in catalog.all { state.origin = nil }
    }
}

/// What is known of the entry that was replayed last: mostly the next one is of the same dataset
/// and origin, and then only counters grow.
private struct ReplayMemo {
    var dataset: DatasetID = 0
    var origin: UInt32 = 0
    var state: DatasetState?
    var replica = ReplicaID(high: 0, low: 0)
    /// Whether the store itself wrote it.
    var isOwn = false
    /// Up to which its writes are known.
    var counter: UInt64 = 0

    /// The store's own writes up to the last counter have been seen.
    func end() {
        if isOwn, counter > 0 { state?.vector.insert(Dot(replica: replica, counter: counter)) }
    }
}

extension VersionTables {
    /// Takes up a definition from a log.
    func define(_ item: LogItem) throws(Malformed) {
        try withContent { (content) throws(Malformed) in
            var isNew = true
            switch item {
            case .replica(let id):
                isNew = content.number(of: id).isNew
            case .author(let author):
                isNew = content.number(of: author).isNew
            case .origin(let origin):
                guard content.knows(origin) else {
                    throw Malformed("an origin names what was not defined")
                }
                isNew = content.number(of: origin).isNew
            case .vector(let entries):
                var dots: [Dot] = []
                for entry in entries {
                    guard Int(entry.replica) < content.replicas.count else {
                        throw Malformed("a version vector names an unknown replica")
                    }
                    dots.append(
                        Dot(
                            replica: content.replicas[Int(entry.replica)],
                            counter: entry.counter))
                }
                isNew = content.number(of: try VersionVector(sorted: dots)).isNew
            default:
                break
            }
            guard isNew else { throw Malformed("a definition stands twice") }
        }
    }
}
