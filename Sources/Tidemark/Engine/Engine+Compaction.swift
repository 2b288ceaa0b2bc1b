internal import Synchronization

extension Engine {
    /// The body of the compacting thread.
    func runCompaction() {
        withLock { held in
            while !held.isClosed {
                if !held.sweepIfDue(), !held.compactIfDue() { held.waitForWorkOrExpiry() }
            }
        }
    }
}

extension EngineState {
    /// Merges if that is wanted and may be. It gives the lock up meanwhile. Returns false if there
    /// was nothing to be done.
    fileprivate func compactIfDue() -> Bool {
        guard failure == nil, turn.isWanted, !turn.isTaken, sealing.loanCount == 0 else {
            return false
        }
        turn.isWanted = false
        if options.compactsAutomatically {
            turn.take()
            let result = unlocked { engine in
                defer { engine.views.reclaim() }
                return Result { () throws(StoreError) in try engine.compactWhereDue() }
            }
            turn.giveBack()
            switch result {
            case .success(let hasCompacted): if hasCompacted { turn.isWanted = true }
            // A segment that is damaged, or that the disk cannot read, cannot be merged. It stays
            // as it is, is reported by whoever reads it, and compaction rests.
            case .failure(let error) where !error.isFinal: turn.isWanted = false
            case .failure(let error): stopWriting(error)
            }
        }
        broadcast()
        return true
    }
}

extension Engine {
    /// Merges once, if anything is to be merged. Returns whether there was.
    func compactWhereDue() throws(StoreError) -> Bool {
        let runs = currentView.runs
        let chosen = CompactionChoice.runs(of: runs)
        if !chosen.isEmpty {
            try compact(chosen)
            return true
        }
        if let dataset = try datasetToClear(in: runs) {
            _ = try compact(.all, of: dataset)
            return true
        }
        guard let run = runToRelieve(in: currentView, isWorthIt: true) else { return false }
        try compact([run])
        return true
    }

    /// A dataset in which so much was deleted that to clear it away pays, though the sizes of runs
    /// do not ask for it.
    private func datasetToClear(in runs: [SegmentRun]) throws(StoreError) -> DatasetID? {
        guard CompactionChoice.mayClear(runs) else { return nil }
        return try CompactionChoice.datasetToClear(in: runs) { (dataset) throws(StoreError) in
            let retention = try retention(of: dataset)
            return !retention.isLive || retention.forgetsDeletions
        }
    }

    /// Waits until neither sealing nor merging nor the scout has anything left to do.
    func waitForBackgroundWork() throws(StoreError) {
        try withLock { (held) throws(StoreError) in
            try held.checkWritable()
            try held.checkIsNoCompactor()
            while !held.isClosed, held.failure == nil,
                !held.sealing.isEmpty || held.sealing.isSealing || held.supply.isAwaited
                    || held.turn.isTaken || held.turn.isWanted
            {
                held.awaitBackground()
            }
            while hasScout, !held.isClosed, !held.scouting.isIdle {
                held.wait(for: held.scoutChanged)
            }
            try held.checkWritable()
        }
    }
}

extension EngineState {
    // MARK: - By hand

    /// - Throws: `invalidArgument` if it is the compacting thread that asks, by a closure that it
    ///   has called: it would wait for itself.
    func checkIsNoCompactor() throws(StoreError) {
        guard !turn.isMine else {
            throw StoreError(
                .invalidArgument,
                "a closure has asked for what its own call is doing; let it return first")
        }
    }
}

extension Engine {
    /// Takes the right to compact, and seals what is in the log. Whoever gets it gives it back with
    /// ``endCompaction()``.
    func beginCompaction() throws(StoreError) {
        try withLock { (held) throws(StoreError) in
            try held.checkWritable()
            try held.checkIsNoCompactor()
            while held.turn.isTaken || held.mayNotRotate {
                held.awaitBackgroundOrWriter()
                try held.checkWritable()
            }
            held.turn.take()
            do throws(StoreError) {
                try held.sealActiveLog()
            } catch {
                held.turn.giveBack()
                held.broadcast()
                throw error
            }
        }
    }

    func endCompaction() {
        withLock { held in
            held.turn.giveBack()
            held.broadcast()
        }
    }

    /// A failed write or sync is final.
    func stoppingOnFailure<Result>(
        _ body: () throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        do {
            return try body()
        } catch {
            if error.isFinal { withLock { held in held.stopWriting(error) } }
            throw error
        }
    }

    /// Seals what is active and merges everything into one run.
    func compactAll(_ meter: CompactionMeter? = nil) throws(StoreError) -> CompactionReport {
        try beginCompaction()
        defer { endCompaction() }
        let runs = currentView.runs
        guard !runs.isEmpty else { return CompactionReport() }
        return try stoppingOnFailure { () throws(StoreError) in
            var new = try compact(runs, meter)
            while let run = runToRelieve(in: currentView, isWorthIt: false) {
                let relieved = try compact([run], meter)
                if run === new { new = relieved }
            }
            try dropSpareSpace()
            meter?.finish()
            let old = runs.flatMap(\.segments)
            return try CompactionReport(old, removed: old, made: new.segments)
        }
    }

