/// Writes one sealed segment: entries come in their order, blocks go out as they fill, and the
/// indexes follow. Takes up to 28 bytes of memory for each entry until it is finished
/// (``bytesEachEntry``).
///
/// A crash before `finish` returned leaves a file that no manifest names; opening removes it.
final class SegmentWriter {
    /// Of memory while a segment is made: 12 for the hash index and 8 for the change index as the
    /// entries come; at the end, before the first are given back, 8 for the buckets, and then as
    /// many again for sorting the changes.
    static let bytesEachEntry = 28

    let number: UInt64
    let output: SegmentOutput
    let identity: StoreIdentity
    private let storage: any Storage
    /// How long `finish` waited for the disk.
    private(set) var syncNanoseconds: UInt64 = 0
    private let entriesMax: UInt64
    /// A mistake on purpose: see ``PlantedBugs/adoptUnverified``.
    let isTrusting: Bool
    private let values: SegmentValueWriter
    // One thread writes a segment: to check at each entry that nobody else does would take as long
    // as the work.
    @exclusivity(unchecked) var footer: SegmentFooter
    @exclusivity(unchecked) private(set) var tables: VersionTables.Content
    @exclusivity(unchecked) private var block = DataBlockBuilder()
    @exclusivity(unchecked) var directory = SegmentDirectoryBuilder()
    /// The hash of each key and the place of its newest entry.
    @exclusivity(unchecked) var hashes: PageArray<UInt64>
    @exclusivity(unchecked) var places: PageArray<UInt32>
    @exclusivity(unchecked) var changes: ChangeIndexBuilder
    @exclusivity(unchecked) var datasets = SegmentDatasets()
    /// Of which values it names; known once it is finished.
    @exclusivity(unchecked) private(set) var valueRows = SegmentValueRows()
    /// Of a segment that is made of blocks of another store, as ``adopt(_:of:)`` takes them.
    @exclusivity(unchecked) var adopted: AdoptedEntries?
    private var losses = SegmentLosses()
    @exclusivity(unchecked) private var translation = OriginTranslation()

    /// - Parameter tables: origins that have their numbers already.
    init(
        number: UInt64, path: String, identity: StoreIdentity, options: StoreOptions,
        storage: any Storage, movingValuesOf sparse: Set<UInt64> = [],
        tables: VersionTables.Content = VersionTables.Content()
    ) throws(StoreError) {
        self.number = number
        self.identity = identity
        self.storage = storage
        unsafe self.tables = tables
        values = SegmentValueWriter(
            number: number, segmentPath: path, identity: identity, options: options,
            storage: storage,
            moving: sparse)
        entriesMax = UInt64(options.segmentEntriesMax)
        isTrusting = options.make(.adoptUnverified)
        unsafe hashes = PageArray(capacity: options.segmentEntriesMax)
        unsafe places = PageArray(capacity: options.segmentEntriesMax)
        unsafe changes = ChangeIndexBuilder(countMax: options.segmentEntriesMax)
        unsafe footer = SegmentFooter(segment: number)
        let header = FileHeader(
            kind: .sealed, segment: number, identity: identity,
            madeAt: storage.wallClockMilliseconds())
        output = SegmentOutput(
            try storage.openFile(path, .create), segment: number, identity: identity,
            isCompressing: options.compression == .lz4)
        try output.append(header.bytes)
    }

    var entryCount: Int { unsafe Int(footer.entryCount) }

    /// Bytes of the file so far, and of its value file.
    var byteCount: UInt64 { output.offset + values.byteCount }

    /// Whether the run should go on in another segment.
    var isFull: Bool {
        unsafe footer.entryCount >= entriesMax
            || footer.rawBytes >= Limits.segmentRawBytesMax
            || directory.blockCount >= EntryPlace.blockCountMax - 1 || values.isFull
    }

