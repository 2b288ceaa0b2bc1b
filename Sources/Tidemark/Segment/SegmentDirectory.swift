/// Where the data blocks of a segment lie and where each begins in the order of entries, mapped
/// from the file as it lies there.
///
///     4 bytes: number of blocks n
///     4 bytes: length of what all first positions begin with
///     8 bytes each, n:     what follows of each block's first position, up to eight bytes, as a
///                          number in big-endian order
///     4 bytes each, n + 1: offset of each block in the file / 8, + 2^31 if it is compressed;
///                          and where the last one ends
///     4 bytes each, n + 2: where each first position begins in the positions; that of the last
///                          entry of the segment; the end
///     what all first positions begin with
///     positions: 4 bytes dataset, big-endian; key; 8 bytes sync count
///
/// A first position is compared by its dataset and key, that is by the bytes as they lie here,
/// except for the sync count, which falls.
@safe
struct SegmentDirectory {
    let blockCount: Int
    private let common: ByteView
    private let prefixes: UnsafeRawPointer
    private let offsets: UnsafeRawPointer
    private let starts: UnsafeRawPointer
    private let positions: ByteView

    static let compressedMark: UInt32 = 1 << 31

    /// Checks that all parts are there and that no offset leads out of the file or the block. O(n).
    ///
    /// - Parameter dataEnd: where the data blocks end in the file.
    init(_ bytes: ByteView, dataEnd: UInt64) throws(Malformed) {
        var reader = ByteReader(bytes)
        let count = Int(try reader.fixed32())
        let commonCount = Int(try reader.fixed32())
        guard count <= EntryPlace.blockCountMax else {
            throw Malformed("a segment has too many blocks")
        }
        blockCount = count
        unsafe prefixes = try reader.view(8 * count).base
        unsafe offsets = try reader.view(4 * (count + 1)).base
        unsafe starts = try reader.view(4 * (count + 2)).base
        common = try reader.view(commonCount)
        positions = try reader.view(reader.remaining)
        var previousEnd = UInt64(FileHeader.byteCount)
        for block in 0...count {
            let offset = offset(of: block)
            guard offset >= previousEnd, offset <= dataEnd else {
                throw Malformed("a block lies outside the segment")
            }
            previousEnd = offset + (block < count ? UInt64(BlockHeader.byteCount) : 0)
        }
        for index in 0...count {
            let start = start(of: index)
            let end = self.start(of: index + 1)
            guard end >= start + 12, end <= positions.count else {
                throw Malformed("a position lies outside the directory")
            }
        }
    }

    @inline(__always)
    private func start(of index: Int) -> Int {
        unsafe Int(UInt32(littleEndian: (starts + 4 * index).loadUnaligned(as: UInt32.self)))
    }

    @inline(__always)
    private func mark(of block: Int) -> UInt32 {
        unsafe UInt32(littleEndian: (offsets + 4 * block).loadUnaligned(as: UInt32.self))
    }

    /// In the file; that of `blockCount` is where the last block ends.
    @inline(__always)
    func offset(of block: Int) -> UInt64 {
        UInt64(mark(of: block) & ~Self.compressedMark) << 3
    }

    @inline(__always)
    func isCompressed(_ block: Int) -> Bool {
        mark(of: block) & Self.compressedMark != 0
    }

    /// Of a block's first entry; of `blockCount`: of the last entry of the segment.
    func position(of block: Int) -> EntryPosition {
        let start = start(of: block)
        let base = unsafe positions.base + start
        let count = self.start(of: block + 1) - start
        return unsafe EntryPosition(
            dataset: UInt32(bigEndian: base.loadUnaligned(as: UInt32.self)),
            key: ByteView(base: base + 4, count: count - 12),
            syncCount: UInt64(
                littleEndian: (base + (count - 8)).loadUnaligned(as: UInt64.self)))
    }

    /// Whether what a search compares first is what the block's first position says. For
    /// verification.
    func isSearchable(_ block: Int) -> Bool {
        let prefix = unsafe UInt64(
            littleEndian: (prefixes + 8 * block).loadUnaligned(as: UInt64.self))
        return rest(of: position(of: block)) == prefix
    }

