// Compaction of a part of the store: a range of keys of one dataset.
//
// Each run has some segments with keys of the range, next to each other, and others without. What
// all runs hold of the range goes into the oldest run that holds any, merged; in the newer runs
// the segments with keys of the range are written anew without them, or go as a whole. All other
// segments stay as they are, and belong to the run they belonged to. So of each key a newer run
// still holds newer versions than an older one, which is what readers of keys count on. Of a
// dataset as a whole that is no longer so: readers of changes merge the runs (``ChangeSteps``).
//
// One replacement of the manifest makes it so; a crash before leaves files that nobody names.

/// Segments of a run that lie next to each other and are written anew together.
struct RunPart {
    let run: SegmentRun
    /// Indices of segments.
    let overlap: Range<Int>

    var segments: ArraySlice<SealedSegment> { run.segments[overlap] }

    /// nil if no segment holds a key of the span. O(segments), a block of each is read at most.
    init?(_ run: SegmentRun, _ span: KeySpan) throws(StoreError) {
        var first: Int?
        var last = 0
        for (index, segment) in run.segments.enumerated() {
            guard try span.hasEntries(in: segment) else { continue }
            if first == nil { first = index }
            last = index
        }
        guard let first else { return nil }
        try self.init(run, including: first...last)
    }

    /// Some segments of a run, and those next to them that hold versions of the same key. No block
    /// of any is read.
    ///
    /// - Parameter indices: of segments of the run.
    init(_ run: SegmentRun, including indices: ClosedRange<Int>) throws(StoreError) {
        var start = indices.lowerBound
        var last = indices.upperBound
        // Versions of a key of which some are left out would not be known for what they are.
        while start > 0, try Self.shareKey(run.segments[start - 1], run.segments[start]) {
            start -= 1
        }
        while last + 1 < run.segments.count,
            try Self.shareKey(run.segments[last], run.segments[last + 1])
        {
            last += 1
        }
        self.run = run
        overlap = start..<(last + 1)
    }

    /// Whether a segment ends with versions of the key with which the next one begins.
    private static func shareKey(
        _ segment: SealedSegment, _ next: SealedSegment
    ) throws(StoreError) -> Bool {
        let directory = try segment.parts().directory
        let last = directory.position(of: directory.blockCount)
        let first = try next.parts().directory.position(of: 0)
        return last.dataset == first.dataset && last.key.equals(first.key)
    }

    /// Whether the segments hold anything but keys of the span.
    func reachesBeyond(_ span: KeySpan) throws(StoreError) -> Bool {
        let first = try run.segments[overlap.lowerBound].parts().directory
        let last = try run.segments[overlap.upperBound - 1].parts().directory
        return span.start.isBehind(first.position(of: 0))
            || !span.end.isBehind(last.position(of: last.blockCount))
    }

    /// What takes the place of the run when others take the place of these segments.
    ///
    /// - Parameter made: may be one without entries, which says what is gone.
    func replacement(with made: [SealedSegment]) -> RunReplacement {
        let isEmpty = made.allSatisfy { $0.footer.entryCount == 0 }
        let before = run.segments[..<overlap.lowerBound]
        let after = run.segments[overlap.upperBound...]
        // A segment without entries has no place among others, so it is a run by itself.
        let groups = isEmpty ? [made, Array(before + after)] : [Array(before + made + after)]
        return RunReplacement(
            old: run, new: groups.filter { !$0.isEmpty }.map { SegmentRun($0) })
    }
}

/// A span in the order of all keys.
struct KeySpan {
    let start: KeyPosition
    let end: KeyPosition

    init(_ range: KeyRange, in dataset: DatasetID) {
        start = KeyPosition(dataset: dataset, key: range.lowerBound ?? [])
        end = KeyPosition(endOf: range, in: dataset)
    }

    func hasEntries(in segment: SealedSegment) throws(StoreError) -> Bool {
        guard segment.footer.entryCount > 0 else { return false }
        var cursor = try SegmentCursor(segment)
        try start.withPosition { (position) throws(StoreError) in try cursor.seek(to: position) }
        return cursor.entry.map(end.isBehind) ?? false
    }
}

/// Entries that are written one after the other: those of some runs between two positions.
private struct Piece {
    /// Newest first.
    let parts: [RunPart]
    let start: KeyPosition?
    let end: KeyPosition?
    /// Whether there is nothing older of any of the keys in the store.
    let reachesOldest: Bool
}

extension Engine {
    func compact(
        _ range: KeyRange, of state: DatasetState, _ meter: CompactionMeter? = nil
    ) throws(StoreError) -> CompactionReport {
        guard state.isVisible else { throw .datasetNotFound(state.name) }
        try beginCompaction()
        defer { endCompaction() }
        let id = withLock { held in state.recordsID }
        guard id != 0 else { throw .datasetNotFound(state.name) }
        return try stoppingOnFailure { () throws(StoreError) in
            try compact(range, of: id, meter)
        }
    }

