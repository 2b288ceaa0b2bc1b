/// Everything that can be read at one moment: immutable, shared by all readers of that moment,
/// and replaced as a whole when a segment is sealed or compacted.
final class ReadView: Sendable {
    /// The active one first, then those being sealed, newest first.
    let memtables: [Memtable]
    /// Newest first. Of one dataset, all of a segment is older than all of the one before it.
    let segments: [SealedSegment]

    init(memtables: [Memtable], segments: [SealedSegment]) {
        self.memtables = memtables
        self.segments = segments
    }

    /// Hands out the newest version of a key, tombstones included, or nil. The entry is valid
    /// during the call. O(log n) in each memtable and in each segment whose filter lets it pass.
    func withNewest<Result>(
        of key: ByteView, in dataset: DatasetID, sequenceMax: UInt64,
        _ body: (Entry?, VersionTables?) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        for memtable in memtables {
            if let entry = memtable.newest(of: key, in: dataset, sequenceMax: sequenceMax) {
                return try body(entry, memtable.tables)
            }
        }
        if !segments.isEmpty {
            let hash = KeyFilter.hash(key, in: dataset)
            for segment in segments {
                if let (entry, block) = try segment.newest(of: key, in: dataset, hash: hash) {
                    let tables = try segment.loadedParts().tables
                    let result = try body(entry, tables)
                    withExtendedLifetime(block) {}
                    return result
                }
            }
        }
        return try body(nil, nil)
    }
}
