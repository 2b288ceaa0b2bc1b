// What is left of taking over a segment of a peer when the store is closed, or its process ends: so
// that the next opening goes on from there.
//
// The blocks lie in a part, `000013.part`, which is a segment in the making. Beside it lies
// `000013.from`, which says of which peer's which segment it is, and then, each time that a range
// of blocks has been handed to the operating system, how many blocks these are and where they end.
// Nothing is synced on the way. What survived is looked at when it is needed: a range counts if its
// mark is whole and each of its blocks is, and all ranges before it count.
//
// Both are remains of a crash if either is missing, damaged at its beginning, or older than a week.

/// Which segment of which peer a part is made of.
struct PartOrigin: Hashable, Sendable {
    /// The dataset's name here.
    let dataset: String
    let peer: ReplicaID
    /// The dataset's number in the entries.
    let number: DatasetID
    let lifecycle: DatasetLifecycle
    /// The number and the checksum of the footer.
    let segment: UInt64
    let identity: UInt64
    let entryCount: UInt64
    let blockCount: UInt64
    /// XXH3-64 of the tables that came with the offer.
    let tablesChecksum: UInt64

    init(
        _ part: SegmentOffer.Segment, of offer: SegmentOffer, dataset: String, peer: ReplicaID
    ) {
        self.dataset = dataset
        self.peer = peer
        number = offer.dataset
        lifecycle = offer.knowledge.lifecycle
        segment = part.number
        identity = part.identity
        entryCount = part.entryCount
        blockCount = UInt64(part.blockCount)
        tablesChecksum = unsafe part.tables.withUnsafeBytes { unsafe checksum64($0) }
    }

    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.append(counted: dataset)
        writer.append(peer)
        writer.append(varint: UInt64(number))
        writer.append(lifecycle)
        writer.append(varint: segment)
        writer.append(fixed64: identity)
        writer.append(varint: entryCount)
        writer.append(varint: blockCount)
        writer.append(fixed64: tablesChecksum)
        return writer.bytes
    }

    init(decoding bytes: ByteView) throws(Malformed) {
        var reader = ByteReader(bytes)
        dataset = try reader.countedText(max: Limits.datasetNameBytesMax)
        peer = try reader.replicaID()
        number = try reader.datasetID()
        lifecycle = try reader.lifecycle()
        segment = try reader.varint()
        identity = try reader.fixed64()
        entryCount = try reader.varint()
        blockCount = try reader.varint()
        tablesChecksum = try reader.fixed64()
        guard reader.isAtEnd else { throw Malformed("the origin of a part is too long") }
    }
}

/// How much of a part is there.
struct PartMark: Hashable, Sendable {
    /// The peer's first block that is not in it.
    let next: UInt64
    /// Where it ends in the part.
    let offset: UInt64

    var encoded: [UInt8] {
        var writer = ByteWriter()
        writer.append(varint: next)
        writer.append(varint: offset)
        return writer.bytes
    }

    init(next: UInt64, offset: UInt64) {
        self.next = next
        self.offset = offset
    }

    init(decoding bytes: ByteView) throws(Malformed) {
        var reader = ByteReader(bytes)
        next = try reader.varintCount()
        offset = try reader.varintCount()
        guard reader.isAtEnd else { throw Malformed("a mark is too long") }
    }
}

/// The file beside a part, while the part is made.
final class PartJournal {
    private let file: any StorageFile
    private let number: UInt64
    private let identity: StoreIdentity
    private var end: UInt64 = 0

    init(
        _ origin: PartOrigin, number: UInt64, path: String, identity: StoreIdentity,
        storage: any Storage
    ) throws(StoreError) {
        self.number = number
        self.identity = identity
        file = try storage.openFile(path, .create)
        let header = FileHeader(
            kind: .partOrigin, segment: number, identity: identity,
            madeAt: storage.wallClockMilliseconds())
        try append(header.bytes)
        try append(block(origin.encoded, .partOrigin))
    }

    func note(_ mark: PartMark) throws(StoreError) {
        try append(block(mark.encoded, .partMark))
    }

    private func append(_ bytes: [UInt8]) throws(StoreError) {
        let offset = end
        try bytes.withBytes { (view) throws(StoreError) in
            try unsafe file.write(view.buffer, at: offset)
        }
        end += UInt64(bytes.count)
    }

    private func block(_ content: [UInt8], _ kind: BlockHeader.Kind) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: BlockHeader.byteCount) + content
        let header = BlockHeader(
            storedCount: content.count, mark: UInt32(content.count), segment: number, kind: kind)
        unsafe bytes.withUnsafeMutableBytes { unsafe header.seal(at: $0.baseAddress!, identity) }
        bytes += [UInt8](repeating: 0, count: (8 - bytes.count % 8) % 8)
        return bytes
    }
}

/// A part of an earlier opening, as far as the file beside it says.
struct KeptPart: Sendable {
    /// In the names of both files.
    let number: UInt64
    let origin: PartOrigin
    /// In rising order; at least one.
    let marks: [PartMark]
    private let identity: StoreIdentity