    /// For whoever has the right to compact.
    func compact(
        _ range: KeyRange, of dataset: DatasetID, _ meter: CompactionMeter? = nil
    ) throws(StoreError) -> CompactionReport {
        let span = KeySpan(range, in: dataset)
        let runs = currentView.runs
        let all = runs.flatMap(\.segments)
        var parts: [RunPart] = []
        for run in runs where !range.isEmpty {
            if let part = try RunPart(run, span) { parts.append(part) }
        }
        guard let target = parts.popLast() else {
            return try CompactionReport(all, removed: [], made: [])
        }
        let removed = (parts + [target]).flatMap(\.segments)
        let sparse = sparseValueFiles(in: currentView, onlyOf: removed)
        let start = noteMergeStart(removed, runCount: parts.count + 1)
        do throws(StoreError) {
            try meter?.expect(removed)
            let replacements = try write(
                span, of: parts, into: target, isOldest: target.run === runs.last,
                movingValuesOf: sparse, meter)
            // If this fails nobody knows whether the manifest on disk names the new files already:
            // they stay, and opening removes them if it does not.
            try replace(replacements, removing: removed)
            let made = replacements.flatMap(\.new).flatMap(\.segments).filter { segment in
                !all.contains { $0 === segment }
            }
            noteMerged(removed, runCount: parts.count + 1, into: made, since: start)
            meter?.finish()
            return try CompactionReport(all, removed: removed, made: made)
        } catch {
            noteMergeFailed(error)
            throw error
        }
    }

    /// Writes what takes the place of the runs, or, if that fails, nothing.
    ///
    /// - Parameter sparse: value files out of which values are moved.
    private func write(
        _ span: KeySpan, of newer: [RunPart], into target: RunPart, isOldest: Bool,
        movingValuesOf sparse: Set<UInt64>, _ meter: CompactionMeter?
    ) throws(StoreError) -> [RunReplacement] {
        var writers: [SegmentRunWriter] = []
        do throws(StoreError) {
            return try write(
                span, of: newer, into: target, isOldest: isOldest, movingValuesOf: sparse,
                meter, &writers)
        } catch {
            removeFiles(of: writers)
            throw error
        }
    }

    /// - Parameter writers: all that were begun, for the case of failure.
    private func write(
        _ span: KeySpan, of newer: [RunPart], into target: RunPart, isOldest: Bool,
        movingValuesOf sparse: Set<UInt64>, _ meter: CompactionMeter?,
        _ writers: inout [SegmentRunWriter]
    ) throws(StoreError) -> [RunReplacement] {
        var losses = SegmentLosses()
        var forgotten: [DatasetID: ForgottenDeletions] = [:]
        for segment in (newer + [target]).flatMap(\.segments) {
            losses.formUnion(try segment.parts().losses())
        }
        var replacements: [RunReplacement] = []
        for part in newer {
            var kept: [SealedSegment] = []
            if try part.reachesBeyond(span) {
                kept = try write(
                    [
                        Piece(parts: [part], start: nil, end: span.start, reachesOldest: false),
                        Piece(parts: [part], start: span.end, end: nil, reachesOldest: false),
                    ], movingValuesOf: sparse, meter, &losses, &forgotten, &writers)
            }
            replacements.append(part.replacement(with: kept))
        }
        let merged = try write(
            [
                Piece(parts: [target], start: nil, end: span.start, reachesOldest: isOldest),
                Piece(
                    parts: newer + [target], start: span.start, end: span.end,
                    reachesOldest: true),
                Piece(parts: [target], start: span.end, end: nil, reachesOldest: isOldest),
            ], movingValuesOf: sparse, meter, &losses, &forgotten, &writers)
        try noteForgotten(forgotten)
        replacements.append(target.replacement(with: merged))
        return replacements
    }

    /// Writes pieces into segments.
    ///
    /// - Parameters:
    ///   - losses: of all that is merged; what is dropped comes in addition.
    ///   - forgotten: comes to hold the deletions of which nothing is left.
    private func write(
        _ pieces: [Piece], movingValuesOf sparse: Set<UInt64>, _ meter: CompactionMeter?,
        _ losses: inout SegmentLosses, _ forgotten: inout [DatasetID: ForgottenDeletions],
        _ writers: inout [SegmentRunWriter]
    ) throws(StoreError) -> [SealedSegment] {
        let writer = runWriter(movingValuesOf: sparse)
        writers.append(writer)
        // One for all pieces: it remembers how much of what was written has been waited for.
        let pause = mergePause(writer)
        for piece in pieces {
            var cursors: [RunCursor] = []
            for part in piece.parts {
                cursors.append(try RunCursor(SegmentRun(Array(part.segments))))
            }
            var merge = SegmentMerge(
                cursor: MergeCursor(memtables: [], runs: cursors, order: .forward),
                reachesOldest: piece.reachesOldest, retention: retention(of:),
                isStoreRecordNeeded: isNeeded, losses: losses, start: piece.start, end: piece.end,
                isCancelled: pause, meter: meter)
            guard try merge.write(to: writer) else { throw .closed(path) }
            losses = merge.losses
            forgotten.merge(merge.forgotten) { $0.union($1) }
        }
        return try finish(writer).segments
    }
}
