/// A file of a damaged store, as far as the disk gives it, and the whole blocks in it.
///
/// It takes no descriptor once it is made: a store may have more files than a process may open.
@safe
final class SalvageFile {
    /// A block whose checksum matches.
    struct FoundBlock {
        let offset: Int
        let header: BlockHeader
        /// Where the next block may begin.
        let end: Int
    }

    let name: String
    let number: UInt64
    let path: String
    /// Of the store that it is of, by which its blocks are known; nil if that is lost.
    private(set) var identity: StoreIdentity?
    let bytes: ByteView
    /// Holds the mapping; nil if the file is empty.
    private let file: (any StorageFile)?
    /// What the disk cannot read; must not be touched in the mapping.
    private(set) var unreadable: [Range<Int>] = []

    private static let windowBytes = 1 << 20
    private static let pageBytes = 4_096
    private static let zeros = [UInt8](repeating: 0, count: pageBytes)

    /// - Parameter identity: of the store, as far as it is known; what the file's own header says
    ///   goes before.
    /// - Throws: `notAStore` if there is no such file; `inputOutput`.
    init(
        _ name: String, number: UInt64, in directory: String, identity: StoreIdentity?,
        storage: any Storage
    ) throws(StoreError) {
        self.name = name
        self.number = number
        self.identity = identity
        path = "\(directory)/\(name)"
        let opened = try storage.openFile(path, .read)
        bytes = unsafe ByteView(try opened.mapForReading())
        try opened.releaseDescriptor()
        // Nothing of an empty file is mapped, so it would keep its descriptor.
        file = bytes.isEmpty ? nil : opened
        try findUnreadable()
        if let head = view(0, FileHeader.byteCount), let own = FileHeader.identity(in: head) {
            self.identity = own
        }
    }

    var byteCount: Int { bytes.count }

    private func findUnreadable() throws(StoreError) {
        var window = 0
        while window < bytes.count {
            let count = min(Self.windowBytes, bytes.count - window)
            if try !isPopulated(window, count) {
                for page in stride(from: window, to: window + count, by: Self.pageBytes) {
                    let end = min(page + Self.pageBytes, bytes.count)
                    if try !isPopulated(page, end - page) { unreadable.append(page..<end) }
                }
            }
            window += count
        }
    }

    private func isPopulated(_ offset: Int, _ count: Int) throws(StoreError) -> Bool {
        do throws(StoreError) {
            try file?.populate(offset: offset, count: count)
            return true
        } catch {
            guard !error.isOfEnvironment else { throw error }
            return false
        }
    }

    private func isReadable(_ range: Range<Int>) -> Bool {
        unreadable.isEmpty || !unreadable.contains { $0.overlaps(range) }
    }

    /// The bytes of a range; nil if it leaves the file or cannot be read.
    func view(_ offset: Int, _ count: Int) -> ByteView? {
        guard offset >= 0, count >= 0, offset <= bytes.count, count <= bytes.count - offset,
            isReadable(offset..<(offset + count))
        else { return nil }
        return unsafe ByteView(base: bytes.base + offset, count: count)
    }

    /// The file header; nil if it is damaged.
    /// - Throws: `formatTooNew`.
    func header(_ kind: FileHeader.Kind) throws(StoreError) -> FileHeader? {
        guard let head = view(0, FileHeader.byteCount) else { return nil }
        do {
            return try FileHeader(
                head, expecting: kind, segment: number, identity: nil, path: path)
        } catch let error where error.isOfFormat {
            throw error
        } catch {
            return nil
        }
    }

    /// The block at an offset, if one lies there whole.
    func block(at offset: Int) -> FoundBlock? {
        guard let identity, let head = view(offset, BlockHeader.byteCount) else { return nil }
        let header = unsafe BlockHeader(at: head.base)
        guard header.segment == UInt32(truncatingIfNeeded: number),
            BlockHeader.Kind(rawValue: header.kind) != nil,
            let whole = view(offset, BlockHeader.byteCount + Int(header.storedCount)),
            unsafe BlockHeader.checksum(
                at: whole.base, storedCount: Int(header.storedCount), identity)
                == header.checksum
        else { return nil }
        let end = offset + whole.count
        return FoundBlock(offset: offset, header: header, end: (end + 7) & ~7)
    }

