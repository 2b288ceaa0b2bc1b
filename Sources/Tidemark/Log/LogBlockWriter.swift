/// Writes the items of one block straight into the mapped log: no buffer, no allocation.
///
/// Whoever makes one has asked the log for room for all that will be written; each write is
/// checked against that bound all the same, since a store past the mapping would be silent.
@safe
struct LogBlockWriter {
    private let start: UnsafeMutableRawPointer
    private let countMax: Int
    private(set) var count = 0

    init(_ log: LogSegment) {
        unsafe start = log.payloadStart
        countMax = log.remainingPayload
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

    mutating func append(bytes: [UInt8]) {
        unsafe bytes.withUnsafeBytes { source in
            unsafe UnsafeMutableRawBufferPointer(start: room(source.count), count: source.count)
                .copyMemory(from: source)
        }
    }

    /// The bytes, and where they now lie: in the log, as long as the log is held.
    @inline(__always)
    mutating func append(counted view: ByteView) -> ByteView {
        append(varint: UInt64(view.count))
        let place = unsafe room(view.count)
        unsafe place.copyMemory(from: view.base, byteCount: view.count)
        return unsafe ByteView(base: UnsafeRawPointer(place), count: view.count)
    }

    /// Writes a put or a delete. The result is the same entry with key and value in the log.
    @inline(__always)
    mutating func append(_ entry: Entry) -> Entry {
        var stored = entry
        let code: LogItem.Code = entry.kind == .put ? .put : .delete
        append(byte: code.rawValue)
        append(varint: UInt64(entry.dataset))
        stored.key = append(counted: entry.key)
        append(varint: entry.syncCount)
        append(varint: UInt64(entry.replica))
        append(varint: entry.counter)
        append(fixed64: entry.time)
        append(varint: UInt64(entry.vector))
        append(varint: UInt64(entry.author))
        if entry.kind == .put {
            stored.value = append(counted: entry.value)
        }
        return stored
    }

    /// Upper bound of what an entry takes.
    static func byteCountMax(key: Int, value: Int) -> Int {
        key + value + 64
    }
}

/// Numbers for replicas, vectors and authors in a log's tables; a definition goes into the block
/// in front of the first use.
extension LogBlockWriter {
    mutating func number(of replica: ReplicaID, in tables: VersionTables) -> UInt32 {
        let (number, isNew) = tables.withContent { $0.number(of: replica) }
        if isNew {
            var item = ByteWriter()
            item.append(byte: LogItem.Code.replica.rawValue)
            item.append(replica)
            append(bytes: item.bytes)
        }
        return number
    }

    mutating func number(of vector: VersionVector, in tables: VersionTables) -> UInt32 {
        var item = ByteWriter()
        item.append(byte: LogItem.Code.vector.rawValue)
        item.append(varint: vector.count)
        for dot in vector.dots {
            item.append(varint: UInt64(number(of: dot.replica, in: tables)))
            item.append(varint: dot.counter)
        }
        let (number, isNew) = tables.withContent { $0.number(of: vector) }
        if isNew { append(bytes: item.bytes) }
        return number
    }

    mutating func number(of author: String, in tables: VersionTables) -> UInt32 {
        let (number, isNew) = tables.withContent { $0.number(of: author) }
        if isNew {
            var item = ByteWriter()
            item.append(byte: LogItem.Code.author.rawValue)
            item.append(counted: author)
            append(bytes: item.bytes)
        }
        return number
    }

    /// Upper bound of the definitions that one version can need.
    static func definitionBytesMax(_ vector: VersionVector) -> Int {
        17 + (Limits.authorBytesMax + 4) + 12 + vector.count * (17 + 15)
    }
}
