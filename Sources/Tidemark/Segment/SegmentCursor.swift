/// Walks over the entries of one sealed segment in their order, either way.
struct SegmentCursor {
    let segment: SealedSegment
    let parts: SealedSegment.Parts
    /// Whether blocks go through the cache: not for readers that pass once over everything.
    private let isCaching: Bool
    private var block: DataBlockView?
    private var blockNumber = 0
    private var slot = 0

    init(_ segment: SealedSegment, isCaching: Bool) throws(StoreError) {
        self.segment = segment
        self.isCaching = isCaching
        parts = try segment.loadedParts()
    }

    var tables: VersionTables { parts.tables }

    /// nil when the cursor has left the segment at either end. Valid until the cursor moves.
    var entry: Entry? {
        guard let block, slot >= 0, slot < block.count else { return nil }
        return block.entry(at: slot)
    }

    /// To the first entry at or after the position.
    mutating func seek(to position: EntryPosition) throws(StoreError) {
        try load(parts.blockIndex(of: position))
        guard let block else { return }
        slot = block.lowerBound(position)
        if slot == block.count { try load(blockNumber + 1) }
    }

    /// To the last entry before the position.
    mutating func seek(before position: EntryPosition) throws(StoreError) {
        try load(parts.blockIndex(of: position))
        guard let block else { return }
        slot = block.lowerBound(position)
        try stepBack()
    }

    mutating func stepForward() throws(StoreError) {
        guard let block else { return }
        slot += 1
        if slot >= block.count { try load(blockNumber + 1) }
    }

    mutating func stepBack() throws(StoreError) {
        slot -= 1
        if slot < 0, blockNumber > 0 {
            try load(blockNumber - 1)
            slot = (block?.count ?? 0) - 1
        }
    }

    /// At the first entry of a block; past the end if there is no such block.
    private mutating func load(_ number: Int) throws(StoreError) {
        blockNumber = number
        slot = 0
        guard number < parts.handles.count else {
            block = nil
            return
        }
        block =
            try isCaching
            ? segment.dataBlock(number, parts) : segment.uncachedDataBlock(number, parts)
    }
}
