internal import Synchronization

// What the engine counts and tells about itself. Nothing here does any of the store's work, and
// none of it calls the observer: events go through ``EventDelivery``.

extension EngineParts {
    /// For measuring how long something takes, in nanoseconds.
    var ticks: UInt64 { storage.monotonicNanoseconds() }

    fileprivate func elapsed(since start: UInt64) -> UInt64 { storage.elapsed(since: start) }
}

extension EngineState {
    // MARK: - Opening

    /// What recovery came upon.
    struct RecoveryFindings {
        var leavesOutBlocks = false
        /// Whether anything came back from the logs, be it one write or a note without any.
        var bringsBack = false
        /// Whether the newest log is a copy: see ``Storage/place(of:)``.
        var isCopied = false
    }

    /// Begins to count and to tell. When everything was read, and before anything else can happen.
    ///
    /// - Parameter wasMade: whether there was no store before.
    func beginObservation(wasMade: Bool, since start: UInt64) {
        counted.bytesSealedAway = -currentView.memtables.reduce(0) { $0 + Int64($1.log.appended) }
        events.start { .opened(opening(wasMade: wasMade, since: start)) }
    }

    private func opening(wasMade: Bool, since start: UInt64) -> StoreEvent.Opening {
        let view = currentView
        var opening = StoreEvent.Opening(
            kindOfOpening(wasMade: wasMade), Duration.ofNanoseconds(elapsed(since: start)))
        for memtable in view.memtables where memtable.log.appended > FileHeader.byteCount {
            opening.logsReplayed += 1
            opening.bytesReplayed += UInt64(memtable.log.appended - FileHeader.byteCount)
            opening.entriesReplayed += memtable.count
        }
        opening.leavesOutBlocks = recovery.leavesOutBlocks
        for segment in view.segments {
            opening.segmentCount += 1
            opening.segmentBytes += segment.fileSize
        }
        return opening
    }

    private func kindOfOpening(wasMade: Bool) -> StoreEvent.Opening.Kind {
        if options.isReadOnly { return .readOnly }
        if wasMade { return .created }
        // A closing notes how far the last log went. What goes further came after it.
        guard sealing.isEmpty, let log = active?.log, log.number == manifest.closedLog,
            UInt64(log.appended) <= manifest.closedAt
        else { return .recovered }
        return .closed
    }

    // MARK: - Writing

    /// Waits while a writer is too far ahead of sealing, without the lock.
    ///
    /// - Parameter isPaced: whether there is room, and the writer goes on as sealing does.
    func waitForSealing(isPaced: Bool = false, while isTooFarAhead: () -> Bool) {
        counted.writerWaits += 1
        let start = ticks
        while isTooFarAhead(), failure == nil, !isClosed { awaitBackground() }
        let waited = elapsed(since: start)
        counted.writerWaitNanoseconds &+= waited
        if isPaced {
            counted.pacedWaits += 1
            counted.pacedWaitNanoseconds &+= waited
        }
        if waited >= events.slowNanoseconds {
            events.tell(.writerWaited(Duration.ofNanoseconds(waited)))
        }
    }

    /// Waits for the log that is being made. Check anew whether there is one: somebody else may
    /// have taken it. It gives the lock up meanwhile.
    func waitForNewLog() {
        counted.newLogWaits += 1
        let start = ticks
        while supply.isAwaited, failure == nil, !isClosed { awaitBackground() }
        counted.newLogWaitNanoseconds &+= elapsed(since: start)
    }

    func noteSync(since start: UInt64) {
        let lasted = elapsed(since: start)
        counted.syncs += 1
        counted.syncNanoseconds &+= lasted
        counted.syncNanosecondsMax = max(counted.syncNanosecondsMax, lasted)
        if lasted >= events.slowNanoseconds {
            events.tell(.syncWasSlow(Duration.ofNanoseconds(lasted)))
        }
    }

    // MARK: - In the background

    func noteSealed(
        _ job: SealJob, as new: SegmentRun, _ phases: SealPhases, since start: UInt64
    ) {
        let lasted = elapsed(since: start)
        let bytesOut = new.fileSize
        counted.logsSealed += 1
        counted.sealNanoseconds &+= lasted
        counted.sealPhases.add(phases)
        counted.bytesSealed += bytesOut
        events.tell(
            .logSealed(
                StoreEvent.Sealing(
                    log: job.memtable.log.number, duration: Duration.ofNanoseconds(lasted),
                    entryCount: job.memtable.count,
                    bytesIn: UInt64(job.memtable.log.appended), bytesOut: bytesOut)))
    }
}

extension EngineParts {
    /// Returns when the merge began, for what notes its end.
    func noteMergeStart(_ segments: [SealedSegment], runCount: Int) -> UInt64 {
        events.tell(
            .mergeStarted(
                StoreEvent.MergeStart(
                    runCount: runCount, bytesIn: segments.reduce(0) { $0 + $1.fileSize })))
        return ticks
    }
}

extension Engine {
    func noteMerged(
        _ old: [SealedSegment], runCount: Int, into new: [SealedSegment], since start: UInt64
    ) {
        func bytes(_ segments: [SealedSegment]) -> UInt64 {
            segments.reduce(0) { $0 + $1.fileSize }
        }
        func entries(_ segments: [SealedSegment]) -> Int {
            segments.reduce(0) { $0 + Int(clamping: $1.footer.entryCount) }
        }
        let merge = StoreEvent.Merge(
            runCount: runCount, duration: Duration.ofNanoseconds(elapsed(since: start)),
            bytesIn: bytes(old), bytesOut: bytes(new), entriesIn: entries(old),
            entriesOut: entries(new))
        withLock { held in
            held.counted.merges += 1
            held.counted.mergeNanoseconds &+= merge.duration.nanosecondsClamped
            held.counted.bytesMergedIn += merge.bytesIn
            held.counted.bytesMergedOut += merge.bytesOut
            held.counted.entriesDropped += max(0, merge.entriesDropped)
        }
        events.tell(.mergeEnded(merge))
    }
}

extension EngineParts {
    func noteMergeFailed(_ error: StoreError) {
        events.tellDamage(error)
        events.tell(.mergeFailed(error))
    }
}

extension Engine {
    func noteSweep(datasets: Int, records: Int, since start: UInt64) {
        let lasted = elapsed(since: start)
        withLock { held in
            held.counted.expirySweeps += 1
            held.counted.recordsExpired += records
        }
        events.tell(
            .expirySwept(
                StoreEvent.Sweep(
                    duration: Duration.ofNanoseconds(lasted), datasetCount: datasets,
                    recordCount: records)))
    }
}

extension EngineParts {
    func duration(since start: UInt64) -> Duration { storage.duration(since: start) }

    /// How long it is since a moment, in nanoseconds. The moment becomes the present one.
    func lap(_ start: inout UInt64) -> UInt64 {
        let lasted = elapsed(since: start)
        start = ticks
        return lasted
    }
}

extension Storage {
    /// In nanoseconds; 0 by a clock that was set back.
    fileprivate func elapsed(since start: UInt64) -> UInt64 {
        let now = monotonicNanoseconds()
        return now > start ? now - start : 0
    }

    /// How long it is since a moment of its clock for measuring.
    func duration(since start: UInt64) -> Duration {
        Duration.ofNanoseconds(elapsed(since: start))
    }
}
