/// The entries of a block of kind `data` (and, with keys alone, `dataIndex`): sorted, each whole,
/// with the offsets of all of them behind, so that a binary search needs no decoding on the way.
///
///     entries, one after the other:
///         varint dataset, varint key length, key, varint sync count, byte kind,
///         varint replica, varint counter, 8 bytes time, varint vector, varint author,
///         put only: varint value length, value
///     4 bytes each: offset of each entry
///     4 bytes: number of entries
enum DataBlock {
    /// Appends an entry with the numbers of the segment's own tables.
    static func append(_ entry: Entry, to writer: inout ByteWriter) {
        writer.append(varint: UInt64(entry.dataset))
        writer.append(counted: entry.key)
        writer.append(varint: entry.syncCount)
        writer.append(byte: entry.kind.rawValue)
        writer.append(varint: UInt64(entry.replica))
        writer.append(varint: entry.counter)
        writer.append(fixed64: entry.time)
        writer.append(varint: UInt64(entry.vector))
        writer.append(varint: UInt64(entry.author))
        if entry.kind == .put {
            writer.append(counted: entry.value)
        }
    }

    /// Ends a block: the offsets and their number.
    static func finish(_ writer: inout ByteWriter, offsets: [UInt32]) {
        for offset in offsets {
            writer.append(fixed32: offset)
        }
        writer.append(fixed32: UInt32(offsets.count))
    }

    /// Decodes one entry, checking every field that can be checked alone.
    static func decode(_ reader: inout ByteReader) throws(Malformed) -> Entry {
        let dataset = try reader.varint32()
        let key = try reader.countedView(max: Limits.keyBytesMax)
        let syncCount = try reader.varint()
        guard let kind = EntryKind(rawValue: try reader.byte()) else {
            throw Malformed("an entry has an unknown kind")
        }
        let stamp = try reader.stamp()
        let value =
            kind == .put ? try reader.countedView(max: Limits.valueBytesMax) : ByteView.empty
        return Entry(
            dataset: dataset, kind: kind, key: key, value: value, syncCount: syncCount,
            sequence: 0, replica: stamp.replica, vector: stamp.vector, author: stamp.author,
            counter: stamp.counter, time: stamp.time)
    }
}

/// A block of entries that has been checked to the last field, so that reading it cannot fail.
struct DataBlockView {
    let block: Block
    let count: Int
    private let entriesEnd: Int

    /// Checks the whole block: offsets rising and dense, every entry decodable and in its order,
    /// every number known to the tables. O(bytes), once for each time a block is loaded.
    ///
    /// - Parameter isIndex: an index may be empty; a data block never is.
    init(
        checking block: Block, tables: VersionTables, isIndex: Bool = false
    ) throws(Malformed) {
        let bytes = block.bytes
        guard bytes.count >= 4 else { throw Malformed("a block of entries is too short") }
        var tail = ByteReader(unsafe ByteView(base: bytes.base + (bytes.count - 4), count: 4))
        let count = Int(try tail.fixed32())
        guard count > 0 || isIndex, count <= (bytes.count - 4) / 5 else {
            throw Malformed("a block has an impossible number of entries")
        }
        self.block = block
        self.count = count
        entriesEnd = bytes.count - 4 - 4 * count
        guard entriesEnd > 0 || count == 0 else {
            throw Malformed("a block has no room for its entries")
        }
        let limits = tables.counts
        var reader = ByteReader(unsafe ByteView(base: bytes.base, count: entriesEnd))
        var previous: Entry?
        for index in 0..<count {
            guard reader.offset == offset(of: index) else {
                throw Malformed("the offset of an entry is wrong")
            }
            let entry = try DataBlock.decode(&reader)
            guard Int(entry.replica) < limits.replicas, Int(entry.vector) < limits.vectors,
                Int(entry.author) < limits.authors
            else { throw Malformed("an entry names a replica, vector or author not in the tables") }
            if let previous, previous.position.compare(entry.position) >= 0 {
                throw Malformed("the entries of a block are out of order")
            }
            previous = entry
        }
        guard reader.isAtEnd else { throw Malformed("a block has bytes between its parts") }
    }

    private func offset(of index: Int) -> Int {
        Int(
            unsafe UInt32(
                littleEndian: block.bytes.base.loadUnaligned(
                    fromByteOffset: entriesEnd + 4 * index, as: UInt32.self)))
    }

    /// O(1). The index must be below `count`.
    func entry(at index: Int) -> Entry {
        precondition(index >= 0 && index < count, "an entry beyond the end of its block")
        let start = offset(of: index)
        var reader = ByteReader(
            unsafe ByteView(base: block.bytes.base + start, count: entriesEnd - start))
        do {
            return try DataBlock.decode(&reader)
        } catch {
            preconditionFailure("a block changed after it was checked: \(error.what)")
        }
    }

    /// The first entry at or after the position; `count` if there is none. O(log n).
    func lowerBound(_ position: EntryPosition) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if self.position(at: middle).compare(position) < 0 {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }

    /// Dataset, key and sync count stand first in an entry: the rest is not decoded.
    private func position(at index: Int) -> EntryPosition {
        let start = offset(of: index)
        var reader = ByteReader(
            unsafe ByteView(base: block.bytes.base + start, count: entriesEnd - start))
        do {
            return EntryPosition(
                dataset: try reader.varint32(),
                key: try reader.countedView(), syncCount: try reader.varint())
        } catch {
            preconditionFailure("a block changed after it was checked: \(error.what)")
        }
    }
}
