internal import Synchronization

// Two logs may be sealed side by side, since the disk waits while entries are put together, and the
// processor while the disk takes a segment. What holds all the same:
//
// - They become part of the store in their order: whoever is done first waits for its turn. So the
//   manifest always names the segments of all logs before the oldest one that it counts on, and a
//   crash leaves at most files that no manifest names, beside logs that it does.
// - Memory: the second is sealed in what the waiting memtables leave of their shares, as they do
//   where values are long. If they leave too little, in that which merging has: then not while
//   anything is merged, and no merge begins meanwhile.
// - Once there are many runs they are merged, and the second rests for that.

/// A full log on its way to a sealed segment.
struct SealJob {
    let memtable: Memtable
    /// The state of each dataset that changed in the log, as of the log's end.
    let states: ChangedStates
    /// The store's own state as of the log's end, for the manifest.
    let replicaID: ReplicaID
    let formerReplicaIDs: [ReplicaID]
    let clock: HybridTime
    let nextDataset: DatasetID
    let expiresFrom: UInt64
    /// The log that comes after: the oldest one once this is sealed.
    let nextLog: UInt64
    /// Whether a thread has taken it.
    var isBegun = false
    var progress = SealProgress.begun
}

extension Engine {
    /// Under `monitor`, at the end of a log.
    func sealJob(for memtable: Memtable, nextLog: UInt64) -> SealJob {
        SealJob(
            memtable: memtable, states: ChangedStates(catalog.takeTouched()),
            replicaID: replicaID, formerReplicaIDs: manifest.formerReplicaIDs,
            clock: clock.last, nextDataset: datasetNumbers.next, expiresFrom: expiry.first,
            nextLog: nextLog)
    }

    /// Begins a log ahead of need once the active one is a quarter full; once a sixteenth of it is
    /// where a log was filled before, since to make one takes as long as to fill a good part of one
    /// by batches.
    func prepareNextLogIfDue() {
        let parts = keyCountBefore > 0 ? 16 : 4
        guard preparedLog == nil, !isPreparing, let active,
            active.log.appended > active.log.capacity / parts
                || active.nodeBytes > budget.memtableBytesMax / parts
        else { return }
        isPreparing = true
        monitor.broadcast()
    }

    /// The body of the sealing threads: seals what waits.
    func runSealing() {
        monitor.lock()
        defer { monitor.unlock() }
        while true {
            if failure == nil, indexToSeal != nil {
                sealNext()
            } else if isClosed {
                return
            } else {
                monitor.wait()
            }
        }
    }

    /// Whether a log is being sealed, or what it held in memory is being let go. Under `monitor`.
    var isSealing: Bool { sealingCount > 0 }

    /// Whether what a log held in memory, which is sealed, is being let go. Under `monitor`.
    var isLettingGo: Bool { sealingCount > sealQueue.count { $0.isBegun } }

    /// The oldest log that waits and that nobody seals, if it may be sealed now. Under `monitor`.
    private var indexToSeal: Int? {
        guard let index = sealQueue.firstIndex(where: { !$0.isBegun }) else { return nil }
        return index == 0 || maySealBeside(sealQueue[index].memtable) ? index : nil
    }

    /// Whether a log may be sealed while an older one is. Under `monitor`.
    private func maySealBeside(_ memtable: Memtable) -> Bool {
        guard sealingCount < 2, currentView.runs.count < Self.runsYieldMax else { return false }
        return hasRoomBeside(memtable) || (budget.lendsMergeShare && !isCompacting)
    }

    /// Whether the memtables that wait leave room for sealing one of them beside another. Whatever
    /// comes after them has a share of its own. Under `monitor`.
    private func hasRoomBeside(_ memtable: Memtable) -> Bool {
        let waitingBytes = sealQueue.reduce(0) { $0 + $1.memtable.byteCount }
        let sealingBytes = memtable.count * MemoryBudget.sealingBytesEachEntry
        return waitingBytes + sealingBytes <= Limits.sealQueueMax * budget.memtableBytesMax
    }

    /// Seals the oldest log that waits and may be sealed. Under `monitor`, which it gives up while
    /// that is written.
    func sealNext() {
        guard let index = indexToSeal else { return }
        sealQueue[index].isBegun = true
        let number = sealQueue[index].memtable.log.number
        let loanCount = index > 0 && !hasRoomBeside(sealQueue[index].memtable) ? 1 : 0
        sealingCount += 1
        mergeShareLoans += loanCount
        let result: Result<Void, StoreError>
        do {
            monitor.unlock()
            defer { monitor.lock() }
            result = Result { () throws(StoreError) in
                try self.sealLog(number, isOldest: index == 0)
            }
            views.reclaim()
            letGoOfStates()
        }
        sealingCount -= 1
        mergeShareLoans -= loanCount
        if case .failure(let error) = result { stopWriting(error) }
        monitor.broadcast()
    }