    /// Adds an entry, which must come after all before it.
    ///
    /// - Parameter isSuperseded: whether the entry before it is a newer version of the same key.
    func add(
        _ entry: Entry, isSuperseded: Bool, from source: VersionTables
    ) throws(StoreError) {
        var stamp = entry.stamp
        stamp.origin = unsafe translation.translate(stamp.origin, from: source, to: &tables)
        guard entry.isApart else {
            return try add(
                dataset: entry.dataset, kind: entry.kind, isSuperseded: isSuperseded,
                key: entry.key, value: entry.valueField, stamp: stamp)
        }
        if let value = try values.valueToMove(of: entry, from: source) {
            return try value.withBytes { (value) throws(StoreError) in
                try add(
                    dataset: entry.dataset, kind: entry.kind, isSuperseded: isSuperseded,
                    key: entry.key, value: value, stamp: stamp)
            }
        }
        try values.carry(try source.handle(of: entry), from: source)
        try append(
            dataset: entry.dataset, kind: entry.kind, isSuperseded: isSuperseded, isApart: true,
            key: entry.key, valueField: entry.valueField, valueCount: entry.valueCount,
            stamp: stamp)
    }

    /// Adds an entry with a version that comes from no tables, and its value wherever it lies.
    func add(
        _ entry: Entry, isSuperseded: Bool, version: Version, value: ByteView
    ) throws(StoreError) {
        let origin = unsafe tables.number(
            of: version.dot.replica, version.storedVector, version.author)
        try add(
            dataset: entry.dataset, kind: entry.kind, isSuperseded: isSuperseded, key: entry.key,
            value: value,
            stamp: Stamp(
                syncCount: entry.syncCount, origin: origin, counter: version.dot.counter,
                time: version.time.rawValue, expiresAt: entry.expiresAt))
    }

    /// Adds a record of the store's own.
    func add(storeRecord key: ByteView, value: ByteView, log: UInt64) throws(StoreError) {
        let origin = unsafe tables.number(of: ReplicaID(high: 0, low: 0), VersionVector(), "")
        try add(
            dataset: 0, kind: .put, isSuperseded: false, key: key, value: value,
            stamp: Stamp(syncCount: log, origin: origin, counter: log, time: 0))
    }

    private func add(
        dataset: DatasetID, kind: EntryKind, isSuperseded: Bool, key: ByteView, value: ByteView,
        stamp: Stamp
    ) throws(StoreError) {
        guard value.count >= values.bytesMin, dataset != 0 else {
            return try append(
                dataset: dataset, kind: kind, isSuperseded: isSuperseded, isApart: false,
                key: key, valueField: value, valueCount: value.count, stamp: stamp)
        }
        try values.add(value).encoded.withBytes { (handle) throws(StoreError) in
            try append(
                dataset: dataset, kind: kind, isSuperseded: isSuperseded, isApart: true,
                key: key, valueField: handle, valueCount: value.count, stamp: stamp)
        }
    }

    /// - Parameters:
    ///   - valueField: the value, or where it lies apart.
    ///   - valueCount: the length of the value, wherever it lies.
    private func append(
        dataset: DatasetID, kind: EntryKind, isSuperseded: Bool, isApart: Bool, key: ByteView,
        valueField: ByteView, valueCount: Int, stamp: Stamp
    ) throws(StoreError) {
        if unsafe !block.hasRoom(key: key.count, value: valueField.count) { try endBlock() }
        let offset = unsafe block.append(
            dataset: dataset, kind: kind, isSuperseded: isSuperseded, isApart: isApart, key: key,
            valueField: valueField, stamp: stamp)
        let place = unsafe EntryPlace(block: directory.blockCount, offset: offset)
        if !isSuperseded {
            unsafe hashes.append(identity.keyHash.of(key, in: dataset))
            unsafe places.append(place.rawValue)
        }
        if dataset != 0 {
            unsafe changes.add(Change(dataset: dataset, syncCount: stamp.syncCount, place: place))
        }
        unsafe datasets.count(
            dataset, isTombstone: kind == .delete, key: key.count, value: valueCount)
        unsafe footer.entryCount += 1
        unsafe footer.tombstoneCount += kind == .delete ? 1 : 0
    }

    /// Notes what was dropped from that of which this segment is made.
    func note(_ lost: SegmentLosses) {
        losses.formUnion(lost)
    }

    private func endBlock() throws(StoreError) {
        let bytes = unsafe block.finish()
        unsafe footer.rawBytes += UInt64(bytes.count)
        let handle = unsafe try output.appendBlock(bytes, .data)
        unsafe footer.storedBytes += handle.endOffset - handle.offset
        unsafe directory.add(
            block.firstPosition, offset: handle.offset,
            isCompressed: handle.storedCount < handle.rawCount)
        unsafe block.begin()
    }

