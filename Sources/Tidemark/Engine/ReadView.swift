/// Everything that can be read at one moment: immutable, shared by all readers of that moment,
/// and replaced as a whole when a segment is sealed or compacted.
final class ReadView: Sendable {
    /// The active one first, then those being sealed, newest first.
    let memtables: [Memtable]
    /// Newest first. Of one dataset, all of a run is older than all of the one before it.
    let runs: [SegmentRun]

    init(memtables: [Memtable], runs: [SegmentRun]) {
        self.memtables = memtables
        self.runs = runs
    }

    /// Of all runs, newest run first.
    var segments: [SealedSegment] { runs.flatMap(\.segments) }

    /// Hands out the newest version of a key, tombstones included, or nil. The entry is valid
    /// during the call. O(1) in each memtable and each run.
    @inline(__always)
    func withNewest<Result>(
        of key: ByteView, in dataset: DatasetID, sequenceMax: UInt64,
        _ body: (Entry?, VersionTables?) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        let hash = KeyHash.of(key, in: dataset)
        for memtable in memtables {
            if let entry = memtable.newest(
                of: key, in: dataset, hash: hash, sequenceMax: sequenceMax)
            {
                return try body(entry, memtable.tables)
            }
        }
        for run in runs {
            let found = try run.withNewest(of: key, in: dataset, hash: hash) {
                (entry, tables) throws(StoreError) in
                try body(entry, tables)
            }
            if let found { return found }
        }
        return try body(nil, nil)
    }
}