    /// The next whole block at or after an offset that is a multiple of eight.
    func nextBlock(from offset: Int) -> FoundBlock? {
        var position = offset
        while position + BlockHeader.byteCount <= bytes.count {
            if position % Self.pageBytes == 0, let page = view(position, Self.pageBytes),
                Self.isZero(page)
            {
                // Most of a log was never written, and no block begins with eight zeros.
                position += Self.pageBytes
                continue
            }
            if let found = block(at: position) { return found }
            position += LogSegment.alignment
        }
        return nil
    }

    /// The header of the first whole block, whichever file it says it is of. O(bytes).
    func firstBlockOfAnyFile() -> BlockHeader? {
        guard let identity else { return nil }
        for position in stride(
            from: FileHeader.byteCount, through: bytes.count - BlockHeader.byteCount,
            by: LogSegment.alignment)
        {
            guard let head = view(position, BlockHeader.byteCount) else { continue }
            let header = unsafe BlockHeader(at: head.base)
            guard BlockHeader.Kind(rawValue: header.kind) != nil,
                let whole = view(position, BlockHeader.byteCount + Int(header.storedCount)),
                unsafe BlockHeader.checksum(
                    at: whole.base, storedCount: Int(header.storedCount), identity)
                    == header.checksum
            else { continue }
            return header
        }
        return nil
    }

    /// Whether nothing but zeros can be read.
    var isAllZeros: Bool {
        stride(from: 0, to: bytes.count, by: Self.pageBytes).allSatisfy { start in
            view(start, min(Self.pageBytes, bytes.count - start)).map(Self.isZero) ?? true
        }
    }

    /// Whether a page, or the part of one at the end, has nothing but zeros.
    private static func isZero(_ page: ByteView) -> Bool {
        unsafe zeros.withUnsafeBytes { unsafe ByteView($0).prefix(page.count).equals(page) }
    }

    /// The payload of a block, decompressed if it is; nil if it does not decompress.
    func payload(_ found: FoundBlock) -> Block? {
        let handle = BlockHandle(
            offset: UInt64(found.offset), storedCount: found.header.storedCount,
            rawCount: found.header.mark)
        guard handle.isPlausible, found.header.epoch == 0,
            let stored = view(
                found.offset + BlockHeader.byteCount, Int(found.header.storedCount))
        else { return nil }
        do {
            return unsafe try Block(count: Int(handle.rawCount)) {
                (memory) throws(StoreError) in
                if handle.storedCount == handle.rawCount {
                    unsafe memory.copyMemory(from: stored.buffer)
                } else if unsafe !LZ4Block.decompress(stored.buffer, into: memory) {
                    throw Malformed("a block does not decompress").error(
                        in: path, at: handle.offset)
                }
            }
        } catch {
            return nil
        }
    }
}

/// Where a version comes from, by itself: what an ``Origin`` names.
struct SalvagedOrigin {
    let replica: ReplicaID
    let vector: VersionVector
    let author: String

    func version(of stamp: Stamp) -> Version {
        Version(
            dot: Dot(replica: replica, counter: stamp.counter), vector: vector,
            time: HybridTime(rawValue: stamp.time), author: author)
    }
}

/// A part of a file that is lost, before the names of datasets are known.
struct SalvageLoss {
    var kind: RepairReport.Loss.Kind
    var file: String
    var offset: UInt64?
    var byteCount: UInt64
    /// nil if nobody knows.
    var datasets: ClosedRange<DatasetID>?
    var what: String
}

/// Gives the entries of one file in their order.
protocol SalvageCursor: AnyObject {
    /// Valid until the cursor moves; nil at the end.
    var entry: Entry? { get }
    func advance()
    /// nil if it is lost.
    func version(of stamp: Stamp) -> Version?
}