    /// The block in which a search for the position must begin: the last one that does not begin
    /// behind it, or the first. O(log n).
    func block(of position: EntryPosition) -> Int {
        let wanted = rest(of: position)
        guard let wanted else {
            return blockCount == 0 || position.compare(self.position(of: 0)) < 0
                ? 0 : blockCount - 1
        }
        var low = 0
        var high = blockCount
        while low < high {
            let middle = (low + high) / 2
            let prefix = unsafe UInt64(
                littleEndian: (prefixes + 8 * middle).loadUnaligned(as: UInt64.self))
            let isBehind =
                prefix != wanted
                ? prefix > wanted : self.position(of: middle).compare(position) > 0
            if isBehind { high = middle } else { low = middle + 1 }
        }
        return max(0, low - 1)
    }

    /// Up to eight bytes of dataset and key behind what is common to all; nil if the position does
    /// not begin with that.
    private func rest(of position: EntryPosition) -> UInt64? {
        let ordered = position.dataset.bigEndian
        let inDataset = min(4, common.count)
        let isSame = unsafe withUnsafeBytes(of: ordered) { dataset in
            unsafe ByteView(UnsafeRawBufferPointer(rebasing: dataset[..<inDataset])).equals(
                ByteView(base: common.base, count: inDataset))
        }
        guard isSame else { return nil }
        let inKey = common.count - inDataset
        guard position.key.count >= inKey,
            unsafe ByteView(base: position.key.base, count: inKey).equals(
                ByteView(base: common.base + inDataset, count: inKey))
        else { return nil }
        return Self.prefix(of: position, after: common.count)
    }

    fileprivate static func prefix(of position: EntryPosition, after count: Int) -> UInt64 {
        guard count < 4 else {
            return unsafe ByteView(
                base: position.key.base + (count - 4), count: position.key.count - (count - 4)
            ).prefix
        }
        // Some bytes of the dataset, then the key's first.
        let datasetBits = UInt64(8 * (4 - count))
        let dataset = UInt64(position.dataset) << (64 - datasetBits)
        return dataset | position.key.prefix >> datasetBits
    }
}

/// Collects what a directory says while a segment is written.
struct SegmentDirectoryBuilder {
    private var marks: [UInt32] = []
    private var starts: [UInt32] = []
    private var positions: [UInt8] = []
    private var commonCount = Int.max

    var blockCount: Int { marks.count }

    mutating func add(_ first: EntryPosition, offset: UInt64, isCompressed: Bool) {
        marks.append(
            UInt32(offset >> 3) | (isCompressed ? SegmentDirectory.compressedMark : 0))
        append(first)
        let start = Int(starts[starts.count - 1])
        let count = positions.count - 8 - start
        let known = min(commonCount, count)
        commonCount = unsafe positions.withUnsafeBytes { bytes in
            let ordered = unsafe ByteView(base: bytes.baseAddress! + start, count: count)
            let first = unsafe ByteView(base: bytes.baseAddress!, count: known)
            return ordered.commonPrefixCount(with: first, max: known)
        }
    }

    private mutating func append(_ position: EntryPosition) {
        starts.append(UInt32(positions.count))
        unsafe withUnsafeBytes(of: position.dataset.bigEndian) {
            unsafe positions.append(contentsOf: $0)
        }
        unsafe positions.append(contentsOf: position.key.buffer)
        unsafe withUnsafeBytes(of: position.syncCount.littleEndian) {
            unsafe positions.append(contentsOf: $0)
        }
    }

    /// - Parameters:
    ///   - last: position of the segment's last entry.
    ///   - dataEnd: where the last block ends.
    mutating func finish(last: EntryPosition, dataEnd: UInt64) -> [UInt8] {
        append(last)
        starts.append(UInt32(positions.count))
        let commonCount = marks.isEmpty ? 0 : commonCount
        var writer = ByteWriter()
        writer.reserve(8 + 16 * (marks.count + 2) + commonCount + positions.count)
        writer.append(fixed32: UInt32(marks.count))
        writer.append(fixed32: UInt32(commonCount))
        unsafe positions.withUnsafeBytes { bytes in
            for block in marks.indices {
                let start = Int(starts[block]) + commonCount
                let count = Int(starts[block + 1]) - 8 - start
                let rest = unsafe ByteView(base: bytes.baseAddress! + start, count: count)
                writer.append(fixed64: rest.prefix)
            }
        }
        for mark in marks { writer.append(fixed32: mark) }
        writer.append(fixed32: UInt32(dataEnd >> 3))
        for start in starts { writer.append(fixed32: start) }
        writer.append(Array(positions[..<commonCount]))
        writer.append(positions)
        return writer.bytes
    }
}
