/// Tells how far a compaction has come by what it has read of its sources: how much it will write
/// is known only at its end. Bytes of keys and values are counted, before compression, which the
/// tables of the segments know beforehand.
///
/// For one thread.
final class CompactionMeter {
    private let progress: (CompactionProgress) -> Void
    private var bytesDone: UInt64 = 0
    private var bytesTotal: UInt64 = 0

    init(_ progress: @escaping (CompactionProgress) -> Void) {
        self.progress = progress
    }

    /// Says what else is to be read. O(segments, and datasets in each).
    func expect(_ segments: [SealedSegment]) throws(StoreError) {
        for segment in segments {
            for row in try segment.parts().datasets().rows {
                bytesTotal &+= row.keyBytes &+ row.valueBytes
            }
        }
    }

    /// So much more was read.
    func add(_ byteCount: Int) {
        guard byteCount > 0 else { return }
        bytesDone &+= UInt64(byteCount)
        tell(bytesDone)
    }

    /// All is done.
    func finish() {
        tell(bytesTotal)
    }

    private func tell(_ bytesDone: UInt64) {
        progress(
            CompactionProgress(bytesDone: min(bytesDone, bytesTotal), bytesTotal: bytesTotal))
    }
}
