/// Writes the items of one block straight into the mapped log: no buffer, no allocation. Or, a
/// block of one entry that is synced at once, into the log's scratch memory.
///
/// Whoever makes one has asked the log for room for all that will be written; each write is
/// checked against that bound all the same, since a store past the mapping would be silent.
@safe
struct LogBlockWriter: ByteSink {
    private let start: UnsafeMutableRawPointer
    private let countMax: Int
    private(set) var count = 0
    private let isScratch: Bool
    private let isStaging: Bool
    /// Where in the scratch memory the entry lies.
    private var entryOffset: Int?

    /// - Parameter isStaging: whether the entries come into the memtable by ``Memtable/settle()``.
    init(_ log: LogSegment, isStaging: Bool = false) {
        unsafe start = log.payloadStart
        countMax = log.writablePayload
        isScratch = false
        self.isStaging = isStaging
    }

    /// A writer of a block for ``LogSegment/writeScratch(payloadCount:)``, with at most one entry,
    /// which comes into the memtable by ``insertWritten(_:sequence:)``.
    init(scratchOf log: LogSegment) {
        unsafe start = log.scratchPayloadStart()
        countMax = min(log.writablePayload, LogSegment.scratchPayloadMax)
        isScratch = true
        isStaging = false
    }

    @inline(__always)
    private mutating func room(_ bytes: Int) -> UnsafeMutableRawPointer {
        precondition(bytes <= countMax - count, "a block outgrew the room reserved for it")
        defer { count += bytes }
        return unsafe start + count
    }

    @inline(__always)
    mutating func append(byte: UInt8) {
        unsafe room(1).storeBytes(of: byte, as: UInt8.self)
    }

    @inline(__always)
    mutating func append(fixed64 number: UInt64) {
        unsafe room(8).storeBytes(of: number.littleEndian, as: UInt64.self)
    }

    @inline(__always)
    mutating func append(varint number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            append(byte: UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(byte: UInt8(truncatingIfNeeded: rest))
    }

    mutating func append(_ view: ByteView) {
        unsafe UnsafeMutableRawBufferPointer(start: room(view.count), count: view.count)
            .copyMemory(from: view.buffer)
    }

    mutating func append(_ item: StateItem) {
        item.write(to: &self)
    }

    /// Writes an entry and puts it into the memtable of the log.
    @inline(__always)
    mutating func append(
        _ kind: EntryKind, dataset: DatasetID, key: ByteView, value: ByteView, stamp: Stamp,
        sequence: UInt64, into memtable: Memtable
    ) {
        let bytesMax = Self.byteCountMax(key: key.count, value: value.count)
        precondition(bytesMax <= countMax - count, "a block outgrew the room reserved for it")
        append(byte: LogItem.Code.entry.rawValue)
        let entryStart = unsafe start + count
        let timeBase = unsafe memtable.log.timeBase
        let end = unsafe EntryLayout.write(
            to: entryStart, dataset: dataset, kind: kind, isSuperseded: false, key: key,
            value: value, stamp: stamp,
            timeBase: UInt64(littleEndian: timeBase.loadUnaligned(as: UInt64.self)))
        if isScratch {
            // Not before it lies where the memtable would look for it.
            precondition(entryOffset == nil, "a second entry in a block for one")
            entryOffset = count
        } else if isStaging {
            // What is staged is looked at again when the caller's key may be gone.
            let headByteCount = EntryLayout.headByteCount(
                dataset: dataset, kind: kind, isApart: false, key: key.count,
                value: value.count, hasExpiry: stamp.expiresAt > 0)
            let written = unsafe ByteView(base: entryStart + headByteCount, count: key.count)
            unsafe memtable.stage(written, in: dataset, at: entryStart, sequence: sequence)
        } else {
            unsafe memtable.insert(key, in: dataset, at: entryStart, sequence: sequence)
        }
        unsafe count += end - entryStart
    }

    /// Puts the entry of a block that was written from scratch memory into the memtable.
    ///
    /// - Parameter payload: where the payload lies in the mapped log.
    func insertWritten(
        _ payload: UnsafeRawPointer, sequence: UInt64, into memtable: Memtable
    ) {
        guard let entryOffset else { return }
        let start = unsafe payload + entryOffset
        let entry = unsafe EntryLayout.entry(
            at: start, end: payload + count, timeBase: memtable.log.timeBase, sequence: sequence)
        guard let entry else { preconditionFailure("an entry cannot be read back") }
        unsafe memtable.insert(entry, at: start, sequence: sequence)
    }

    /// Upper bound of what an entry takes.
    static func byteCountMax(key: Int, value: Int) -> Int {
        EntryLayout.byteCountMax(key: key, value: value) + 1
    }
}

/// Numbers for replicas, vectors, authors and origins in a log's tables; a definition goes into
/// the block in front of the first use.
extension LogBlockWriter {
    mutating func number(of replica: ReplicaID, in tables: VersionTables) -> UInt32 {
        let (number, isNew) = tables.withContent { $0.number(of: replica) }
        if isNew { DefinitionItem.replica(replica).write(to: &self) }
        return number
    }

    mutating func number(of vector: VersionVector, in tables: VersionTables) -> UInt32 {
        if let known = tables.withContent({ $0.knownNumber(of: vector) }) { return known }
        // Their definitions come before.
        let entries = vector.dots.map { dot in
            (replica: number(of: dot.replica, in: tables), counter: dot.counter)
        }
        DefinitionItem.vector(entries).write(to: &self)
        return tables.withContent { $0.number(of: vector).0 }
    }

    mutating func number(of author: String, in tables: VersionTables) -> UInt32 {
        let (number, isNew) = tables.withContent { $0.number(of: author) }
        if isNew { DefinitionItem.author(author).write(to: &self) }
        return number
    }

    /// The number of a whole origin, with all that it names.
    mutating func number(
        of replica: ReplicaID, _ vector: VersionVector, _ author: String,
        in tables: VersionTables
    ) -> UInt32 {
        let origin = Origin(
            replica: number(of: replica, in: tables), vector: number(of: vector, in: tables),
            author: number(of: author, in: tables))
        let (number, isNew) = tables.withContent { $0.number(of: origin) }
        if isNew { DefinitionItem.origin(origin).write(to: &self) }
        return number
    }

    /// Upper bound of the definitions that one version can need.
    static func definitionBytesMax(_ vector: VersionVector) -> Int {
        DefinitionItem.byteCountMax(vectorCount: vector.count)
    }
}
