// Making a segment of the data blocks of another store: what replicas send to one that has nothing.
//
// The stored bytes of a block stay as they are, compressed or not; only the header in front of them
// is another, since it names the segment. All that is around the blocks (hash index, change index,
// directory, tables) is made anew out of what their entries say.
//
// Invariants:
// - Of a block nothing is used before its checksum was compared, and nothing of it comes into a
//   segment before each of its entries was checked: of the dataset, in order, within all limits.
// - An entry names its origin by number, so the segment has the origins of the one that it comes
//   from, each under the number that it has there.

/// What is known of the entries of a segment that is made of blocks of another store.
struct AdoptedEntries {
    /// Of the first entry, and whether it says that the one before it has the same key.
    private(set) var first: (key: [UInt8], syncCount: UInt64, isSuperseded: Bool)?
    private(set) var lastKey: [UInt8] = []
    private(set) var lastSyncCount: UInt64 = 0
    private(set) var syncCounts: ClosedRange<UInt64> = UInt64.max...UInt64.max
    private(set) var entryCount: UInt64 = 0
    /// Entries that are the newest of their key in this segment.
    private(set) var keyCount = 0
    private(set) var timeMax: UInt64 = 0
    /// In milliseconds since 1970; `.max` if no record expires.
    private(set) var expiresFrom = UInt64.max
    let dataset: DatasetID

    init(dataset: DatasetID) {
        self.dataset = dataset
    }

    fileprivate mutating func note(_ entry: Entry, _ stamp: Stamp) {
        if first == nil {
            first = (entry.key.array, stamp.syncCount, entry.isSuperseded)
            syncCounts = stamp.syncCount...stamp.syncCount
        } else if !syncCounts.contains(stamp.syncCount) {
            syncCounts =
                min(
                    syncCounts.lowerBound, stamp.syncCount)...max(
                    syncCounts.upperBound, stamp.syncCount)
        }
        entryCount += 1
        keyCount += entry.isSuperseded ? 0 : 1
        timeMax = max(timeMax, stamp.time)
        if entry.kind == .put, stamp.expiresAt > 0 {
            expiresFrom = min(expiresFrom, stamp.expiresAt)
        }
    }

    fileprivate mutating func noteLast(_ entry: Entry) {
        lastKey.removeAll(keepingCapacity: true)
        unsafe lastKey.append(contentsOf: entry.key.buffer)
        lastSyncCount = entry.syncCount
    }

    /// Whether a segment of these entries may stand right before one of the others.
    func precedes(_ next: AdoptedEntries) -> Bool {
        guard let following = next.first else { return true }
        if lastKey == following.key {
            return lastSyncCount > following.syncCount && following.isSuperseded
        }
        return lastKey.lexicographicallyPrecedes(following.key) && !following.isSuperseded
    }

    /// The position of the last entry; of none it is all zeros.
    func withLastPosition<Result>(_ body: (EntryPosition) -> Result) -> Result {
        unsafe lastKey.withUnsafeBytes { key in
            body(
                EntryPosition(
                    dataset: entryCount > 0 ? dataset : 0, key: unsafe ByteView(key),
                    syncCount: lastSyncCount))
        }
    }
}

/// What the entries of blocks that come from another store may say.
struct AdoptionBounds {
    let dataset: DatasetID
    /// The lower 32 bits of the number of the segment that the blocks lie in there.
    let segment: UInt32
    let syncCountMax: UInt64
    let timeMax: UInt64
}

extension SegmentWriter {
    /// A segment that is to hold blocks of another store, and nothing else.
    ///
    /// - Parameter tables: of the segment that they come from.
    convenience init(
        number: UInt64, path: String, identity: StoreIdentity, options: StoreOptions,
        storage: any Storage,
        adopting dataset: DatasetID, with tables: VersionTables.Content
    ) throws(StoreError) {
        try self.init(
            number: number, path: path, identity: identity, options: options, storage: storage,
            tables: tables)
        unsafe adopted = AdoptedEntries(dataset: dataset)
    }

    /// Adds a block, header and stored bytes, that must come after all before it. O(bytes).
    ///
    /// - Parameter buffer: for what is compressed.
    /// - Throws: `invalidArgument` if the block is not what it must be, after which the segment is
    ///   good for nothing; what writing throws.
    func adopt(
        _ block: ByteView, within bounds: AdoptionBounds, _ buffer: BlockBuffer
    ) throws(StoreError) {
        let header: BlockHeader
        let stored: UnsafeRawBufferPointer
        let raw: UnsafeRawBufferPointer
        let first: Entry
        do throws(Malformed) {
            header = try checkedHeader(of: block, within: bounds)
            unsafe stored = UnsafeRawBufferPointer(
                start: block.base + BlockHeader.byteCount, count: Int(header.storedCount))
            unsafe raw = try Self.decompressed(stored, rawCount: Int(header.mark), buffer)
            unsafe first = try addEntries(of: raw, within: bounds)
        } catch {
            throw .refusedBlock(error.what)
        }
        let handle = unsafe try output.appendStored(stored, rawCount: raw.count)
        unsafe footer.rawBytes += UInt64(raw.count)
        unsafe footer.storedBytes += handle.endOffset - handle.offset
        unsafe directory.add(
            first.position, offset: handle.offset,
            isCompressed: handle.storedCount < handle.rawCount)
    }

