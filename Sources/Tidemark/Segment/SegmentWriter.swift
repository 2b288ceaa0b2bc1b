/// Writes one sealed segment: entries come in their order, blocks go out as they fill, and the
/// indexes follow. Memory grows with the number of entries (8 bytes of filter and 24 of change
/// index each), not with their size.
///
/// A crash before `finish` returned leaves a file that no manifest names; opening removes it.
final class SegmentWriter {
    /// Where a data block ends, before compression. Larger blocks compress better and cost more
    /// to read one record from.
    static let dataBlockBytes = 8 << 10
    static let changesPerBlock = 1_024

    let number: UInt64
    private let compression: Compression
    private let file: any StorageFile
    private var offset = UInt64(FileHeader.byteCount)
    private var footer: SegmentFooter
    private var tables = VersionTables.Content()

    private var block = ByteWriter()
    private var blockOffsets: [UInt32] = []
    /// The position of the block's first entry, whose key lies in `blockFirstKey`.
    private var blockFirst: (dataset: DatasetID, syncCount: UInt64) = (0, 0)
    private var blockFirstKey: [UInt8] = []
    /// Where a block is put together with its header, and the value of a line of the index: kept,
    /// because a segment has thousands of blocks.
    private var assembly: [UInt8] = []
    private var handleValue = ByteWriter()
    private var index = ByteWriter()
    private var indexOffsets: [UInt32] = []

    private var hashes: [UInt64] = []
    private var changes: [ChangePlace] = []
    private var datasets = SegmentDatasets()
    private var translation = TableTranslation()

    init(
        number: UInt64, path: String, tag: UInt64, compression: Compression,
        storage: any Storage
    ) throws(StoreError) {
        self.number = number
        self.compression = compression
        file = try storage.openFile(path, .create)
        footer = SegmentFooter(segment: number)
        let header = FileHeader(
            kind: .sealed, segment: number, tag: tag, madeAt: storage.wallClockMilliseconds())
        try write(header.bytes, at: 0)
    }

    var entryCount: Int { Int(footer.entryCount) }

    /// Adds an entry, which must come after all before it.
    func add(_ entry: Entry, from source: VersionTables) throws(StoreError) {
        var own = entry
        translation.translate(&own, from: source, to: &tables)
        if blockOffsets.isEmpty {
            blockFirst = (own.dataset, own.syncCount)
            blockFirstKey.removeAll(keepingCapacity: true)
            unsafe blockFirstKey.append(contentsOf: own.key.buffer)
        }
        if own.dataset != 0 {
            changes.append(
                ChangePlace(
                    dataset: own.dataset, syncCount: own.syncCount,
                    block: UInt32(footer.dataBlockCount), slot: UInt32(blockOffsets.count)))
        }
        blockOffsets.append(UInt32(block.count))
        DataBlock.append(own, to: &block)
        hashes.append(KeyFilter.hash(own.key, in: own.dataset))
        datasets.count(own)
        footer.entryCount += 1
        footer.tombstoneCount += own.kind == .delete ? 1 : 0
        if block.count >= Self.dataBlockBytes {
            try endBlock()
        }
    }

    /// Notes that tombstones of a dataset were dropped from what is written here.
    func noteCollected(_ dataset: DatasetID, through syncCount: UInt64) {
        datasets.noteCollected(dataset, through: syncCount)
    }

    /// Writes the indexes and makes the file durable. Returns its size.
    func finish() throws(StoreError) -> UInt64 {
        if !blockOffsets.isEmpty { try endBlock() }
        let changeDirectory = try writeChanges()
        footer.filter = try writeBlock(KeyFilter.build(hashes), .filter, compressing: false)
        footer.tables = try writeBlock(VersionTables(tables).encoded(), .tables)
        DataBlock.finish(&index, offsets: indexOffsets)
        footer.dataIndex = try writeBlock(index.bytes, .dataIndex)
        footer.changeIndex = try writeBlock(changeDirectory, .changeIndex)
        footer.datasets = try writeBlock(datasets.encoded(), .datasets)
        try write(footer.bytes, at: offset)
        try file.sync()
        return offset + UInt64(SegmentFooter.byteCount)
    }

    private func endBlock() throws(StoreError) {
        DataBlock.finish(&block, offsets: blockOffsets)
        footer.rawBytes += UInt64(block.count)
        let handle = try writeBlock(block.bytes, .data)
        footer.storedBytes += handle.endOffset - handle.offset
        footer.dataBlockCount += 1
        addToIndex(handle)
        block.removeAll()
        blockOffsets.removeAll(keepingCapacity: true)
    }