    var isComplete: Bool { marks.last?.next == origin.blockCount }

    /// Reads what stands beside a part.
    ///
    /// - Returns: nil if it is of no use.
    /// - Throws: `inputOutput` if it cannot be read now, which does not tell.
    init?(
        number: UInt64, at path: String, identity: StoreIdentity, _ storage: any Storage
    ) throws(StoreError) {
        let content = try unlessDamaged { () throws(StoreError) -> Block? in
            let file = try storage.openFile(path, .read)
            let size = try file.size()
            guard size <= Limits.partOriginBytesMax else { return nil }
            return unsafe try Block(count: Int(size)) { (memory) throws(StoreError) in
                try unsafe file.read(into: memory, at: 0)
            }
        }
        guard let whole = content ?? nil,
            let header = try? FileHeader(
                whole.bytes, expecting: .partOrigin, segment: number, identity: identity, path: path
            )
        else { return nil }
        defer { withExtendedLifetime(whole) {} }
        let now = storage.wallClockMilliseconds()
        guard header.madeAt <= now, now - header.madeAt <= Limits.partAgeMillisecondsMax else {
            return nil
        }
        var scan = JournalScan(
            whole.bytes, segment: number, identity, from: FileHeader.byteCount)
        guard let first = scan.next(.partOrigin), let origin = try? PartOrigin(decoding: first)
        else { return nil }
        var marks: [PartMark] = []
        while let content = scan.next(.partMark), let mark = try? PartMark(decoding: content) {
            let last = marks.last ?? PartMark(next: 0, offset: UInt64(FileHeader.byteCount))
            guard mark.next > last.next, mark.next <= origin.blockCount,
                mark.offset > last.offset, mark.offset - last.offset <= Limits.partRangeBytesMax
            else { break }
            marks.append(mark)
        }
        guard !marks.isEmpty else { return nil }
        self.number = number
        self.origin = origin
        self.marks = marks
        self.identity = identity
    }

    /// The blocks of a range of the part, one right after the other, each under a header with the
    /// number of the peer's segment, as they came.
    ///
    /// - Returns: nil if any of them is not whole, or they do not fill the range.
    /// - Throws: `inputOutput` if they cannot be read now.
    func blocks(
        in range: Range<UInt64>, of file: any StorageFile
    ) throws(StoreError) -> [UInt8]? {
        let content = try unlessDamaged { () throws(StoreError) -> Block in
            unsafe try Block(count: Int(range.upperBound - range.lowerBound)) {
                (memory) throws(StoreError) in
                try unsafe file.read(into: memory, at: range.lowerBound)
            }
        }
        guard let whole = content else { return nil }
        defer { withExtendedLifetime(whole) {} }
        var scan = JournalScan(whole.bytes, segment: number, identity, from: 0)
        var blocks: [UInt8] = []
        blocks.reserveCapacity(whole.count)
        while let (header, content) = scan.nextBlock() {
            guard header.kind == BlockHeader.Kind.data.rawValue else { return nil }
            let start = blocks.count
            blocks.append(contentsOf: repeatElement(0, count: BlockHeader.byteCount))
            unsafe blocks.append(contentsOf: content.buffer)
            let original = BlockHeader(
                storedCount: content.count, mark: header.mark, segment: origin.segment,
                kind: .data)
            unsafe blocks.withUnsafeMutableBytes {
                unsafe original.seal(at: $0.baseAddress! + start, nil)
            }
        }
        return scan.isAtEnd && !blocks.isEmpty ? blocks : nil
    }
}

/// Blocks one after the other, each at a multiple of eight.
private struct JournalScan {
    private let bytes: ByteView
    private let segment: UInt32
    private let identity: StoreIdentity
    private var offset: Int

    init(_ bytes: ByteView, segment: UInt64, _ identity: StoreIdentity, from offset: Int) {
        self.identity = identity
        self.bytes = bytes
        self.segment = UInt32(truncatingIfNeeded: segment)
        self.offset = offset
    }

    var isAtEnd: Bool { offset >= bytes.count }

    /// The next block, if it is whole.
    mutating func nextBlock() -> (header: BlockHeader, content: ByteView)? {
        let rest = bytes.count - offset
        guard rest >= BlockHeader.byteCount else { return nil }
        let base = unsafe bytes.base + offset
        let header = unsafe BlockHeader(at: base)
        let count = Int(header.storedCount)
        guard count <= rest - BlockHeader.byteCount, header.segment == segment,
            header.epoch == 0,
            unsafe BlockHeader.checksum(at: base, storedCount: count, identity)
                == header.checksum
        else { return nil }
        offset += (BlockHeader.byteCount + count + 7) & ~7
        return (
            header, unsafe ByteView(base: base + BlockHeader.byteCount, count: count)
        )
    }

    /// The content of the next block, if it is whole and of that kind.
    mutating func next(_ kind: BlockHeader.Kind) -> ByteView? {
        guard let (header, content) = nextBlock(), header.kind == kind.rawValue else { return nil }
        return content
    }
}
