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

    /// - Parameters:
    ///   - lowerBound: the first key wanted; nil for all of the dataset.
    ///   - upperBound: the first key no longer wanted; nil for all of the dataset.
    init(
        _ run: SegmentRun, dataset: DatasetID, from lowerBound: [UInt8]?,
        upTo upperBound: [UInt8]?, includingDeleted: Bool, now: UInt64
    ) throws(StoreError) {
        self.run = run
        self.includingDeleted = includingDeleted
        self.now = now
        limit = upperBound
        limitDataset = upperBound == nil ? dataset &+ 1 : dataset
        parts = try run.segments[0].parts()
        try (lowerBound ?? []).withBytes { (key) throws(StoreError) in
            let first = EntryPosition(before: key, in: dataset)
            segment = try run.index(of: first)
            try enterSegment()
            block = parts.directory.block(of: first)
            guard try loadBlock(), let view else { return }
            slot = view.lowerBound(first)
        }
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
        view = loaded
        slot = 0
        slotEnd =
            block < lastBlock ? loaded.count : try withLimit { loaded.lowerBound($0) }
        return true
    }

    /// The next entry, good until the next call; nil at the end.
    @inline(__always)
    mutating func next() throws(StoreError) -> Entry? {
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