    /// The index is a block of entries like any other: the first position of each data block,
    /// with the handle as its value.
    private func addToIndex(_ handle: BlockHandle) {
        handleValue.removeAll()
        handleValue.append(fixed64: handle.offset)
        handleValue.append(fixed32: handle.storedCount)
        handleValue.append(fixed32: handle.rawCount)
        indexOffsets.append(UInt32(index.count))
        let first = blockFirst
        unsafe blockFirstKey.withUnsafeBytes { key in
            unsafe handleValue.bytes.withUnsafeBytes { value in
                DataBlock.append(
                    Entry(
                        dataset: first.dataset, kind: .put, key: unsafe ByteView(key),
                        value: unsafe ByteView(value), syncCount: first.syncCount, sequence: 0,
                        replica: 0, vector: 0, author: 0, counter: 0, time: 0),
                    to: &index)
            }
        }
    }

    private func writeChanges() throws(StoreError) -> [UInt8] {
        changes.sort()
        var directory = ByteWriter()
        var start = 0
        while start < changes.count {
            let end = min(start + Self.changesPerBlock, changes.count)
            let handle = try writeBlock(ChangePlace.encode(changes[start..<end]), .changes)
            directory.append(fixed32: changes[start].dataset)
            directory.append(fixed64: changes[start].syncCount)
            directory.append(fixed64: handle.offset)
            directory.append(fixed32: handle.storedCount)
            directory.append(fixed32: handle.rawCount)
            footer.changeBlockCount += 1
            start = end
        }
        directory.append(fixed32: UInt32(footer.changeBlockCount))
        return directory.bytes
    }

    private func writeBlock(
        _ raw: [UInt8], _ kind: BlockHeader.Kind, compressing: Bool = true
    ) throws(StoreError) -> BlockHandle {
        let headerCount = BlockHeader.byteCount
        if assembly.count < headerCount + raw.count {
            assembly = [UInt8](repeating: 0, count: headerCount + raw.count)
        }
        let isCompressing = compressing && compression == .lz4
        let number = number
        let storedCount = unsafe assembly.withUnsafeMutableBytes { assembly in
            let target = unsafe UnsafeMutableRawBufferPointer(rebasing: assembly[headerCount...])
            let storedCount = unsafe raw.withUnsafeBytes { raw in
                if isCompressing, let count = unsafe LZ4Block.compress(raw, into: target) {
                    return count
                }
                unsafe target.copyMemory(from: raw)
                return raw.count
            }
            let header = BlockHeader(
                storedCount: storedCount, mark: UInt32(raw.count), segment: number, kind: kind)
            unsafe header.seal(at: assembly.baseAddress!)
            return storedCount
        }
        let handle = BlockHandle(
            offset: offset, storedCount: UInt32(storedCount), rawCount: UInt32(raw.count))
        try write(assembly, count: headerCount + storedCount, at: offset)
        offset = handle.endOffset
        return handle
    }

    /// Writes the bytes, or only the first of them.
    private func write(
        _ bytes: [UInt8], count: Int? = nil, at offset: UInt64
    ) throws(StoreError) {
        try bytes.withBytes { (view) throws(StoreError) in
            try unsafe file.write(
                UnsafeRawBufferPointer(rebasing: view.buffer[..<(count ?? bytes.count)]),
                at: offset)
        }
    }
}

/// Gives the numbers of one segment's tables for those of others, remembering the answers.
private struct TableTranslation {
    private struct Numbers {
        let source: VersionTables
        var replicas: [UInt32?] = []
        var vectors: [UInt32?] = []
        var authors: [UInt32?] = []
    }

    private var sources: [Numbers] = []
    /// Of the source asked about last, which is most often the next one, too.
    private var last = 0

    /// Replaces the numbers in an entry of the source by those of the own tables.
    mutating func translate(
        _ entry: inout Entry, from source: VersionTables, to own: inout VersionTables.Content
    ) {
        find(source)
        entry.replica = Self.number(entry.replica, &sources[last].replicas) {
            let replica = source.withContent { $0.replicas[Int(entry.replica)] }
            return own.number(of: replica).0
        }
        entry.vector = Self.number(entry.vector, &sources[last].vectors) {
            let vector = source.withContent { $0.vectors[Int(entry.vector)] }
            return own.number(of: vector).0
        }
        entry.author = Self.number(entry.author, &sources[last].authors) {
            let author = source.withContent { $0.authors[Int(entry.author)] }
            return own.number(of: author).0
        }
    }

    private mutating func find(_ source: VersionTables) {
        if last < sources.count, sources[last].source === source { return }
        if let known = sources.firstIndex(where: { $0.source === source }) {
            last = known
        } else {
            sources.append(Numbers(source: source))
            last = sources.count - 1
        }
    }

    private static func number(
        _ number: UInt32, _ known: inout [UInt32?], _ make: () -> UInt32
    ) -> UInt32 {
        let index = Int(number)
        if index < known.count, let answer = known[index] { return answer }
        while known.count <= index {
            known.append(nil)
        }
        let answer = make()
        known[index] = answer
        return answer
    }
}