    /// Writes the indexes and makes the file durable, and its value file before it, so that no
    /// segment ever names values that are not there. Returns its size.
    func finish() throws(StoreError) -> UInt64 {
        let valueRows = try values.finish()
        unsafe self.valueRows = valueRows
        if unsafe !block.isEmpty { try endBlock() }
        unsafe footer.dataBlockCount = UInt64(directory.blockCount)
        unsafe footer.dataEnd = output.offset
        let buckets = unsafe HashIndex.build(hashes: hashes, places: places)
        // Not needed any more, and the changes are still to be sorted.
        unsafe (hashes, places) = (PageArray(capacity: 0), PageArray(capacity: 0))
        let changeRows = try writeChanges()
        try writeHashIndex(buckets)
        unsafe footer.directory = try output.appendBlock(
            finishedDirectory(), .directory)
        unsafe footer.changeDirectory = try output.appendBlock(changeRows, .changeDirectory)
        unsafe footer.tables = try output.appendBlock(
            VersionTables(tables).encoded(), .tables, mayCompress: true)
        unsafe footer.datasets = try output.appendBlock(
            datasets.encoded(), .datasets, mayCompress: true)
        unsafe footer.collected = try output.appendBlock(
            losses.encoded(), .collected, mayCompress: true)
        unsafe footer.valueFiles = try output.appendBlock(
            valueRows.encoded(), .valueFiles, mayCompress: true)
        let start = storage.monotonicNanoseconds()
        let size = unsafe try output.finish(footer.bytes(identity))
        let end = storage.monotonicNanoseconds()
        syncNanoseconds = end - min(start, end)
        return size
    }

    private func finishedDirectory() -> [UInt8] {
        guard let adopted = unsafe adopted else {
            return unsafe directory.finish(last: block.lastPosition, dataEnd: footer.dataEnd)
        }
        return adopted.withLastPosition { last in
            unsafe directory.finish(last: last, dataEnd: footer.dataEnd)
        }
    }

    private func writeChanges() throws(StoreError) -> [UInt8] {
        unsafe changes.finish()
        var rows = ByteWriter()
        for block in unsafe changes.blocks {
            let handle = unsafe try output.appendBlock(
                UnsafeRawBufferPointer(rebasing: changes.bytes.bytes[block.range]), .changes)
            rows.append(fixed32: block.first.dataset)
            rows.append(fixed32: UInt32(handle.offset >> 3))
            rows.append(fixed64: block.first.syncCount)
        }
        unsafe footer.changeBlockCount = UInt64(changes.blocks.count)
        rows.append(fixed32: 0)
        rows.append(fixed32: UInt32(output.offset >> 3))
        return rows.bytes
    }

    private func writeHashIndex(_ buckets: PageArray<UInt8>) throws(StoreError) {
        try output.align(to: HashIndex.bucketByteCount)
        unsafe footer.indexOffset = output.offset
        unsafe footer.bucketCount = UInt64(buckets.count / HashIndex.bucketByteCount)
        try unsafe output.append(buckets.bytes)
        var checksums = ByteWriter()
        for checksum in HashIndex.checksums(of: buckets) {
            checksums.append(fixed64: checksum)
        }
        unsafe footer.indexChecksums = try output.appendBlock(checksums.bytes, .indexChecksums)
    }
}

/// Puts entries together to a block of kind `data`.
@safe
struct DataBlockBuilder: ~Copyable {
    private var memory = unsafe Pages.allocate(byteCount: 2 * DataBlock.bytesMax)
    private var used = DataBlock.entriesOffset
    private var offsets: [UInt16] = []
    private var timeBase: UInt64 = 0
    private var last: (dataset: DatasetID, keyStart: Int, keyCount: Int, syncCount: UInt64) = (
        0, 0, 0, 0
    )
    private var firstKeyStart = 0
    private var first: (dataset: DatasetID, keyCount: Int, syncCount: UInt64) = (0, 0, 0)

    init() {}

    deinit {
        unsafe Pages.deallocate(memory)
    }

    var isEmpty: Bool { offsets.isEmpty }

    /// Whether an entry fits, so that the block stays within its bound. A block without entries
    /// has room for any.
    func hasRoom(key: Int, value: Int) -> Bool {
        guard !isEmpty else { return true }
        let bytes = EntryLayout.byteCountMax(key: key, value: value) + 2 * (offsets.count + 1) + 2
        return used < EntryPlace.offsetEnd && used + bytes <= DataBlock.bytesMax
    }

