internal import Synchronization

/// An immutable file of sorted entries, open for reading.
///
/// Opening reads the footer alone; indexes, filter and tables are read and checked when they are
/// first needed, and then held. The file stays open until the last view or snapshot that can see
/// it lets go, also when compaction has long removed its name.
final class SealedSegment: Sendable {
    let number: UInt64
    let path: String
    let footer: SegmentFooter
    let fileSize: UInt64
    private let file: any StorageFile
    private let cache: BlockCache
    private let parts = Mutex<Parts?>(nil)

    /// What is read once and held. A class, so that a reader takes one reference to all of it.
    final class Parts: Sendable {
        let filter: KeyFilter
        let tables: VersionTables
        let index: DataBlockView
        let handles: [BlockHandle]
        let changes: [ChangeBlock]
        let datasets: SegmentDatasets

        init(
            filter: KeyFilter, tables: VersionTables, index: DataBlockView,
            handles: [BlockHandle], changes: [ChangeBlock], datasets: SegmentDatasets
        ) {
            self.filter = filter
            self.tables = tables
            self.index = index
            self.handles = handles
            self.changes = changes
            self.datasets = datasets
        }
    }

    /// One block of the change index, and the first change in it.
    struct ChangeBlock: Sendable {
        let dataset: DatasetID
        let syncCount: UInt64
        let handle: BlockHandle
    }

    init(
        number: UInt64, path: String, tag: UInt64, storage: any Storage, cache: BlockCache
    ) throws(StoreError) {
        self.number = number
        self.path = path
        self.cache = cache
        let file = try storage.openFile(path, .read)
        self.file = file
        fileSize = try file.size()
        guard fileSize >= UInt64(FileHeader.byteCount + SegmentFooter.byteCount) else {
            throw Malformed("the segment is cut short").error(in: path, at: fileSize)
        }
        let header = unsafe try Block(count: FileHeader.byteCount) { (memory) throws(StoreError) in
            try unsafe file.read(into: memory, at: 0)
        }
        _ = try FileHeader(
            header.bytes, expecting: .sealed, segment: number, tag: tag, path: path)
        let end = fileSize - UInt64(SegmentFooter.byteCount)
        let tail = unsafe try Block(count: SegmentFooter.byteCount) { (memory) throws(StoreError) in
            try unsafe file.read(into: memory, at: end)
        }
        do {
            footer = try SegmentFooter(tail.bytes, segment: number, fileSize: fileSize)
        } catch {
            throw error.error(in: path, at: end)
        }
    }

    // MARK: - Parts

    func loadedParts() throws(StoreError) -> Parts {
        if let known = parts.withLock({ $0 }) { return known }
        // Read outside the lock: two readers may do it at once, and one result is dropped.
        let loaded = try loadParts()
        parts.withLock { $0 = $0 ?? loaded }
        return loaded
    }

    private func loadParts() throws(StoreError) -> Parts {
        let tables = try decode(footer.tables, .tables) { (bytes) throws(Malformed) in
            try VersionTables(decoding: bytes.bytes)
        }
        let filter = try decode(footer.filter, .filter) { (block) throws(Malformed) in
            try KeyFilter(block)
        }
        let placeholder = VersionTables.placeholder
        let (index, handles) = try decode(footer.dataIndex, .dataIndex) {
            (block) throws(Malformed) in
            let index = try DataBlockView(checking: block, tables: placeholder, isIndex: true)
            return (index, try self.dataHandles(in: index))
        }
        let changes = try decode(footer.changeIndex, .changeIndex) { (block) throws(Malformed) in
            try self.changeBlocks(in: block)
        }
        let datasets = try decode(footer.datasets, .datasets) { (block) throws(Malformed) in
            try SegmentDatasets(decoding: block.bytes)
        }
        return Parts(
            filter: filter, tables: tables, index: index, handles: handles, changes: changes,
            datasets: datasets)
    }

    /// A block by its handle, checked but not taken apart.
    func loadBlock(
        _ handle: BlockHandle, _ kind: BlockHeader.Kind
    ) throws(StoreError) -> Block {
        try file.readBlock(handle, kind: kind, segment: number)
    }

    private func decode<Result>(
        _ handle: BlockHandle, _ kind: BlockHeader.Kind,
        _ body: (Block) throws(Malformed) -> Result
    ) throws(StoreError) -> Result {
        let block = try loadBlock(handle, kind)
        do {
            return try body(block)
        } catch {
            throw error.error(in: path, at: handle.offset)
        }
    }

