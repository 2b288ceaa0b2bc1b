/// What a compaction did.
///
/// Counts are of all sealed segments of the store: before, as soon as what the log held was sealed,
/// and after. What was written meanwhile is in neither.
public struct CompactionReport: Hashable, Sendable {
    public internal(set) var segmentsBefore = 0
    public internal(set) var segmentsAfter = 0
    /// Bytes of their files, and of the files of large values that they name.
    public internal(set) var bytesBefore: UInt64 = 0
    public internal(set) var bytesAfter: UInt64 = 0
    /// Versions that are gone: superseded ones beyond what is kept, those of deleted datasets, and
    /// tombstones.
    public internal(set) var entriesDropped = 0
    /// Of these tombstones, and marks of records that were dropped here alone: see
    /// ``Record/isDropped``.
    public internal(set) var tombstonesDropped = 0

    public init() {}

    /// Bytes that went back to the file system; those of a snapshot or walk that still sees the old
    /// segments go back when it is let go. 0 if the new segments are larger, as they can be where
    /// there was nothing to drop.
    public var bytesReclaimed: UInt64 { bytesBefore > bytesAfter ? bytesBefore - bytesAfter : 0 }

    /// - Parameters:
    ///   - all: that there were before.
    ///   - removed: of these.
    ///   - made: in their place.
    init(
        _ all: [SealedSegment], removed: [SealedSegment], made: [SealedSegment]
    ) throws(StoreError) {
        func bytes(_ segments: [SealedSegment]) -> UInt64 {
            var values = SegmentValueRows()
            for segment in segments { values.add(segment.values.table) }
            return segments.reduce(values.rows.reduce(0) { $0 + $1.fileSize }) {
                $0 + $1.fileSize
            }
        }
        let gone = Set(removed.map(\.number))
        let kept = all.filter { !gone.contains($0.number) }
        segmentsBefore = all.count
        segmentsAfter = kept.count + made.count
        bytesBefore = bytes(all)
        bytesAfter = bytes(kept + made)
        let before = try Self.count(removed)
        let after = try Self.count(made)
        entriesDropped = max(0, before.entries - after.entries)
        tombstonesDropped = max(0, before.tombstones - after.tombstones)
    }

    /// Without the store's own records, which nobody has dropped when the store drops one.
    private static func count(
        _ segments: [SealedSegment]
    ) throws(StoreError) -> (entries: Int, tombstones: Int) {
        var entries = 0
        var tombstones = 0
        for segment in segments {
            for row in try segment.parts().datasets().rows where row.dataset != 0 {
                entries += Int(clamping: row.entryCount)
                tombstones += Int(clamping: row.tombstoneCount)
            }
        }
        return (entries, tombstones)
    }
}

/// How far a compaction, or the planning of one, has come.
public struct CompactionProgress: Hashable, Sendable {
    /// 0...``bytesTotal``.
    public let bytesDone: UInt64
    /// Of a plan what lies on disk; of a compaction what its sources hold before compression.
    public let bytesTotal: UInt64
}