    /// Returns the entry's offset in the block.
    mutating func append(
        dataset: DatasetID, kind: EntryKind, isSuperseded: Bool, isApart: Bool, key: ByteView,
        valueField: ByteView, stamp: Stamp
    ) -> Int {
        let needed = used + EntryLayout.byteCountMax(key: key.count, value: valueField.count) + 4
        if unsafe memory.count < needed { grow(to: needed) }
        if isEmpty {
            timeBase = stamp.time >> 16
            unsafe memory.storeBytes(of: timeBase.littleEndian, as: UInt64.self)
        }
        let offset = used
        let start = unsafe memory.baseAddress! + used
        let end = unsafe EntryLayout.write(
            to: start, dataset: dataset, kind: kind, isSuperseded: isSuperseded,
            isApart: isApart, key: key, value: valueField, stamp: stamp, timeBase: timeBase)
        unsafe used += end - start
        // Its key stands where the head ends, which the three varints tell.
        let keyStart =
            offset
            + EntryLayout.headByteCount(
                dataset: dataset, kind: kind, isApart: isApart, key: key.count,
                value: valueField.count, hasExpiry: stamp.expiresAt > 0)
        if isEmpty {
            first = (dataset, key.count, stamp.syncCount)
            firstKeyStart = keyStart
        }
        last = (dataset, keyStart, key.count, stamp.syncCount)
        offsets.append(UInt16(offset))
        return offset
    }

    private mutating func grow(to byteCount: Int) {
        let wider = unsafe Pages.allocate(byteCount: byteCount)
        unsafe wider.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[..<used]))
        unsafe Pages.deallocate(memory)
        unsafe memory = wider
    }

    /// Adds the offsets. The bytes are good until `begin`.
    mutating func finish() -> UnsafeRawBufferPointer {
        let end = used + 2 * offsets.count + 2
        if unsafe memory.count < end { grow(to: end) }
        var place = used
        for offset in offsets {
            unsafe memory.storeBytes(
                of: offset.littleEndian, toByteOffset: place, as: UInt16.self)
            place += 2
        }
        unsafe memory.storeBytes(
            of: UInt16(offsets.count).littleEndian, toByteOffset: place, as: UInt16.self)
        return unsafe UnsafeRawBufferPointer(rebasing: memory[..<end])
    }

    /// Of the block's first entry, until `begin`.
    var firstPosition: EntryPosition {
        unsafe EntryPosition(
            dataset: first.dataset,
            key: ByteView(base: memory.baseAddress! + firstKeyStart, count: first.keyCount),
            syncCount: first.syncCount)
    }

    /// Of the last entry there was, in this block or one before. Good until the next call.
    var lastPosition: EntryPosition {
        // The bytes of a block stay in memory after it was finished, until the next entry comes.
        unsafe EntryPosition(
            dataset: last.dataset,
            key: ByteView(base: memory.baseAddress! + last.keyStart, count: last.keyCount),
            syncCount: last.syncCount)
    }

    /// Begins the next block.
    mutating func begin() {
        used = DataBlock.entriesOffset
        offsets.removeAll(keepingCapacity: true)
    }
}

/// Gives the numbers of one segment's origins for those of others, remembering the answers.
private struct OriginTranslation {
    private struct Numbers {
        let source: VersionTables
        var origins: [UInt32?] = []
    }

    private var sources: [Numbers] = []
    /// Of the source asked about last, which is most often the next one, too.
    private var last = 0

    mutating func translate(
        _ origin: UInt32, from source: VersionTables, to own: inout VersionTables.Content
    ) -> UInt32 {
        if last >= sources.count || sources[last].source !== source { find(source) }
        let index = Int(origin)
        if index < sources[last].origins.count, let known = sources[last].origins[index] {
            return known
        }
        while sources[last].origins.count <= index {
            sources[last].origins.append(nil)
        }
        let (replica, vector, author) = source.withContent { content in
            let origin = content.origins[index]
            return (
                content.replicas[Int(origin.replica)], content.vectors[Int(origin.vector)],
                content.authors[Int(origin.author)]
            )
        }
        let number = own.number(of: replica, vector, author)
        sources[last].origins[index] = number
        return number
    }

    private mutating func find(_ source: VersionTables) {
        if let known = sources.firstIndex(where: { $0.source === source }) {
            last = known
        } else {
            sources.append(Numbers(source: source))
            last = sources.count - 1
        }
    }
}
