/// The last bytes of a sealed segment: where its parts are and how much is in it.
///
///     offset  bytes  field
///     0       8      "MARKTIDE"
///     8       8      segment number
///     16      8      entries
///     24      8      of these tombstones
///     32      8      bytes of data blocks before compression
///     40      8      bytes of data blocks as stored, headers included
///     48      8      data blocks
///     56      8      change blocks
///     64      8      where the data blocks end
///     72      8      where the hash index begins, a multiple of 64
///     80      8      buckets of the hash index
///     88      7x16   handles of directory, change directory, checksums of the hash index, tables,
///                    datasets, collected and value files: 8 bytes offset, 4 stored length, 4 raw
///                    length
///     200     8      XXH3-64 of the 200 bytes before
struct SegmentFooter {
    static let byteCount = 208
    static let magic: [UInt8] = Array("MARKTIDE".utf8)

    var segment: UInt64
    var entryCount: UInt64 = 0
    var tombstoneCount: UInt64 = 0
    var rawBytes: UInt64 = 0
    var storedBytes: UInt64 = 0
    var dataBlockCount: UInt64 = 0
    var changeBlockCount: UInt64 = 0
    var dataEnd: UInt64 = 0
    var indexOffset: UInt64 = 0
    var bucketCount: UInt64 = 0
    var directory = BlockHandle.none
    var changeDirectory = BlockHandle.none
    var indexChecksums = BlockHandle.none
    var tables = BlockHandle.none
    var datasets = BlockHandle.none
    var collected = BlockHandle.none
    var valueFiles = BlockHandle.none

    init(segment: UInt64) {
        self.segment = segment
    }

    /// All but the checksum.
    var fields: [UInt8] {
        var writer = ByteWriter()
        writer.append(Self.magic)
        for number in [
            segment, entryCount, tombstoneCount, rawBytes, storedBytes, dataBlockCount,
            changeBlockCount, dataEnd, indexOffset, bucketCount,
        ] {
            writer.append(fixed64: number)
        }
        for handle in [
            directory, changeDirectory, indexChecksums, tables, datasets, collected, valueFiles,
        ] {
            writer.append(fixed64: handle.offset)
            writer.append(fixed32: handle.storedCount)
            writer.append(fixed32: handle.rawCount)
        }
        return writer.bytes
    }

    func bytes(_ identity: StoreIdentity) -> [UInt8] {
        var writer = ByteWriter()
        writer.append(fields)
        let checksum = unsafe writer.bytes.withUnsafeBytes { unsafe identity.checksum($0) }
        writer.append(fixed64: checksum)
        return writer.bytes
    }

    /// - Parameter fileSize: every part must lie between the file header and the footer.
    init(
        _ bytes: ByteView, segment: UInt64, fileSize: UInt64, _ identity: StoreIdentity
    ) throws(Malformed) {
        let checked = unsafe UnsafeRawBufferPointer(
            start: bytes.base, count: Self.byteCount - 8)
        var reader = ByteReader(bytes)
        let magic = try reader.view(8).array
        self.segment = try reader.fixed64()
        entryCount = try reader.fixed64()
        tombstoneCount = try reader.fixed64()
        rawBytes = try reader.fixed64()
        storedBytes = try reader.fixed64()
        dataBlockCount = try reader.fixed64()
        changeBlockCount = try reader.fixed64()
        dataEnd = try reader.fixed64()
        indexOffset = try reader.fixed64()
        bucketCount = try reader.fixed64()
        let end = fileSize - UInt64(Self.byteCount)
        directory = try Self.handle(&reader, end: end)
        changeDirectory = try Self.handle(&reader, end: end)
        indexChecksums = try Self.handle(&reader, end: end)
        tables = try Self.handle(&reader, end: end)
        datasets = try Self.handle(&reader, end: end)
        collected = try Self.handle(&reader, end: end)
        valueFiles = try Self.handle(&reader, end: end)
        guard unsafe identity.checksum(checked) == (try reader.fixed64()), magic == Self.magic
        else {
            throw Malformed("the checksum of the segment's footer does not match")
        }
        guard self.segment == segment else {
            throw Malformed("the footer is of segment \(self.segment)")
        }
        guard dataEnd <= end, indexOffset <= end, indexOffset % 64 == 0, bucketCount > 0,
            bucketCount <= (end - indexOffset) / UInt64(HashIndex.bucketByteCount),
            dataBlockCount <= UInt64(EntryPlace.blockCountMax), changeBlockCount <= end,
            entryCount <= end
        else { throw Malformed("a part of the segment lies outside of it") }
    }

    private static func handle(
        _ reader: inout ByteReader, end: UInt64
    ) throws(Malformed) -> BlockHandle {
        let handle = BlockHandle(
            offset: try reader.fixed64(), storedCount: try reader.fixed32(),
            rawCount: try reader.fixed32())
        try handle.check(end: end)
        return handle
    }
}

extension BlockHandle {
    static var none: BlockHandle { BlockHandle(offset: 0, storedCount: 0, rawCount: 0) }

    /// Whether the block can lie where it is said to lie, so that no length is believed that
    /// would make a reader go out of the file or out of memory.
    func check(end: UInt64) throws(Malformed) {
        guard offset >= UInt64(FileHeader.byteCount), offset < end, offset % 8 == 0,
            UInt64(storedCount) + UInt64(BlockHeader.byteCount) <= end - offset,
            isPlausible
        else { throw Malformed("a block handle points out of the file") }
    }

    /// LZ4 cannot shrink anything to less than a 255th.
    var isPlausible: Bool {
        storedCount <= rawCount && UInt64(rawCount) <= 255 * UInt64(storedCount) + 16
            && rawCount > 0
    }
}