    /// The header, once all of it and the checksum are found right.
    private func checkedHeader(
        of block: ByteView, within bounds: AdoptionBounds
    ) throws(Malformed) -> BlockHeader {
        guard block.count > BlockHeader.byteCount else {
            throw Malformed("a block is cut short")
        }
        let header = unsafe BlockHeader(at: block.base)
        let storedCount = block.count - BlockHeader.byteCount
        let checksum = unsafe BlockHeader.checksum(
            at: block.base, storedCount: storedCount, nil)
        guard Int(header.storedCount) == storedCount,
            checksum == header.checksum || isTrusting
        else { throw Malformed("the checksum of a block does not match") }
        let handle = BlockHandle(
            offset: 0, storedCount: header.storedCount, rawCount: header.mark)
        guard header.kind == BlockHeader.Kind.data.rawValue, header.epoch == 0,
            header.segment == bounds.segment, handle.isPlausible,
            Int(header.mark) <= Self.rawCountMax
        else { throw Malformed("the header is of another block") }
        return header
    }

    /// Of a block with one entry, as large as it can be.
    private static let rawCountMax =
        DataBlock.bytesMax
        + EntryLayout.byteCountMax(key: Limits.keyBytesMax, value: Limits.valueBytesMax)

    private static func decompressed(
        _ stored: UnsafeRawBufferPointer, rawCount: Int, _ buffer: BlockBuffer
    ) throws(Malformed) -> UnsafeRawBufferPointer {
        guard stored.count < rawCount else { return unsafe stored }
        let target = unsafe buffer.room(rawCount)
        guard unsafe LZ4Block.decompress(stored, into: target) else {
            throw Malformed("a block does not decompress to its length")
        }
        return UnsafeRawBufferPointer(target)
    }

    /// Checks the entries of a block and takes them into the indexes. Returns the first.
    private func addEntries(
        of raw: UnsafeRawBufferPointer, within bounds: AdoptionBounds
    ) throws(Malformed) -> Entry {
        guard let base = raw.baseAddress,
            let view = unsafe DataBlockView(base: base, rawCount: raw.count),
            raw.count <= DataBlock.bytesMax || view.count == 1
        else { throw Malformed("a block has an impossible number of entries") }
        try view.check(originCount: unsafe tables.origins.count)
        guard let first = view.entry(at: 0), let last = view.entry(at: view.count - 1),
            unsafe directory.blockCount < EntryPlace.blockCountMax - 1
        else { throw Malformed("a segment has too many blocks") }
        try checkOrder(of: first)
        for slot in 0..<view.count {
            guard let entry = view.entry(at: slot) else {
                throw Malformed("an entry is cut short")
            }
            try add(entry, at: view.offset(of: slot), within: bounds)
        }
        unsafe adopted?.noteLast(last)
        return first
    }

    /// Within a block the order was checked; here between it and the one before.
    private func checkOrder(of first: Entry) throws(Malformed) {
        guard let adopted = unsafe adopted, adopted.entryCount > 0 else { return }
        let order = adopted.withLastPosition { $0.compare(first.position) }
        let isSameKey = unsafe adopted.lastKey.withUnsafeBytes {
            unsafe ByteView($0).equals(first.key)
        }
        guard order < 0, isSameKey == first.isSuperseded else {
            throw Malformed("blocks are out of order")
        }
    }

    private func add(
        _ entry: Entry, at offset: Int, within bounds: AdoptionBounds
    ) throws(Malformed) {
        let stamp = entry.stamp
        guard entry.dataset == bounds.dataset, !entry.isApart, !entry.key.isEmpty else {
            throw Malformed("an entry is of another dataset, has no key, or has its value apart")
        }
        guard stamp.counter > 0, stamp.counter <= Limits.countMax, stamp.syncCount > 0,
            stamp.syncCount <= bounds.syncCountMax, stamp.time <= bounds.timeMax
        else { throw Malformed("an entry has an impossible count or a time too far ahead") }
        let place = unsafe EntryPlace(block: directory.blockCount, offset: offset)
        if !entry.isSuperseded {
            unsafe hashes.append(identity.keyHash.of(entry.key, in: entry.dataset))
            unsafe places.append(place.rawValue)
        }
        unsafe changes.add(
            Change(dataset: entry.dataset, syncCount: stamp.syncCount, place: place))
        unsafe datasets.count(
            entry.dataset, isTombstone: entry.kind == .delete, key: entry.key.count,
            value: entry.valueCount)
        unsafe footer.entryCount += 1
        unsafe footer.tombstoneCount += entry.kind == .delete ? 1 : 0
        unsafe adopted?.note(entry, stamp)
    }
}

extension StoreError {
    /// Of what a peer gave out as it lies there. Nothing of it was taken.
    static func refusedBlock(_ what: String) -> StoreError {
        StoreError(
            .invalidArgument,
            "a peer's sealed records cannot be taken over: \(what); exchange them one by one, and "
                + "verify the peer's store")
    }
}
