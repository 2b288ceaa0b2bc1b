/// Where a value lies that is kept apart from its key: what an entry has in the value's place.
///
///     varint  number of the value file
///     varint  offset of the value's block in it / 8
///     varint  length of the value
///     varint  bytes that compression saves, 0 if it is stored as it is
///
/// It tells the length of the value without a look at it, and names every byte of the block, so
/// that a reader brings all of it into memory at once and believes nothing that the block says.
struct ValueHandle: Hashable {
    let file: UInt64
    let block: BlockHandle

    init(file: UInt64, block: BlockHandle) {
        self.file = file
        self.block = block
    }

    /// Bytes of the block in its file, with header and what fills up to the next one.
    var footprint: UInt64 { (block.endOffset - block.offset + 7) & ~7 }

    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.append(varint: file)
        writer.append(varint: block.offset / 8)
        writer.append(varint: UInt64(block.rawCount))
        writer.append(varint: UInt64(block.rawCount - block.storedCount))
        return writer.bytes
    }

    /// Checks what can be checked without the file.
    init(_ reader: inout ByteReader) throws(Malformed) {
        file = try reader.varintCount()
        let eighth = try reader.varintCount()
        let rawCount = try reader.varint32()
        let saved = try reader.varint32()
        guard eighth >= UInt64(FileHeader.byteCount / 8), eighth <= Limits.countMax / 8,
            rawCount > 0, rawCount <= UInt32(Limits.valueBytesMax), saved < rawCount
        else { throw Malformed("a value lies in an impossible place") }
        block = BlockHandle(
            offset: 8 * eighth, storedCount: rawCount - saved, rawCount: rawCount)
        guard block.isPlausible else { throw Malformed("a value has an impossible length") }
    }
}

extension Entry {
    /// Where the value lies; nil if it is in the entry itself, or there is none.
    var valueHandle: ValueHandle? {
        guard isApart else { return nil }
        var reader = ByteReader(valueField)
        return try? ValueHandle(&reader)
    }

    /// The length of the value, wherever it lies; nothing of it is read. O(1).
    var valueCount: Int {
        guard isApart else { return valueField.count }
        return valueHandle.map { Int($0.block.rawCount) } ?? 0
    }
}
