/// Memory that a cursor decompresses one block after the other into: none before the first, which
/// a walk over blocks that are stored as they are never comes to.
@safe
final class BlockBuffer {
    private var memory = unsafe UnsafeMutableRawBufferPointer(start: nil, count: 0)

    deinit {
        unsafe Pages.deallocate(memory)
    }

    /// Uninitialised; what was there before is gone.
    func room(_ byteCount: Int) -> UnsafeMutableRawBufferPointer {
        if unsafe memory.count < byteCount + Block.slackBytes {
            unsafe Pages.deallocate(memory)
            unsafe memory = Pages.allocate(
                byteCount: max(byteCount, DataBlock.bytesMax) + Block.slackBytes)
        }
        return unsafe UnsafeMutableRawBufferPointer(rebasing: memory[..<byteCount])
    }
}

extension SegmentParts {
    /// A block's entries: in the mapping, or decompressed into a buffer and good until that is used
    /// again.
    ///
    /// - Parameter isPopulated: whether it was brought into memory already.
    func view(
        of block: Int, in buffer: BlockBuffer, isPopulated: Bool = false
    ) throws(StoreError) -> DataBlockView {
        let view: DataBlockView?
        if directory.isCompressed(block) {
            let target = unsafe buffer.room(try rawCount(of: block, isPopulated: isPopulated))
            try unsafe decompress(block, into: target)
            view = unsafe DataBlockView(
                base: UnsafeRawPointer(target.baseAddress!), rawCount: target.count)
        } else {
            let data = unsafe try mappedData(block, isPopulated: isPopulated)
            view = unsafe DataBlockView(base: data.base, rawCount: data.rawCount)
        }
        guard let view else { throw changed(block) }
        return view
    }

    /// What is thrown when a mapped block is no longer what it was when it was checked.
    @inline(never)
    func changed(_ block: Int) -> StoreError {
        damaged(
            "a block has changed since it was checked", at: directory.offset(of: block))
    }
}

/// Walks over the entries of one sealed segment in their order, either way.
///
/// Compressed blocks go into the cursor's own memory, not through the cache: a walk over
/// everything does not drive out what single reads need.
struct SegmentCursor {
    let parts: SegmentParts
    private let segment: SealedSegment
    /// Blocks that are passed over. Only for walks forward.
    private let skipped: Set<Int>
    private let buffer = BlockBuffer()
    private var view: DataBlockView?
    private var block = 0
    private var slot = 0
    /// Blocks that were brought into memory ahead of a walk.
    private var populated = 0..<0
    /// nil when the cursor has left the segment at either end. Valid until the cursor moves.
    private(set) var entry: Entry?

    /// - Parameter skipped: blocks of which nothing is read. Then the cursor may only go forward,
    ///   and an entry that says that it is superseded may stand behind one of another key.
    init(_ segment: SealedSegment, skipping skipped: Set<Int> = []) throws(StoreError) {
        self.segment = segment
        self.skipped = skipped
        parts = try segment.parts()
    }

    /// To the first entry at or after the position. O(log n); O(1) for a key that is there.
    mutating func seek(to position: EntryPosition) throws(StoreError) {
        try load(parts.directory.block(of: position))
        guard let view else { return }
        slot = view.lowerBound(position)
        if slot == view.count { try load(block + 1) } else { try decode() }
    }

    /// To the last entry before the position.
    mutating func seek(before position: EntryPosition) throws(StoreError) {
        try load(parts.directory.block(of: position))
        guard let view else { return }
        slot = view.lowerBound(position)
        try stepBack()
    }

    /// To the last entry of the segment.
    mutating func seekToEnd() throws(StoreError) {
        try load(parts.directory.blockCount - 1)
        guard let view else { return }
        slot = view.count - 1
        try decode()
    }

    @inline(__always)
    mutating func stepForward() throws(StoreError) {
        guard let view else { return }
        slot += 1
        if slot < view.count { try decode() } else { try load(block + 1) }
    }

    mutating func stepBack() throws(StoreError) {
        guard view != nil else { return }
        slot -= 1
        if slot >= 0 { return try decode() }
        try load(block - 1)
        guard let view else { return }
        slot = view.count - 1
        try decode()
    }

    @inline(__always)
    private mutating func decode() throws(StoreError) {
        guard let decoded = view?.entry(at: slot) else { throw parts.changed(block) }
        entry = decoded
    }

    /// At the first entry of a block; past the end if there is no such block.
    private mutating func load(_ wanted: Int) throws(StoreError) {
        var number = wanted
        while !skipped.isEmpty, skipped.contains(number) { number += 1 }
        let isWalk = view != nil && number == block + 1
        block = number
        slot = 0
        guard number >= 0, number < parts.directory.blockCount else {
            view = nil
            entry = nil
            return
        }
        // Should this fail, nothing points to where the block before was.
        view = nil
        entry = nil
        if isWalk, !populated.contains(number) {
            populated = number..<parts.populate(ahead: number)
        }
        view = try parts.view(
            of: number, in: buffer, isPopulated: populated.contains(number))
        try decode()
    }
}