    /// Under `monitor`, which it gives up while the file is written.
    func prepareLog() {
        let number = takeNumber()
        let keysExpected = keysExpected(after: keyCountBefore)
        let result: Result<LogSegment, StoreError>
        var keys: KeyTable?
        do {
            monitor.unlock()
            defer { monitor.lock() }
            result = Result { () throws(StoreError) in try self.makePreparedLog(number) }
            if keysExpected > 0 { keys = KeyTable(keysExpected: keysExpected) }
        }
        isPreparing = false
        preparedKeys = keys
        switch result {
        case .success(let log): preparedLog = log
        // Nothing is lost yet: the commit that needs the room will meet the same failure.
        case .failure(let error): stopWriting(error)
        }
        monitor.broadcast()
    }

    /// A log for later, in place for stores where commits are not synced: else the next sync would
    /// write all of it.
    private func makePreparedLog(_ number: UInt64) throws(StoreError) -> LogSegment {
        let log = try makeOrReuseLog(number)
        if options.durability != .disk { log.populateForWriting() }
        return log
    }

    /// The file of a sealed log that nobody reads any more, or a new one.
    private func makeOrReuseLog(_ number: UInt64) throws(StoreError) -> LogSegment {
        try ownership?.check()
        views.reclaim()
        let capacity = Pages.roundedUp(options.segmentBytes)
        let (spare, others) = recycler.claim(capacity: capacity)
        for other in others { try storage.remove(other.path) }
        guard let spare else {
            return try makeLog(
                number: number, capacity: capacity, reserving: capacity, isPrepared: true)
        }
        let log = try LogSegment(
            reusing: spare.path, as: filePath(FileName.log(number)), number: number,
            identity: identity, capacity: capacity, storage: storage)
        try storage.syncDirectory(path)
        return log
    }

    /// A function of its own, so that nothing of the job is held any more when it returns.
    private func sealLog(_ number: UInt64, isOldest: Bool) throws(StoreError) {
        let job = monitor.withLock { sealQueue.first { $0.memtable.log.number == number } }
        if let job { try seal(job, isOldest: isOldest) }
    }

    /// Writes the memtable as a sealed run, makes it part of the store and gives up its log.
    ///
    /// - Parameter isOldest: whether no other log waited before it when its sealing began.
    private func seal(_ job: SealJob, isOldest: Bool) throws(StoreError) {
        let start = ticks
        var lapStart = start
        var phases = SealPhases()
        let writer = runWriter()
        try job.memtable.log.checkIsWhole()
        _ = lap(&lapStart)
        try job.states.write(to: writer, log: job.memtable.log.number)
        var merge = SegmentMerge(
            cursor: MergeCursor(
                memtables: [MemtableCursor(job.memtable, isWhole: true)], runs: [],
                order: .forward),
            reachesOldest: isOldest && currentView.runs.isEmpty,
            retention: retentionInSealing(of:),
            isStoreRecordNeeded: isNeeded, isCancelled: sealPause(job.memtable))
        phases.sort = lap(&lapStart)
        _ = try merge.write(to: writer)
        phases.write = lap(&lapStart)
        monitor.withLock {
            note(.written, ofSealing: job.memtable)
            monitor.broadcast()
        }
        let run = try finish(writer)
        phases.sync = writer.syncNanoseconds
        let finished = lap(&lapStart)
        phases.index = finished - min(finished, phases.sync)
        // Once more: what the kernel has taken back of the log meanwhile would be in the segment as
        // it was before, under a good checksum. Pages do not come back: if all are there now, they
        // were there all the time.
        try job.memtable.log.checkIsWhole()
        _ = lap(&lapStart)
        try awaitTurn(of: job)
        try updateManifest(with: run, sealing: job)
        phases.install = lap(&lapStart)
        install(run, sealing: job, phases, since: start)
        recycler.retire(job.memtable.log)
    }

    /// Waits until the log is the oldest one that is not sealed. Takes `monitor`.
    private func awaitTurn(of job: SealJob) throws(StoreError) {
        try monitor.withLock { () throws(StoreError) in
            while sealQueue.first?.memtable !== job.memtable {
                // The one before will not be sealed any more.
                if let failure { throw failure }
                monitor.wait()
            }
            if let failure { throw failure }
        }
    }