    /// Gives the space of logs that are not in use back to the file system, and that which the
    /// active one holds ahead: it grows again as it needs it.
    private func dropSpareSpace() throws(StoreError) {
        try withLock { (held) throws(StoreError) in
            held.awaitWriter()
            try held.active?.log.releaseSpace()
        }
        views.reclaim()
        let prepared = withLock { held in
            // A log that was just sealed is still to come to the spares.
            while held.supply.isAwaited || held.sealing.isLettingGo, held.failure == nil,
                !held.isClosed
            {
                held.awaitBackground()
            }
            return held.supply.empty()
        }
        if let prepared { try storage.remove(prepared.path) }
        let (_, spares) = recycler.claim(capacity: 0)
        for spare in spares { try storage.remove(spare.path) }
    }

    // MARK: - Merging

    /// Merges adjacent runs into one, which takes their place.
    @discardableResult
    private func compact(
        _ runs: [SegmentRun], _ meter: CompactionMeter? = nil
    ) throws(StoreError) -> SegmentRun {
        let segments = runs.flatMap(\.segments)
        let start = noteMergeStart(segments, runCount: runs.count)
        do throws(StoreError) {
            try meter?.expect(segments)
            let new = try mergeIntoOne(runs, meter)
            noteMerged(segments, runCount: runs.count, into: new.segments, since: start)
            return new
        } catch {
            noteMergeFailed(error)
            throw error
        }
    }

    private func mergeIntoOne(
        _ runs: [SegmentRun], _ meter: CompactionMeter?
    ) throws(StoreError) -> SegmentRun {
        let writer = runWriter(movingValuesOf: sparseValueFiles(in: currentView))
        do throws(StoreError) {
            guard let forgotten = try merge(runs, to: writer, meter) else {
                throw StoreError.closed(path)
            }
            try noteForgotten(forgotten)
        } catch {
            removeFiles(of: [writer])
            throw error
        }
        let new = try finish(writer)
        let replacements = runs.map { run in
            RunReplacement(old: run, new: run === runs[0] ? [new] : [])
        }
        try replace(replacements, removing: runs.flatMap(\.segments))
        return new
    }

    /// - Returns: of which deletions nothing is left; nil if the merge was broken off.
    private func merge(
        _ runs: [SegmentRun], to writer: SegmentRunWriter, _ meter: CompactionMeter?
    ) throws(StoreError) -> [DatasetID: ForgottenDeletions]? {
        var cursors: [RunCursor] = []
        var losses = SegmentLosses()
        for run in runs {
            cursors.append(try RunCursor(run))
            for segment in run.segments {
                losses.formUnion(try segment.parts().losses())
            }
        }
        var merge = SegmentMerge(
            cursor: MergeCursor(memtables: [], runs: cursors, order: .forward),
            reachesOldest: runs.last === currentView.runs.last,
            retention: retention(of:), isStoreRecordNeeded: isNeeded, losses: losses,
            isCancelled: mergePause(writer), meter: meter)
        return try merge.write(to: writer) ? merge.forgotten : nil
    }

    /// After a merge that came to nothing. What cannot be removed now is removed at the next
    /// opening; the first error counts.
    func removeFiles(of writers: [SegmentRunWriter]) {
        for number in writers.flatMap(\.numbers) {
            try? storage.remove(filePath(FileName.sealed(number)))
            try? storage.remove(filePath(FileName.values(number)))
        }
    }

    /// Puts new runs in the place of old ones, on disk and then for readers, and removes the files
    /// of segments that are in none any more.
    func replace(
        _ replacements: [RunReplacement], removing removed: [SealedSegment]
    ) throws(StoreError) {
        var indices: [UInt64: Int] = [:]
        for (index, replacement) in replacements.enumerated() {
            for segment in replacement.old.segments { indices[segment.number] = index }
        }
        try updateManifest { manifest in
            var segments: [Manifest.Segment] = []
            var done: Set<Int> = []
            for segment in manifest.segments {
                guard let index = indices[segment.number] else {
                    segments.append(segment)
                    continue
                }
                guard done.insert(index).inserted else { continue }
                segments += replacements[index].new.flatMap(\.manifestEntries)
            }
            manifest.segments = segments
        }
        views.replace { view in
            let runs = view.runs.flatMap { run in
                replacements.first { $0.old === run }?.new ?? [run]
            }
            return view.with(runs: runs)
        }
        for segment in removed { try storage.remove(segment.path) }
        try removeValueFiles(of: removed)
    }
}

extension StoreError {
    /// Whether a merge that fails with it stops the writer: not for damage, nor for what the disk
    /// cannot read, nor because the store was closed.
    fileprivate var isFinal: Bool { code != .corruption && code != .closed && !isOfReading }
}

/// What takes the place of a run.
struct RunReplacement {
    let old: SegmentRun
    /// Newest first; none if nothing is left of it.
    let new: [SegmentRun]
}

extension SegmentRun {
    /// What the manifest says of it.
    var manifestEntries: [Manifest.Segment] {
        segments.map { segment in
            Manifest.Segment(
                number: segment.number, fileSize: segment.fileSize, run: segments[0].number)
        }
    }
}
