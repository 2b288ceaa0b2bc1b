/// How the memory that a store may take is divided.
///
/// What is not for the block cache is for writing and merging. At the worst of moments there are
/// three memtables, the active one and two that wait, the first of which is being sealed, and
/// a merge goes on beside:
///
/// - A memtable is nodes (``MemtableNode``) and a table of 16 bytes or more for each key. It is
///   sealed when these have their share, though its log may have room left.
/// - Sealing sorts the nodes (32 bytes for each, of which 8 stay) and then makes a segment: 36
///   bytes where the memtable has 48 or more, so three quarters of a memtable's share.
/// - Merging makes one segment after the other, and cuts them so that each fits. While nothing is
///   merged its share may be lent for sealing a second memtable beside the first.
///
/// The table of the next memtable, which is made ahead of need, is not divided: at most 4 MiB by
/// default. Nor are cursors, catalog and buffers, which come to a few hundred kilobytes. What a
/// user of the store holds is not bounded by it: batches, snapshots, records read.
struct MemoryBudget {
    static let workingBytesDefault = 64 << 20
    static let blockCacheBytesDefault = 64 << 20
    /// What sealing takes beside the memtable.
    static let sealingBytesEachEntry = 36

    let blockCacheBytes: Int
    /// Of nodes and tables of a memtable; see ``Memtable/hasRoom(within:)``.
    let memtableBytesMax: Int
    /// For so many keys a memtable's table may be made ahead of need.
    let keysExpectedMax: Int
    /// Entries of a segment, after which its run goes on in another.
    let segmentEntriesMax: Int
    /// Whether the share of merging is enough for sealing a memtable.
    let lendsMergeShare: Bool

    /// - Parameter options: checked.
    init(_ options: StoreOptions) {
        let working: Int
        if let limit = options.memoryLimit {
            let cache = options.blockCacheBytes
            working = cache.map { limit - $0 } ?? min(limit / 2, Self.workingBytesMax(options))
            blockCacheBytes = cache ?? limit - working
        } else {
            working = Self.workingBytesDefault
            blockCacheBytes = options.blockCacheBytes ?? Self.blockCacheBytesDefault
        }
        let mergeBytes = min(
            working / 16 * 7, Limits.segmentEntriesMax * SegmentWriter.bytesEachEntry)
        segmentEntriesMax = min(
            options.segmentEntriesMax, mergeBytes / SegmentWriter.bytesEachEntry)
        // Three, and three quarters of one for sealing.
        memtableBytesMax = (working - mergeBytes) / 15 * 4
        lendsMergeShare = memtableBytesMax / 4 * 3 <= mergeBytes
        keysExpectedMax = Self.keysExpectedMax(memtableBytes: memtableBytesMax)
    }

    /// More than this is better used for the block cache: two bytes in memory for each of a log is
    /// what the smallest records take.
    private static func workingBytesMax(_ options: StoreOptions) -> Int {
        2 * options.segmentBytes / 4 * 15
            + Limits.segmentEntriesMax * SegmentWriter.bytesEachEntry
    }

    /// Tables have a power of two of slots, two or more for each key. The largest that takes no
    /// more than a third of the memory can be full when the rest is; the next larger one never,
    /// but may leave room for more nodes all the same.
    private static func keysExpectedMax(memtableBytes: Int) -> Int {
        let bytesEachKey = 16
        var table = 16 << 10
        while 2 * table <= memtableBytes / 3 { table *= 2 }
        let nodesBesideNext =
            (memtableBytes - 2 * table) / MemoryLayout<MemtableNode>.stride
        return nodesBesideNext > table / bytesEachKey
            ? 2 * table / bytesEachKey - 2 : table / bytesEachKey - 2
    }
}

extension StoreOptions {
    /// The words are made only where something is wrong: each opening asks.
    func require(_ isGood: Bool, _ what: @autoclosure () -> String) throws(StoreError) {
        guard isGood else { throw StoreError(.invalidArgument, what()) }
    }

    /// - Throws: `invalidArgument` naming the option and its range.
    func checkMemory() throws(StoreError) {
        if let memoryLimit {
            try require(
                Limits.memoryLimit.contains(memoryLimit),
                "the option memoryLimit is \(memoryLimit); allowed are \(Limits.memoryLimit)")
        }
        guard let blockCacheBytes else { return }
        let most =
            memoryLimit.map { $0 - Limits.workingBytesMin }
            ?? Limits.blockCacheBytes.upperBound
        try require(
            (0...most).contains(blockCacheBytes),
            "the option blockCacheBytes is \(blockCacheBytes); allowed are \(0...most)"
                + (memoryLimit == nil ? "" : " beside that memoryLimit"))
    }
}