    // MARK: - By hand

    /// Ends the active log and waits until it is sealed, if that is wanted.
    ///
    /// - Parameter isWanted: asked under `monitor`.
    func sealLog(if isWanted: () -> Bool) throws(StoreError) {
        monitor.lock()
        defer { monitor.unlock() }
        try checkOpen()
        guard isWanted() else { return }
        while mayNotRotate {
            awaitBackgroundOrWriter()
            try checkWritable()
        }
        try sealActiveLog()
    }

    /// Whether the active log may not be ended now: the next one is being made, too many wait, or
    /// somebody writes to it. Under `monitor`.
    var mayNotRotate: Bool {
        isPreparing || isWritingWithoutLock || sealQueue.count >= Limits.sealQueueMax
    }

    /// Waits until that may be otherwise. Under `monitor`, which it gives up meanwhile.
    func awaitBackgroundOrWriter() {
        if isWritingWithoutLock { awaitWriter() } else { awaitBackground() }
    }

    /// Ends the active log, unless nothing is in it, and waits until all that waits is sealed.
    /// Under `monitor`, which it gives up meanwhile, and when no log is being made.
    func sealActiveLog() throws(StoreError) {
        if let active, !active.isEmpty || catalog.hasTouched {
            try rotate()
        }
        let last = sealQueue.last?.memtable.log.number ?? 0
        // A job that somebody held on to would keep the states of its datasets in memory.
        while sealQueue.first.map({ $0.memtable.log.number <= last }) ?? false {
            awaitBackground()
            try checkWritable()
        }
    }

    // MARK: - Runs

    /// Begins the segments of a new run as they are needed.
    ///
    /// - Parameter sparse: value files out of which values are moved when they are met.
    func runWriter(movingValuesOf sparse: Set<UInt64> = []) -> SegmentRunWriter {
        SegmentRunWriter { [self] () throws(StoreError) in
            try ownership?.check()
            let number = monitor.withLock { takeNumber() }
            return try SegmentWriter(
                number: number, path: filePath(FileName.sealed(number)),
                identity: identity,
                options: options, storage: storage, movingValuesOf: sparse)
        }
    }

    /// Completes a run and opens its segments.
    func finish(_ writer: SegmentRunWriter) throws(StoreError) -> SegmentRun {
        try writer.finish()
        try storage.syncDirectory(path)
        var segments: [SealedSegment] = []
        for made in writer.finished {
            segments.append(
                try SealedSegment(
                    number: made.number, path: filePath(FileName.sealed(made.number)),
                    identity: identity, storage: storage, cache: cache,
                    valueFiles: valueFiles))
        }
        return SegmentRun(segments)
    }

    private func updateManifest(
        with new: SegmentRun, sealing job: SealJob
    ) throws(StoreError) {
        try updateManifest { manifest in
            manifest.segments.insert(contentsOf: new.manifestEntries, at: 0)
            manifest.replicaID = job.replicaID
            manifest.oldestLog = job.nextLog
            manifest.clock = max(manifest.clock, job.clock.rawValue)
            manifest.nextDataset = max(manifest.nextDataset, job.nextDataset)
            manifest.expiresFrom = job.expiresFrom
        }
    }

    /// Who waits for the sealing finds it counted and told when the wait is over.
    private func install(
        _ new: SegmentRun, sealing job: SealJob, _ phases: SealPhases, since start: UInt64
    ) {
        monitor.withLock {
            views.replace { view in
                view.with(
                    memtables: view.memtables.filter { $0 !== job.memtable },
                    runs: [new] + view.runs)
            }
            sealQueue.removeFirst()
            updatePace()
            counted.bytesSealedAway += Int64(job.memtable.log.appended)
            counted.longKeySearches += job.memtable.longSearches
            catalog.noteSealed()
            durability.noteSealed(job.memtable.log)
            isCompactionWanted = true
            noteSealed(job, as: new, phases, since: start)
            monitor.broadcast()
        }
    }

    /// Changes the manifest on disk, then in memory. Sealing and compaction do so in turn.
    func updateManifest(_ change: (inout Manifest) -> Void) throws(StoreError) {
        manifestLock.lock()
        defer { manifestLock.unlock() }
        var changed = monitor.withLock {
            var copy = manifest
            copy.nextNumber = max(copy.nextNumber, nextNumber)
            return copy
        }
        change(&changed)
        try changed.write(in: path, storage: storage, ownership: ownership)
        monitor.withLock { manifest = changed }
    }
}
