/// Walks forward over the newest version of each key of one run, and of nothing else: what a scan
/// of a store comes down to when all in its range lies in one sorted sequence.
///
/// Nothing is compared on the way: bounds become a last block and a last slot in it, and an entry
/// says itself whether it is superseded.
@safe
struct RunScan {
    private let run: SegmentRun
    /// Behind the last entry that is wanted.
    private let limit: [UInt8]?
    private let limitDataset: DatasetID
    private let includingDeleted: Bool
    /// By which records have expired.
    private let now: UInt64
    private let buffer = BlockBuffer()

    private var segment = 0
    private var parts: SegmentParts
    private var block = 0
    /// The last block of the segment in which anything wanted can be.
    private var lastBlock = -1
    private var view: DataBlockView?
    private var slot = 0
    private var slotEnd = 0
    /// Whether to stop after many dead entries, so that somebody can see whether to jump.
    private let pausesInGaps: Bool
    private var isPaused = false
    /// Entries of the blocks that were passed over before the last pause.
    private(set) var pausedCount = 0

    /// - Parameters:
    ///   - start: the first key wanted.
    ///   - upperBound: the first key no longer wanted; nil for all of the dataset.
    init(
        _ run: SegmentRun, dataset: DatasetID, from start: KeyPosition,
        upTo upperBound: [UInt8]?, includingDeleted: Bool, now: UInt64, pausesInGaps: Bool
    ) throws(StoreError) {
        self.run = run
        self.includingDeleted = includingDeleted
        self.now = now
        limit = upperBound
        limitDataset = upperBound == nil ? dataset &+ 1 : dataset
        self.pausesInGaps = pausesInGaps
        parts = try run.segments[0].parts()
        try start.withPosition { (position) throws(StoreError) in try seek(to: position) }
    }

    /// To the first entry at or after a position, which is not before the start nor behind the end
    /// of what is wanted.
    mutating func seek(to position: EntryPosition) throws(StoreError) {
        view = nil
        segment = try run.index(of: position)
        try enterSegment()
        block = parts.directory.block(of: position)
        parts.prefetch(block)
        guard try loadBlock(), let view else { return }
        slot = view.lowerBound(position)
    }

    /// The key at which the scan stands; nil if it has not paused but ended.
    mutating func resume() -> ByteView? {
        guard isPaused else { return nil }
        isPaused = false
        return view?.entry(at: slot)?.key
    }

    private func withLimit<Result>(
        _ body: (EntryPosition) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        try (limit ?? []).withBytes { (key) throws(StoreError) in
            try body(EntryPosition(before: key, in: limitDataset))
        }
    }

    private mutating func enterSegment() throws(StoreError) {
        parts = try run.segments[segment].parts()
        let directory = parts.directory
        lastBlock = try withLimit { directory.block(of: $0) }
        block = 0
    }

    /// False if the segment ends before the block, or what is wanted does.
    private mutating func loadBlock() throws(StoreError) -> Bool {
        guard block <= lastBlock, block < parts.directory.blockCount else { return false }
        let loaded = try parts.view(of: block, in: buffer)
        loaded.prefetchEntries()
        parts.prefetch(block + 1)
        view = loaded
        slot = 0
        slotEnd =
            block < lastBlock ? loaded.count : try withLimit { loaded.lowerBound($0) }
        return true
    }

    /// The next entry, good until the next call; nil at the end or when it has paused.
    @inline(__always)
    mutating func next() throws(StoreError) -> Entry? {
        // Entries of whole blocks in which nothing was wanted.
        var passedCount = 0
        while true {
            if let view {
                while slot < slotEnd {
                    guard let entry = view.entry(at: slot) else { throw parts.changed(block) }
                    slot += 1
                    if !entry.isSuperseded, includingDeleted || entry.isLive(at: now) {
                        return entry
                    }
                }
            }
            guard try goOn() else { return nil }
            if passedCount >= GapMemory.passedMin, pausesInGaps {
                isPaused = true
                pausedCount = passedCount
                return nil
            }
            passedCount += slotEnd
        }
    }

    private mutating func goOn() throws(StoreError) -> Bool {
        block += 1
        while try !loadBlock() {
            view = nil
            guard segment + 1 < run.segments.count, block > lastBlock || isPastEnd else {
                return false
            }
            // What is wanted may go on in the next segment, unless it ended within this one.
            guard lastBlock >= parts.directory.blockCount - 1 else { return false }
            segment += 1
            try enterSegment()
        }
        return true
    }

    private var isPastEnd: Bool { block >= parts.directory.blockCount }

    var tables: VersionTables { parts.tables }
}
