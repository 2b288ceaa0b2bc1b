/// Writes what is still needed of several sources into sealed segments: a run.
///
/// Sealing a memtable and compacting segments are the same work with different sources.
struct SegmentMerge {
    var cursor: MergeCursor
    /// Whether there is nothing older than the sources in the store.
    let reachesOldest: Bool
    /// Asked once for each dataset, in rising order.
    let retention: (DatasetID) throws(StoreError) -> Retention
    /// Asked once for each of the store's own records.
    let isStoreRecordNeeded: (Entry) throws(StoreError) -> Bool
    /// What was dropped before and, as the work goes on, by it: goes into the last segment.
    var losses = SegmentLosses()
    /// Of which tombstones nothing is left, of each dataset: to be noted before the sources go.
    private(set) var forgotten: [DatasetID: ForgottenDeletions] = [:]
    /// Where the first entry to be written stands; nil: first of all.
    var start: KeyPosition?
    /// Before which the last one stands; nil: everything is written.
    var end: KeyPosition?
    /// Called now and then; true abandons the work.
    let isCancelled: () -> Bool
    /// Is told what was read, as often as it is asked whether to go on.
    var meter: CompactionMeter?

    /// Returns false if the work was abandoned.
    ///
    /// - Parameter output: gives the segment to write to, and a new one when that is full.
    mutating func write(to output: SegmentRunWriter) throws(StoreError) -> Bool {
        try (start ?? .first).withPosition { (first) throws(StoreError) in
            try cursor.seek(first)
        }
        var dataset: DatasetID?
        // Keys in logs stay where they are; those of segments go with their blocks.
        let keysStay = cursor.isOfMemtables
        var keptKey = ByteView.empty
        var key: [UInt8] = []
        var kept: KeyRetention?
        var isFirst = true
        var hasWritten = false
        var lost = HistoryLoss()
        var steps = 0
        var bytesRead = 0
        while let entry = cursor.entry {
            if let end, !end.isBehind(entry) { break }
            // Large values count for more, so that nobody who asks has to wait long.
            steps += 1 + entry.valueCount >> 10
            bytesRead += entry.key.count + entry.valueCount
            if steps >= Self.stepsMax {
                meter?.add(bytesRead)
                (steps, bytesRead) = (0, 0)
                if isCancelled() { return false }
            }
            if dataset != entry.dataset {
                if let dataset { end(dataset, lost, kept) }
                lost = losses[entry.dataset]
                dataset = entry.dataset
                if entry.dataset != 0 {
                    kept = KeyRetention(
                        try retention(entry.dataset), reachesOldest: reachesOldest)
                }
                isFirst = true
            }
            let isSameKey: Bool
            if keysStay {
                isSameKey = !isFirst && keptKey.equals(entry.key)
                keptKey = entry.key
            } else {
                isSameKey =
                    unsafe !isFirst && key.withUnsafeBytes { unsafe ByteView($0).equals(entry.key) }
            }
            if !isSameKey {
                if !keysStay {
                    key.removeAll(keepingCapacity: true)
                    unsafe key.append(contentsOf: entry.key.buffer)
                }
                if entry.dataset == 0 {
                    kept = KeyRetention(
                        try retention(ofStoreRecord: entry), reachesOldest: reachesOldest)
                }
                kept?.beginKey()
                isFirst = false
                hasWritten = false
            }
            let tables = cursor.tables
            if kept?.verdict(on: entry, in: tables, &lost) == .keep {
                try output.segment().add(entry, isSuperseded: hasWritten, from: tables)
                hasWritten = true
            }
            try cursor.advance()
        }
        if let dataset { end(dataset, lost, kept) }
        try losses.removeAll { (id) throws(StoreError) in try !retention(id).isLive }
        try output.note(losses)
        meter?.add(bytesRead)
        return true
    }

    private mutating func end(
        _ dataset: DatasetID, _ lost: HistoryLoss, _ kept: KeyRetention?
    ) {
        losses[dataset].formUnion(lost)
        guard let kept, !kept.forgotten.isEmpty else { return }
        forgotten[dataset, default: ForgottenDeletions()].formUnion(kept.forgotten)
    }

    /// Entries, or KiB of values, after which it is asked whether to go on.
    static let stepsMax = 4_096

    /// The store's own records: the newest of each is the only one that means anything.
    private func retention(ofStoreRecord entry: Entry) throws(StoreError) -> Retention {
        Retention(
            isLive: try isStoreRecordNeeded(entry), historyVersions: 0,
            agedBefore: .max,
            dirtiness: Dirtiness(ownIDs: [], acknowledged: VersionVector()))
    }
}

/// Makes the segments of a run, one after the other as they fill.
final class SegmentRunWriter {
    private let make: () throws(StoreError) -> SegmentWriter
    @exclusivity(unchecked) private var current: SegmentWriter?
    /// Number and size of each segment that is complete.
    private(set) var finished: [Manifest.Segment] = []
    /// How long it was waited for the disk to have them.
    private(set) var syncNanoseconds: UInt64 = 0
    /// Bytes of these, and of their value files.
    private var finishedBytes: UInt64 = 0

    /// - Parameter make: begins a segment with a number of its own.
    init(_ make: @escaping () throws(StoreError) -> SegmentWriter) {
        self.make = make
    }

    /// The segment to write to.
    @inline(__always)
    func segment() throws(StoreError) -> SegmentWriter {
        if let current = unsafe current, !current.isFull { return current }
        return try nextSegment()
    }

    /// Has the last segment say what was lost.
    func note(_ losses: SegmentLosses) throws(StoreError) {
        // A full one will do: an empty one behind it would be of no use to anybody else.
        let last = if let current = unsafe current { current } else { try nextSegment() }
        last.note(losses)
    }

    private func nextSegment() throws(StoreError) -> SegmentWriter {
        try finishCurrent()
        let next = try make()
        unsafe current = next
        return next
    }

    private func finishCurrent() throws(StoreError) {
        guard let current = unsafe current else { return }
        finished.append(
            Manifest.Segment(number: current.number, fileSize: try current.finish(), run: 0))
        finishedBytes += current.byteCount
        syncNanoseconds &+= current.syncNanoseconds
        unsafe self.current = nil
    }

    /// Completes the last segment. There is at least one, though it may be empty.
    func finish() throws(StoreError) {
        if unsafe current == nil, finished.isEmpty { _ = try nextSegment() }
        try finishCurrent()
    }

    /// Bytes written so far, or about to be: of segments and of value files.
    var byteCount: UInt64 { unsafe finishedBytes + (current?.byteCount ?? 0) }

    /// Numbers of all segments that were begun.
    var numbers: [UInt64] {
        let begun = unsafe current.map { [$0.number] } ?? []
        return finished.map(\.number) + begun
    }
}
