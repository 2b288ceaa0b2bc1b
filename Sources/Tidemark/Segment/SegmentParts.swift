internal import Synchronization

/// A sealed segment as readers see it: mapped, with its indexes in place and each part checked
/// when it is first touched.
@safe
final class SegmentParts: @unchecked Sendable {
    // Unchecked: pointers into a read-only mapping, which `file` holds, and into memory of
    // atomics.

    let footer: SegmentFooter
    let file: any StorageFile
    let identity: StoreIdentity
    let tables: VersionTables
    let directory: SegmentDirectory
    let originCount: Int
    let map: UnsafeRawBufferPointer
    let buckets: UnsafeRawPointer
    let bucketCount: Int
    let checksums: UnsafeRawPointer
    let checkedChunks: AtomicBitmap
    /// Parts of the hash index that a search came upon and goes without.
    let damagedChunks: AtomicBitmap
    let checkedBlocks: AtomicBitmap
    private let changeRows: ByteView
    private let knownLosses = Mutex<SegmentLosses?>(nil)
    private let cache: BlockCache
    private let serial: UInt64
    /// For each block, where the cache may have it.
    private let slots: UnsafeMutablePointer<Atomic<UInt32>>
    private let slotBytes: Int

    init(
        file: any StorageFile, footer: SegmentFooter, fileSize: UInt64,
        identity: StoreIdentity, values: SegmentValues, cache: BlockCache
    ) throws(StoreError) {
        self.file = file
        self.footer = footer
        self.identity = identity
        self.cache = cache
        let map = unsafe try file.mapForReading()
        guard map.count == Int(fileSize) else {
            throw Malformed("the segment's size changes").error(in: file.path, at: nil)
        }
        unsafe self.map = map
        let number = footer.segment
        func block(
            _ handle: BlockHandle, _ kind: BlockHeader.Kind
        ) throws(StoreError) -> ByteView {
            unsafe try Self.mappedBlock(
                handle, kind, in: file, map, segment: number, identity)
        }
        let directory = try block(footer.directory, .directory)
        do throws(Malformed) {
            self.directory = try SegmentDirectory(directory, dataEnd: footer.dataEnd)
            guard self.directory.blockCount == Int(footer.dataBlockCount) else {
                throw Malformed("directory and footer disagree about the number of blocks")
            }
        } catch {
            throw error.error(in: file.path, at: footer.directory.offset)
        }
        let tablesBlock = try file.readBlock(
            footer.tables, kind: .tables, segment: number, identity)
        do throws(Malformed) {
            tables = try VersionTables(decoding: tablesBlock.bytes, values: values)
        } catch {
            throw error.error(in: file.path, at: footer.tables.offset)
        }
        originCount = tables.originCount
        changeRows = try block(footer.changeDirectory, .changeDirectory)
        let checksums = try block(footer.indexChecksums, .indexChecksums)
        bucketCount = Int(footer.bucketCount)
        let chunkCount =
            (bucketCount + HashIndex.bucketsPerChunk - 1) / HashIndex.bucketsPerChunk
        guard
            changeRows.count == ChangeIndex.rowByteCount * Int(footer.changeBlockCount) + 8,
            checksums.count == 8 * chunkCount
        else {
            throw Malformed("an index has the wrong length").error(
                in: file.path, at: footer.changeDirectory.offset)
        }
        unsafe self.checksums = checksums.base
        unsafe buckets = map.baseAddress! + Int(footer.indexOffset)
        checkedChunks = AtomicBitmap(count: chunkCount)
        damagedChunks = AtomicBitmap(count: chunkCount)
        let blockCount = Int(footer.dataBlockCount)
        checkedBlocks = AtomicBitmap(count: blockCount)
        serial = cache.takeSerial()
        // Zeros stand for no place in the cache, and pages without any block that is ever cached
        // take no memory and no time.
        slotBytes = blockCount * MemoryLayout<Atomic<UInt32>>.stride
        unsafe slots = Pages.take(byteCount: slotBytes)
            .bindMemory(to: Atomic<UInt32>.self, capacity: blockCount)
    }

    deinit {
        unsafe Pages.giveBack(slots, byteCount: slotBytes)
    }

    func damaged(_ what: String, at offset: UInt64) -> StoreError {
        told(Malformed(what).error(in: file.path, at: offset))
    }

    /// Takes note of damage that somebody is about to be told by an error.
    func told(_ error: StoreError) -> StoreError {
        cache.events?.tellDamage(error)
        return error
    }

    func telling<Result>(
        _ body: () throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        do throws(StoreError) {
            return try body()
        } catch {
            throw told(error)
        }
    }

