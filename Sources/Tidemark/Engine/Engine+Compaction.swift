internal import Synchronization

extension Engine {
    /// The body of the compacting thread.
    func runCompaction() {
        monitor.lock()
        defer { monitor.unlock() }
        while !isClosed {
            guard failure == nil, isCompactionWanted, !isCompacting else {
                monitor.wait()
                continue
            }
            isCompactionWanted = false
            let run =
                options.compactsAutomatically ? compactionRun(of: currentView.segments) : []
            guard run.count > 1 else {
                monitor.broadcast()
                continue
            }
            isCompacting = true
            monitor.unlock()
            let result = Result { () throws(StoreError) in try self.compact(run) }
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

    /// Size-tiered: the newest segments, as long as each is at most twice as large as all newer
    /// ones together, once there are four. So every byte is rewritten about log(n) times, and
    /// the number of segments grows with log(n).
    private func compactionRun(of segments: [SealedSegment]) -> [SealedSegment] {
        var run: [SealedSegment] = []
        var bytes: UInt64 = 0
        for segment in segments {
            if !run.isEmpty, segment.fileSize > 2 * bytes { break }
            run.append(segment)
            bytes += segment.fileSize
        }
        return run.count >= Self.compactionRunMin ? run : []
    }

    static let compactionRunMin = 4

    /// Waits until neither sealing nor merging has anything left to do.
    func waitForBackgroundWork() throws(StoreError) {
        try monitor.withLock { () throws(StoreError) in
            try checkWritable()
            while !isClosed, failure == nil,
                !sealQueue.isEmpty || isPreparing || isCompacting || isCompactionWanted
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
            if let active, !active.isEmpty || !touched.isEmpty {
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
        let segments = currentView.segments
        guard !segments.isEmpty else { return }
        do {
            try compact(segments)
        } catch {
            if error.code != .corruption, error.code != .closed {
                monitor.withLock { stopWriting(error) }
            }
            throw error
        }
    }

    /// Merges adjacent segments into one, which takes their place.
    private func compact(_ run: [SealedSegment]) throws(StoreError) {
        let reachesOldest = run.last === currentView.segments.last
        let number = monitor.withLock { takeNumber() }
        let path = filePath(FileName.sealed(number))
        let writer = try SegmentWriter(
            number: number, path: path, tag: manifest.tag, compression: options.compression,
            storage: storage)
        var sources: [SourceCursor] = []
        for segment in run {
            sources.append(.segment(try SegmentCursor(segment, isCaching: false)))
            for row in try segment.loadedParts().datasets.rows.values
            where row.collectedThrough > 0 {
                writer.noteCollected(row.dataset, through: row.collectedThrough)
            }
        }
        var merge = SegmentMerge(
            sources: sources, reachesOldest: reachesOldest,
            retention: { self.retention(of: $0) },
            isCancelled: { self.monitor.withLock { self.isClosed } })
        guard try merge.write(to: writer) else {
            try storage.remove(path)
            throw .closed(self.path)
        }
        let size = try writer.finish()
        try storage.syncDirectory(self.path)
        let merged = try SealedSegment(
            number: number, path: path, tag: manifest.tag, storage: storage, cache: cache)
        try replace(run, with: merged, size: size)
    }

    private func replace(
        _ run: [SealedSegment], with merged: SealedSegment, size: UInt64
    ) throws(StoreError) {
        let numbers = Set(run.map(\.number))
        try updateManifest { manifest in
            let place = manifest.segments.firstIndex { numbers.contains($0.number) } ?? 0
            manifest.segments.removeAll { numbers.contains($0.number) }
            manifest.segments.insert(
                Manifest.Segment(number: merged.number, fileSize: size), at: place)
        }
        view.withLock { view in
            var segments = view.segments
            let place = segments.firstIndex { numbers.contains($0.number) } ?? 0
            segments.removeAll { numbers.contains($0.number) }
            segments.insert(merged, at: place)
            view = ReadView(memtables: view.memtables, segments: segments)
        }
        for segment in run {
            cache.removeAll(of: segment.number)
            try storage.remove(segment.path)
        }
    }
}