    private func dataHandles(in index: DataBlockView) throws(Malformed) -> [BlockHandle] {
        var handles: [BlockHandle] = []
        handles.reserveCapacity(index.count)
        for position in 0..<index.count {
            handles.append(try BlockHandle(decoding: index.entry(at: position).value))
            try handles[position].check(end: fileSize - UInt64(SegmentFooter.byteCount))
        }
        guard UInt64(handles.count) == footer.dataBlockCount else {
            throw Malformed("the index and the footer disagree about the number of blocks")
        }
        return handles
    }

    private func changeBlocks(in block: Block) throws(Malformed) -> [ChangeBlock] {
        var reader = ByteReader(block.bytes)
        var blocks: [ChangeBlock] = []
        while reader.remaining > 4 {
            let dataset = try reader.fixed32()
            let syncCount = try reader.fixed64()
            let handle = BlockHandle(
                offset: try reader.fixed64(), storedCount: try reader.fixed32(),
                rawCount: try reader.fixed32())
            try handle.check(end: fileSize - UInt64(SegmentFooter.byteCount))
            blocks.append(ChangeBlock(dataset: dataset, syncCount: syncCount, handle: handle))
        }
        guard try reader.fixed32() == UInt32(blocks.count),
            UInt64(blocks.count) == footer.changeBlockCount
        else { throw Malformed("the change index has the wrong length") }
        return blocks
    }

    // MARK: - Blocks

    /// A data block by its number, from the cache or the file.
    func dataBlock(_ block: Int, _ parts: Parts) throws(StoreError) -> DataBlockView {
        if let known = cache.view(segment: number, block: block) { return known }
        let view = try uncachedDataBlock(block, parts)
        cache.insert(view, segment: number, block: block)
        return view
    }

    /// The same past the cache, for readers that pass once over everything.
    func uncachedDataBlock(_ block: Int, _ parts: Parts) throws(StoreError) -> DataBlockView {
        try decode(parts.handles[block], .data) { (bytes) throws(Malformed) in
            try DataBlockView(checking: bytes, tables: parts.tables)
        }
    }

    /// The changes in one block of the change index, each checked to name an entry.
    func changeBlock(_ block: ChangeBlock) throws(StoreError) -> [ChangePlace] {
        let blockCount = footer.dataBlockCount
        return try decode(block.handle, .changes) { (bytes) throws(Malformed) in
            let places = try ChangePlace.decode(bytes.bytes)
            guard places.allSatisfy({ UInt64($0.block) < blockCount }) else {
                throw Malformed("a change names a block beyond the last")
            }
            return places
        }
    }

    /// The entry of a change, with the block that holds it.
    func entry(
        of place: ChangePlace, _ parts: Parts
    ) throws(StoreError) -> (Entry, DataBlockView) {
        let view = try dataBlock(Int(place.block), parts)
        let slot = Int(place.slot)
        guard slot < view.count, view.entry(at: slot).dataset == place.dataset,
            view.entry(at: slot).syncCount == place.syncCount
        else {
            throw Malformed("the change index names an entry that is not there")
                .error(in: path, at: parts.handles[Int(place.block)].offset)
        }
        return (view.entry(at: slot), view)
    }

    /// The newest version of a key in this segment, with the block that holds it.
    func newest(
        of key: ByteView, in dataset: DatasetID, hash: UInt64
    ) throws(StoreError) -> (Entry, DataBlockView)? {
        let parts = try loadedParts()
        guard parts.filter.mayContain(hash) else { return nil }
        let position = EntryPosition(before: key, in: dataset)
        var number = parts.blockIndex(of: position)
        while number < parts.handles.count {
            let view = try dataBlock(number, parts)
            let slot = view.lowerBound(position)
            if slot < view.count {
                let entry = view.entry(at: slot)
                let isFound = entry.dataset == dataset && entry.key.equals(key)
                return isFound ? (entry, view) : nil
            }
            number += 1
        }
        return nil
    }
}

extension SealedSegment.Parts {
    /// The block in which a search for the position must begin.
    func blockIndex(of position: EntryPosition) -> Int {
        let after = index.lowerBound(position)
        if after < index.count, index.entry(at: after).position.compare(position) == 0 {
            return after
        }
        return max(0, after - 1)
    }
}

extension BlockHandle {
    init(decoding bytes: ByteView) throws(Malformed) {
        var reader = ByteReader(bytes)
        offset = try reader.fixed64()
        storedCount = try reader.fixed32()
        rawCount = try reader.fixed32()
    }
}

extension VersionTables {
    /// Tables with one of each, for the entries of an index, which name no version.
    static var placeholder: VersionTables {
        var content = Content()
        _ = content.number(of: ReplicaID(high: 0, low: 0))
        _ = content.number(of: VersionVector())
        _ = content.number(of: "")
        return VersionTables(content)
    }
}
