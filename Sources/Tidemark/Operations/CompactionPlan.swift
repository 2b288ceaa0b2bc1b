/// Adds up what a compaction would write, by doing all of its work and keeping nothing of it: so
/// what it tells is what would come of it, with compression and indexes. Takes the time of a
/// compaction without that of the disk's writing, the memory, and no space.
///
/// What lies in the logs counts as if it had been sealed, but for the few records of the store's
/// own that sealing adds. For one thread.
final class CompactionPlan {
    private let engine: Engine
    private let image: StoreImage
    private let progress: ((CompactionProgress) -> Void)?
    private let bytesTotal: UInt64
    private var nextNumber: UInt64
    private var bytesDone: UInt64 = 0
    /// Of the segments that would be made.
    private var made: [SegmentWriter] = []
    private var madeFiles: [Manifest.Segment] = []

    init(_ engine: Engine, _ image: StoreImage, _ progress: ((CompactionProgress) -> Void)?) {
        self.engine = engine
        self.image = image
        self.progress = progress
        bytesTotal = image.byteCount
        nextNumber = engine.withLock { held in held.fileNumbers.next }
    }

    /// Those that hold anything.
    var memtables: [Memtable] { image.view.memtables.filter { !$0.isEmpty } }

    /// Where one run is to be written, and whence.
    struct Source {
        var memtables: [Memtable] = []
        /// Newest first.
        var runs: [SegmentRun] = []
        /// Whether there is nothing older of any of the keys in the store.
        var reachesOldest = true
        var start: KeyPosition?
        var end: KeyPosition?
    }

    /// Merges what comes of each source, in the order of their keys, into one run.
    ///
    /// - Parameters:
    ///   - sparse: value files out of which values would be moved.
    ///   - isSealing: whether it is a log that is sealed, and nothing can be forgotten.
    func merge(
        _ sources: [Source], movingValuesOf sparse: Set<UInt64>, isSealing: Bool = false
    ) throws(StoreError) {
        let writer = SegmentRunWriter { [self] () throws(StoreError) in
            nextNumber += 1
            let writer = try SegmentWriter(
                number: nextNumber, path: "planned/\(nextNumber)",
                identity: engine.identity,
                options: engine.options, storage: DiscardingStorage(base: engine.storage),
                movingValuesOf: sparse)
            made.append(writer)
            return writer
        }
        for source in sources { try merge(source, to: writer, isSealing: isSealing) }
        try writer.finish()
        madeFiles += writer.finished
        bytesDone += writer.byteCount
    }

    private func merge(
        _ source: Source, to writer: SegmentRunWriter, isSealing: Bool
    ) throws(StoreError) {
        var cursors: [RunCursor] = []
        var losses = SegmentLosses()
        for run in source.runs {
            cursors.append(try RunCursor(run))
            for segment in run.segments { losses.formUnion(try segment.parts().losses()) }
        }
        let engine = engine
        let memtables = source.memtables.map { MemtableCursor($0, isWhole: true) }
        var merge = SegmentMerge(
            cursor: MergeCursor(memtables: memtables, runs: cursors, order: .forward),
            reachesOldest: source.reachesOldest,
            retention: { (dataset) throws(StoreError) -> Retention in
                guard isSealing else { return try engine.retention(of: dataset) }
                return try engine.retentionInSealing(of: dataset)
            },
            isStoreRecordNeeded: engine.isNeeded, losses: losses, start: source.start,
            end: source.end, isCancelled: { self.tell(writer) })
        _ = try merge.write(to: writer)
    }

    /// Tells how far it has come; never breaks off.
    private func tell(_ writer: SegmentRunWriter) -> Bool {
        let done = min(bytesDone + writer.byteCount, bytesTotal)
        progress?(CompactionProgress(bytesDone: done, bytesTotal: bytesTotal))
        return false
    }

    // MARK: - Report

    /// - Parameter removed: segments in whose place what was merged comes.
    func report(removing removed: [SealedSegment]) throws(StoreError) -> CompactionReport {
        progress?(CompactionProgress(bytesDone: bytesTotal, bytesTotal: bytesTotal))
        let gone = Set(removed.map(\.number))
        let kept = image.view.segments.filter { !gone.contains($0.number) }
        var report = CompactionReport()
        report.segmentsBefore = image.view.segments.count
        report.segmentsAfter = kept.count + madeFiles.count
        report.bytesBefore = bytesTotal
        report.bytesAfter =
            kept.reduce(0) { $0 + $1.fileSize } + madeFiles.reduce(0) { $0 + $1.fileSize }
            + valueBytes(beside: kept)
        let before = try counts(of: removed)
        let after = made.reduce(into: Counts()) { unsafe $0.add($1.datasets) }
        report.entriesDropped = max(0, before.entries - after.entries)
        report.tombstonesDropped = max(0, before.tombstones - after.tombstones)
        return report
    }

    /// Of all value files that would be named. One that is hardly used any more is given up.
    private func valueBytes(beside kept: [SealedSegment]) -> UInt64 {
        var table = SegmentValueRows()
        for segment in kept { table.add(segment.values.table) }
        for writer in made { unsafe table.add(writer.valueRows) }
        return table.rows.reduce(0) { sum, row in
            let isSparse = row.storedBytes < row.contentBytes / 2
            return sum + (isSparse ? row.storedBytes + UInt64(FileHeader.byteCount) : row.fileSize)
        }
    }

    /// Without the store's own records.
    private struct Counts {
        var entries = 0
        var tombstones = 0

        mutating func add(_ datasets: SegmentDatasets) {
            for row in datasets.rows where row.dataset != 0 {
                entries += Int(clamping: row.entryCount)
                tombstones += Int(clamping: row.tombstoneCount)
            }
        }
    }

    private func counts(of segments: [SealedSegment]) throws(StoreError) -> Counts {
        var counts = Counts()
        for segment in segments { counts.add(try segment.parts().datasets()) }
        for memtable in memtables {
            var cursor = MemtableCursor(memtable)
            cursor.seek(to: EntryPosition(before: .empty, in: 0))
            while let entry = cursor.entry {
                counts.entries += 1
                counts.tombstones += entry.kind == .delete ? 1 : 0
                cursor.stepForward()
            }
        }
        return counts
    }
}

extension Store {
    /// Tells what ``compact()`` would do now, and does nothing of it: also of a store that is open
    /// read-only, with the retention of its options.
    ///
    /// Before are all segments, value files, and what has been written to the logs; after, what
    /// would take their place. O(bytes in the store), without writing any.
    ///
    /// - Parameter progress: called on the calling thread.
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    public func planCompaction(
        progress: ((CompactionProgress) -> Void)? = nil
    ) throws(StoreError) -> CompactionReport {
        let image = try engine.image()
        let plan = CompactionPlan(engine, image, progress)
        let source = CompactionPlan.Source(memtables: plan.memtables, runs: image.view.runs)
        try plan.merge([source], movingValuesOf: engine.sparseValueFiles(in: image.view))
        return try plan.report(removing: image.view.segments)
    }
}

extension Dataset {
    /// Tells what ``compact(_:)`` would do now, as ``Store/planCompaction(progress:)``.
    ///
    /// - Throws: `datasetNotFound`, `closed`, `corruption`, `inputOutput`.
    public func planCompaction(
        _ range: KeyRange = .all, progress: ((CompactionProgress) -> Void)? = nil
    ) throws(StoreError) -> CompactionReport {
        try engine.planCompaction(range, of: state, progress)
    }
}
