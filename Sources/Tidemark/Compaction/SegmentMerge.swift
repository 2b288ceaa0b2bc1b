/// Writes what is still needed of several sources into one sealed segment.
///
/// Sealing a memtable and compacting segments are the same work with different sources.
struct SegmentMerge {
    var sources: [SourceCursor]
    /// Whether there is nothing older than the sources in the store.
    let reachesOldest: Bool
    /// Asked once for each dataset, in rising order.
    let retention: (DatasetID) -> Retention
    /// Called now and then; true abandons the work.
    let isCancelled: () -> Bool

    /// Returns false if the work was abandoned.
    mutating func write(to writer: SegmentWriter) throws(StoreError) -> Bool {
        var cursor = MergeCursor(sources, order: .forward)
        try cursor.seek(EntryPosition(before: .empty, in: 0))
        var dataset: DatasetID?
        var current: Retention?
        var key: [UInt8] = []
        var kept: KeyRetention?
        var steps = 0
        while let entry = cursor.entry {
            steps += 1
            if steps & 0xFFF == 0, isCancelled() { return false }
            if dataset != entry.dataset {
                dataset = entry.dataset
                current = entry.dataset == 0 ? nil : retention(entry.dataset)
                kept = nil
            }
            let isSameKey =
                unsafe kept != nil && key.withUnsafeBytes { unsafe ByteView($0).equals(entry.key) }
            if !isSameKey {
                key.removeAll(keepingCapacity: true)
                unsafe key.append(contentsOf: entry.key.buffer)
                kept = KeyRetention(
                    current ?? Self.ofStoreItself, reachesOldest: reachesOldest)
            }
            let tables = cursor.tables
            switch kept!.verdict(on: entry, dot: { tables.dot(of: entry) }) {
            case .keep: try writer.add(entry, from: tables)
            case .collect: writer.noteCollected(entry.dataset, through: entry.syncCount)
            case .drop: break
            }
            try cursor.advance()
        }
        return true
    }

    /// The store's own records: the newest of each is the only one that means anything.
    private static let ofStoreItself = Retention(
        isLive: true, historyVersions: 0,
        dirtiness: Dirtiness(ownIDs: [], acknowledged: VersionVector()), isSolitary: false)
}