    // MARK: - Blocks that are used where they lie

    /// Checks a block that is stored as it is, and gives its bytes in the mapping.
    static func mappedBlock(
        _ handle: BlockHandle, _ kind: BlockHeader.Kind, in file: any StorageFile,
        _ map: UnsafeRawBufferPointer, segment: UInt64, _ identity: StoreIdentity
    ) throws(StoreError) -> ByteView {
        let count = BlockHeader.byteCount + Int(handle.storedCount)
        try file.populate(offset: Int(handle.offset), count: count)
        let base = unsafe map.baseAddress! + Int(handle.offset)
        let header = unsafe BlockHeader(at: base)
        guard header.storedCount == handle.storedCount, header.mark == handle.rawCount,
            handle.storedCount == handle.rawCount, header.kind == kind.rawValue,
            header.segment == UInt32(truncatingIfNeeded: segment), header.epoch == 0,
            unsafe BlockHeader.checksum(
                at: base, storedCount: Int(handle.storedCount), identity) == header.checksum
        else {
            throw Malformed("block \(kind): the checksum does not match")
                .error(in: file.path, at: handle.offset)
        }
        return unsafe ByteView(
            base: base + BlockHeader.byteCount, count: Int(handle.storedCount))
    }

    // MARK: - Data blocks

    /// Where a data block is stored, from its header, which is checked against the directory. The
    /// checksum is not looked at.
    @inline(__always)
    func stored(_ block: Int) throws(StoreError) -> (base: UnsafeRawPointer, BlockHandle) {
        let offset = directory.offset(of: block)
        let end = directory.offset(of: block + 1)
        let base = unsafe map.baseAddress! + Int(offset)
        let header = unsafe BlockHeader(at: base)
        let handle = BlockHandle(
            offset: offset, storedCount: header.storedCount, rawCount: header.mark)
        let isCompressed = directory.isCompressed(block)
        guard handle.endOffset <= end, end - handle.endOffset < 8, handle.isPlausible,
            isCompressed == (handle.storedCount < handle.rawCount)
        else { throw damaged("the header of a block does not fit its place", at: offset) }
        return unsafe (base + BlockHeader.byteCount, handle)
    }

    func handle(of block: Int) throws(StoreError) -> BlockHandle {
        try populate(block)
        return unsafe try stored(block).1
    }

    func populate(_ block: Int) throws(StoreError) {
        let offset = directory.offset(of: block)
        try telling { () throws(StoreError) in
            try file.populate(
                offset: Int(offset), count: Int(directory.offset(of: block + 1) - offset))
        }
    }

    func checkChecksum(
        _ base: UnsafeRawPointer, _ handle: BlockHandle
    ) throws(StoreError) {
        guard unsafe isMeant(base - BlockHeader.byteCount, handle) else {
            throw damaged("block data: the checksum does not match", at: handle.offset)
        }
    }

    /// Whether a data block, header first, is the one that a handle means.
    @inline(__always)
    func isMeant(_ start: UnsafeRawPointer, _ handle: BlockHandle) -> Bool {
        let header = unsafe BlockHeader(at: start)
        guard header.storedCount == handle.storedCount else { return false }
        let checksum = unsafe BlockHeader.checksum(
            at: start, storedCount: Int(handle.storedCount), identity)
        return checksum == header.checksum && header.kind == BlockHeader.Kind.data.rawValue
            && header.segment == UInt32(truncatingIfNeeded: footer.segment) && header.epoch == 0
    }

    private func checkEntries(
        _ base: UnsafeRawPointer, rawCount: Int, of block: Int
    ) throws(StoreError) {
        do throws(Malformed) {
            guard let view = unsafe DataBlockView(base: base, rawCount: rawCount) else {
                throw Malformed("a block has an impossible number of entries")
            }
            try view.check(originCount: originCount)
            let first = view.entry(at: 0)
            guard first?.position.compare(directory.position(of: block)) == 0 else {
                throw Malformed("the directory names another first entry of this block")
            }
        } catch {
            throw told(error.error(in: file.path, at: directory.offset(of: block)))
        }
    }

    /// A block that is stored as it is, checked when it is first asked for.
    ///
    /// - Parameter isPopulated: whether it was brought into memory already.
    func mappedData(
        _ block: Int, isPopulated: Bool = false
    ) throws(StoreError) -> (base: UnsafeRawPointer, rawCount: Int) {
        let isChecked = checkedBlocks[block]
        if !isChecked, !isPopulated { try populate(block) }
        let (base, handle) = unsafe try stored(block)
        if !isChecked {
            try unsafe checkChecksum(base, handle)
            try unsafe checkEntries(base, rawCount: Int(handle.rawCount), of: block)
            checkedBlocks.set(block)
        }
        return unsafe (base, Int(handle.rawCount))
    }

