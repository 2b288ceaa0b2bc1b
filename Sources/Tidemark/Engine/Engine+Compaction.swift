internal import Synchronization

extension Engine {
    /// The body of the compacting thread.
    func runCompaction() {
        monitor.lock()
        defer { monitor.unlock() }
        while !isClosed {
            if sweepIfDue() { continue }
            guard failure == nil, isCompactionWanted, !isCompacting else {
                waitForWorkOrExpiry()
                continue
            }
            isCompactionWanted = false
            let runs =
                options.compactsAutomatically ? runsToCompact(in: currentView) : []
            guard !runs.isEmpty else {
                monitor.broadcast()
                continue
            }
            isCompacting = true
            monitor.unlock()
            let result = Result { () throws(StoreError) in try self.compact(runs) }
            views.reclaim()
            monitor.lock()
            isCompacting = false
            isCompactionWanted = true
            if case .failure(let error) = result, error.code != .corruption {
                stopWriting(error)
            } else if case .failure = result {
                // A damaged segment cannot be merged. It stays as it is, is reported by whoever
                // reads it, and compaction rests until the store is opened again.
                isCompactionWanted = false
            }
            monitor.broadcast()
        }
    }

    /// Size-tiered: the newest runs, as long as each is at most twice as large as all newer ones
    /// together, once there are four. So every byte is rewritten about log(n) times, and the
    /// number of runs grows with log(n).
    ///
    /// Where there is no such work, a run whose value files are half empty, see
    /// `Engine+ValueFiles.swift`.
    private func runsToCompact(in view: ReadView) -> [SegmentRun] {
        let runs = view.runs
        var chosen: [SegmentRun] = []
        var bytes: UInt64 = 0
        for run in runs {
            if !chosen.isEmpty, run.fileSize > 2 * bytes { break }
            chosen.append(run)
            bytes += run.fileSize
        }
        if chosen.count >= Self.compactionRunsMin { return chosen }
        return runToRelieve(in: view, isWorthIt: true).map { [$0] } ?? []
    }

    static let compactionRunsMin = 4

    /// Waits until neither sealing nor merging has anything left to do.
    func waitForBackgroundWork() throws(StoreError) {
        try monitor.withLock { () throws(StoreError) in
            try checkWritable()
            while !isClosed, failure == nil,
                !sealQueue.isEmpty || isSealing || isPreparing || isCompacting
                    || isCompactionWanted
            {
                monitor.wait()
            }
            try checkWritable()
        }
    }

    /// Seals what is active and merges everything into one segment.
    func compactAll() throws(StoreError) {
        do {
            monitor.lock()
            defer { monitor.unlock() }
            try checkWritable()
            while isCompacting || sealQueue.count >= Self.sealQueueMax {
                monitor.wait()
                try checkWritable()
            }
            isCompacting = true
            if let active, !active.isEmpty || catalog.hasTouched {
                do {
                    try rotate(payloadBytes: 0)
                } catch {
                    isCompacting = false
                    stopWriting(error)
                    throw error
                }
            }
            while !sealQueue.isEmpty, failure == nil, !isClosed {
                monitor.wait()
            }
        }
        defer {
            monitor.withLock {
                isCompacting = false
                monitor.broadcast()
            }
        }
        try monitor.withLock { () throws(StoreError) in try checkWritable() }
        let runs = currentView.runs
        guard !runs.isEmpty else { return }
        do {
            try compact(runs)
            while let run = runToRelieve(in: currentView, isWorthIt: false) {
                try compact([run])
            }
            try dropSpareSpace()
        } catch {
            if error.code != .corruption, error.code != .closed {
                monitor.withLock { stopWriting(error) }
            }
            throw error
        }
    }

    /// Gives the space of logs that are not in use back to the file system, and that which the
    /// active one holds ahead: it grows again as it needs it.
    private func dropSpareSpace() throws(StoreError) {
        try monitor.withLock { () throws(StoreError) in try active?.log.releaseSpace() }
        views.reclaim()
        let prepared = monitor.withLock {
            while isPreparing, failure == nil, !isClosed { monitor.wait() }
            defer { preparedLog = nil }
            return preparedLog
        }
        if let prepared { try storage.remove(prepared.path) }
        let (_, spares) = recycler.claim(capacity: 0)
        for spare in spares { try storage.remove(spare.path) }
    }

    /// Merges adjacent runs into one, which takes their place.
    private func compact(_ runs: [SegmentRun]) throws(StoreError) {
        let writer = runWriter(movingValuesOf: sparseValueFiles(in: currentView))
        do throws(StoreError) {
            let isWhole = try merge(runs, to: writer)
            guard isWhole else { throw StoreError.closed(path) }
        } catch {
            // What cannot be removed now is removed at the next opening; the first error counts.
            for number in writer.numbers {
                try? storage.remove(filePath(FileName.sealed(number)))
                try? storage.remove(filePath(FileName.values(number)))
            }
            throw error
        }
        try replace(runs, with: try finish(writer))
    }

    private func merge(
        _ runs: [SegmentRun], to writer: SegmentRunWriter
    ) throws(StoreError) -> Bool {
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
            isCancelled: { self.monitor.withLock { self.isClosed } })
        return try merge.write(to: writer)
    }

    private func replace(_ old: [SegmentRun], with new: NewRun) throws(StoreError) {
        let numbers = Set(old.flatMap(\.segments).map(\.number))
        try updateManifest { manifest in
            let place = manifest.segments.firstIndex { numbers.contains($0.number) } ?? 0
            manifest.segments.removeAll { numbers.contains($0.number) }
            manifest.segments.insert(contentsOf: new.entries, at: place)
        }
        views.replace { view in
            var runs = view.runs
            let place = runs.firstIndex { run in old.contains { $0 === run } } ?? 0
            runs.removeAll { run in old.contains { $0 === run } }
            runs.insert(new.run, at: place)
            return ReadView(memtables: view.memtables, runs: runs)
        }
        for segment in old.flatMap(\.segments) {
            try storage.remove(segment.path)
        }
        try removeValueFiles(of: old)
    }
}
