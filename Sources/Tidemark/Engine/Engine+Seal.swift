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

extension EngineState {
    /// At the end of a log.
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
        let parts = supply.keyCountBefore > 0 ? 16 : 4
        guard supply.isMissing, let active,
            active.log.appended > active.log.capacity / parts
                || active.nodeBytes > budget.memtableBytesMax / parts
        else { return }
        askForLog()
    }

    /// Has the next log made, unless it is being made.
    func askForLog() {
        guard supply.isMissing else { return }
        supply.ask()
        broadcast()
    }
}

extension Engine {
    /// The body of the sealing threads: seals what waits.
    func runSealing() {
        withLock { held in
            while true {
                if held.failure == nil, held.indexToSeal != nil {
                    held.sealNext()
                } else if held.isClosed {
                    return
                } else {
                    held.wait()
                }
            }
        }
    }
}

extension EngineState {
    /// The oldest log that waits and that nobody seals, if it may be sealed now.
    fileprivate var indexToSeal: Int? {
        guard let index = sealing.indexToBegin else { return nil }
        return index == 0 || maySealBeside(sealing.jobs[index].memtable) ? index : nil
    }

    /// Whether a log may be sealed while an older one is.
    private func maySealBeside(_ memtable: Memtable) -> Bool {
        guard sealing.threadCount < 2, currentView.runs.count < Self.runsYieldMax else {
            return false
        }
        return sealing.hasRoom(beside: memtable, in: budget)
            || (budget.lendsMergeShare && !turn.isTaken)
    }

    /// Seals the oldest log that waits and may be sealed. It gives the lock up while that is
    /// written.
    func sealNext() {
        guard let index = indexToSeal else { return }
        let number = sealing.jobs[index].memtable.log.number
        let borrows =
            index > 0 && !sealing.hasRoom(beside: sealing.jobs[index].memtable, in: budget)
        sealing.begin(at: index, borrows: borrows)
        let result = unlocked { engine in
            defer {
                engine.views.reclaim()
                engine.letGoOfStates()
            }
            return Result { () throws(StoreError) in
                try engine.sealLog(number, isOldest: index == 0)
            }
        }
        sealing.end(borrowed: borrows)
        if case .failure(let error) = result { stopWriting(error) }
        broadcast()
    }

    /// Makes the next log. It gives the lock up while the file is written.
    func prepareLog() {
        let number = fileNumbers.draw()
        let keysExpected = keysExpected(after: supply.keyCountBefore)
        let (result, keys) = unlocked { engine in
            let log = Result { () throws(StoreError) in try engine.makePreparedLog(number) }
            return (log, keysExpected > 0 ? KeyTable(keysExpected: keysExpected) : nil)
        }
        supply.add(try? result.get(), keys: keys)
        // Nothing is lost yet: the commit that needs the room will meet the same failure.
        if case .failure(let error) = result { stopWriting(error) }
        broadcast()
    }
}

extension EngineParts {
    /// A log for later, in place for stores where commits are not synced: else the next sync would
    /// write all of it.
    fileprivate func makePreparedLog(_ number: UInt64) throws(StoreError) -> LogSegment {
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
}

extension Engine {
    /// A function of its own, so that nothing of the job is held any more when it returns.
    fileprivate func sealLog(_ number: UInt64, isOldest: Bool) throws(StoreError) {
        let job = withLock { held in held.sealing.job(ofLog: number) }
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
        try job.memtable.log.checkNothingIsLost()
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
        withLock { held in
            held.note(.written, ofSealing: job.memtable)
            held.broadcast()
        }
        let run = try finish(writer)
        phases.sync = writer.syncNanoseconds
        let finished = lap(&lapStart)
        phases.index = finished - min(finished, phases.sync)
        // Once more: what the kernel has let go of meanwhile would be in the segment as it was
        // before, under a good checksum.
        try job.memtable.log.checkNothingIsLost()
        _ = lap(&lapStart)
        try awaitTurn(of: job)
        try updateManifest(with: run, sealing: job)
        phases.install = lap(&lapStart)
        install(run, sealing: job, phases, since: start)
        recycler.retire(job.memtable.log)
    }

    /// Waits until the log is the oldest one that is not sealed.
    private func awaitTurn(of job: SealJob) throws(StoreError) {
        try withLock { (held) throws(StoreError) in
            while held.sealing.oldestLog != job.memtable.log.number {
                // The one before will not be sealed any more.
                if let failure = held.failure { throw failure }
                held.wait()
            }
            if let failure = held.failure { throw failure }
        }
    }

    // MARK: - By hand

    /// Ends the active log and waits until it is sealed, if that is wanted.
    ///
    /// - Parameter isWanted: asked under the lock.
    func sealLog(if isWanted: (EngineState) -> Bool) throws(StoreError) {
        try withLock { (held) throws(StoreError) in
            try held.checkOpen()
            guard isWanted(held) else { return }
            while held.mayNotRotate {
                held.awaitBackgroundOrWriter()
                try held.checkWritable()
            }
            try held.sealActiveLog()
        }
    }
}

extension EngineState {
    /// Whether the active log may not be ended now: the next one is being made, too many wait, or
    /// somebody writes to it.
    var mayNotRotate: Bool {
        supply.isAwaited || isWritingWithoutLock || sealing.isFull
    }

    /// Waits until that may be otherwise, without the lock.
    func awaitBackgroundOrWriter() {
        if isWritingWithoutLock { awaitWriter() } else { awaitBackground() }
    }

    /// Ends the active log, unless nothing is in it, and waits until all that waits is sealed.
    /// It gives the lock up meanwhile. To be called when no log is being made.
    func sealActiveLog() throws(StoreError) {
        if let active, !active.isEmpty || catalog.hasTouched {
            try rotate()
        }
        let last = sealing.newestLog ?? 0
        // A job that somebody held on to would keep the states of its datasets in memory.
        while sealing.oldestLog.map({ $0 <= last }) ?? false {
            awaitBackground()
            try checkWritable()
        }
    }
}

extension Engine {
    // MARK: - Runs

    /// Begins the segments of a new run as they are needed.
    ///
    /// - Parameter sparse: value files out of which values are moved when they are met.
    func runWriter(movingValuesOf sparse: Set<UInt64> = []) -> SegmentRunWriter {
        SegmentRunWriter { [self] () throws(StoreError) in
            try ownership?.check()
            let number = withLock { held in held.fileNumbers.draw() }
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
        withLock { held in
            views.replace { view in
                view.with(
                    memtables: view.memtables.filter { $0 !== job.memtable },
                    runs: [new] + view.runs)
            }
            held.sealing.removeOldest()
            held.updatePace()
            held.counted.bytesSealedAway += Int64(job.memtable.log.appended)
            held.counted.longKeySearches += job.memtable.longSearches
            held.catalog.noteSealed()
            held.durability.noteSealed(job.memtable.log)
            held.turn.isWanted = true
            held.noteSealed(job, as: new, phases, since: start)
            held.broadcast()
        }
    }
}