    /// The length of a compressed block before compression.
    ///
    /// - Parameter isPopulated: whether it was brought into memory already.
    func rawCount(of block: Int, isPopulated: Bool = false) throws(StoreError) -> Int {
        if !isPopulated, !checkedBlocks[block] { try populate(block) }
        return unsafe Int(try stored(block).1.rawCount)
    }

    /// Decompresses a block, whose checksum is compared each time and whose entries are checked
    /// the first time.
    func decompress(
        _ block: Int, into target: UnsafeMutableRawBufferPointer
    ) throws(StoreError) {
        let (base, handle) = unsafe try stored(block)
        try unsafe checkChecksum(base, handle)
        let source = unsafe UnsafeRawBufferPointer(start: base, count: Int(handle.storedCount))
        guard target.count == Int(handle.rawCount),
            unsafe LZ4Block.decompress(source, into: target)
        else {
            throw damaged("a block does not decompress to its length", at: handle.offset)
        }
        guard !checkedBlocks[block] else { return }
        try unsafe checkEntries(
            UnsafeRawPointer(target.baseAddress!), rawCount: target.count, of: block)
        checkedBlocks.set(block)
    }

    // MARK: - Single entries

    /// The entry at a place; nil if none can begin there.
    @inline(__always)
    func entry(at place: EntryPlace) throws(StoreError) -> FoundEntry? {
        let block = place.block
        guard block < directory.blockCount else { return nil }
        guard directory.isCompressed(block) else {
            if !checkedBlocks[block] { _ = unsafe try mappedData(block) }
            let start = Int(directory.offset(of: block)) + BlockHeader.byteCount
            let end = Int(directory.offset(of: block + 1))
            let entry = unsafe entry(
                at: place.offset, map.baseAddress! + start, count: end - start)
            guard let entry else { return nil }
            return FoundEntry(entry, tables)
        }
        let slot = unsafe slots + block
        let owner = BlockCache.owner(serial: serial, block: block)
        if let pinned = unsafe cache.pin(owner, slot: slot) {
            return found(at: place.offset, in: pinned)
        }
        return try uncachedEntry(at: place, owner)
    }

    @inline(__always)
    private func found(at offset: Int, in pinned: BlockCache.Pinned) -> FoundEntry? {
        guard let entry = unsafe entry(at: offset, pinned.base, count: pinned.rawCount) else {
            cache.unpin(pinned)
            return nil
        }
        return FoundEntry(entry, tables, pinned, in: cache)
    }

    @inline(never)
    private func uncachedEntry(
        at place: EntryPlace, _ owner: UInt64
    ) throws(StoreError) -> FoundEntry? {
        let block = place.block
        let rawCount = try rawCount(of: block)
        if checkedBlocks[block], let (pinned, memory) = unsafe cache.lend(rawCount: rawCount) {
            do throws(StoreError) {
                if let entry = unsafe try passingEntry(at: place, into: memory) {
                    return FoundEntry(entry, tables, pinned, in: cache)
                }
            } catch {
                cache.unpin(pinned)
                throw error
            }
            cache.unpin(pinned)
        }
        let filled = unsafe try cache.fill(owner, slot: slots + block, rawCount: rawCount) {
            (memory) throws(StoreError) in
            try unsafe decompress(block, into: memory)
        }
        if let filled { return found(at: place.offset, in: filled) }
        let own = unsafe try Block(count: rawCount) { (memory) throws(StoreError) in
            try unsafe decompress(block, into: memory)
        }
        let entry = unsafe entry(at: place.offset, own.bytes.base, count: rawCount)
        return entry.map { FoundEntry($0, tables, own: own) }
    }

    /// An entry of a block that was checked before and is not to be kept: decompressed as far as
    /// the entry reaches, if it is no longer than two of its segment on average. Otherwise nil.
    private func passingEntry(
        at place: EntryPlace, into memory: UnsafeMutableRawBufferPointer
    ) throws(StoreError) -> Entry? {
        let (base, handle) = unsafe try stored(place.block)
        try unsafe checkChecksum(base, handle)
        let average = Int(clamping: footer.rawBytes / max(1, footer.entryCount))
        let expected = 2 * min(average, DataBlock.bytesMax)
        let count = min(memory.count, place.offset + expected + EntryLayout.stampBytesMax)
        let stored = unsafe UnsafeRawBufferPointer(start: base, count: Int(handle.storedCount))
        let start = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[..<count])
        guard memory.count == Int(handle.rawCount),
            unsafe LZ4Block.decompressBeginning(stored, into: start)
        else { return nil }
        let raw = UnsafeRawPointer(memory.baseAddress!)
        guard let entry = unsafe entry(at: place.offset, raw, count: count),
            unsafe count == memory.count || entry.isWhole(before: raw + count)
        else { return nil }
        return entry
    }

    @inline(__always)
    private func entry(at offset: Int, _ base: UnsafeRawPointer, count: Int) -> Entry? {
        guard offset >= DataBlock.entriesOffset, offset < count else { return nil }
        return unsafe EntryLayout.entry(at: base + offset, end: base + count, timeBase: base)
    }

    // MARK: - Changes

    /// A row of the change directory.
    struct ChangeRow {
        let dataset: DatasetID
        let syncCount: UInt64
        let offset: UInt64
        /// Where the block ends at most.
        let end: UInt64
    }

    var changeBlockCount: Int { Int(footer.changeBlockCount) }

    func changeRow(_ index: Int) -> ChangeRow {
        let base = unsafe changeRows.base + index * ChangeIndex.rowByteCount
        func offset(_ base: UnsafeRawPointer) -> UInt64 {
            unsafe UInt64(
                UInt32(littleEndian: (base + 4).loadUnaligned(as: UInt32.self))) << 3
        }
        return unsafe ChangeRow(
            dataset: UInt32(littleEndian: base.loadUnaligned(as: UInt32.self)),
            syncCount: UInt64(littleEndian: (base + 8).loadUnaligned(as: UInt64.self)),
            offset: offset(base), end: offset(base + ChangeIndex.rowByteCount))
    }

    /// The first row that can hold changes of the dataset after the count. O(log n).
    func changeRow(of dataset: DatasetID, after syncCount: UInt64) -> Int {
        var low = 0
        var high = changeBlockCount
        while low < high {
            let middle = (low + high) / 2
            let row = changeRow(middle)
            if (row.dataset, row.syncCount) <= (dataset, syncCount) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return max(0, low - 1)
    }

    /// The changes of a row, each checked to name a block of the segment.
    func changes(_ row: ChangeRow) throws(StoreError) -> [Change] {
        let end = unsafe UInt64(map.count)
        guard row.offset >= footer.dataEnd, row.offset < row.end, row.end <= end,
            row.end - row.offset > UInt64(BlockHeader.byteCount)
        else { throw damaged("a block of changes lies outside the segment", at: row.offset) }
        try telling { () throws(StoreError) in
            try file.populate(offset: Int(row.offset), count: BlockHeader.byteCount)
        }
        let header = unsafe BlockHeader(at: map.baseAddress! + Int(row.offset))
        let handle = BlockHandle(
            offset: row.offset, storedCount: header.storedCount, rawCount: header.mark)
        guard handle.endOffset <= row.end else {
            throw damaged("a block of changes is longer than its place", at: row.offset)
        }
        let bytes = try telling { () throws(StoreError) in
            unsafe try Self.mappedBlock(
                handle, .changes, in: file, map, segment: footer.segment, identity)
        }
        do throws(Malformed) {
            let changes = try ChangeIndex.decode(bytes, blockCount: directory.blockCount)
            guard changes[0].dataset == row.dataset, changes[0].syncCount == row.syncCount else {
                throw Malformed("the change directory names another first change")
            }
            return changes
        } catch {
            throw told(error.error(in: file.path, at: row.offset))
        }
    }

    // MARK: - Tables that few ask for

    func datasets() throws(StoreError) -> SegmentDatasets {
        let block = try telling { () throws(StoreError) in
            try file.readBlock(
                footer.datasets, kind: .datasets, segment: footer.segment, identity)
        }
        do throws(Malformed) {
            return try SegmentDatasets(decoding: block.bytes)
        } catch {
            throw told(error.error(in: file.path, at: footer.datasets.offset))
        }
    }

    /// What was dropped when the segment was made. Read and checked once.
    func losses() throws(StoreError) -> SegmentLosses {
        if let known = knownLosses.withLock({ $0 }) { return known }
        let block = try telling { () throws(StoreError) in
            try file.readBlock(
                footer.collected, kind: .collected, segment: footer.segment, identity)
        }
        do throws(Malformed) {
            let losses = try SegmentLosses(decoding: block.bytes)
            knownLosses.withLock { $0 = losses }
            return losses
        } catch {
            throw told(error.error(in: file.path, at: footer.collected.offset))
        }
    }
}
