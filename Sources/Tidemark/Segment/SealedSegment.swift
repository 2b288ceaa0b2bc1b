/// An immutable file of sorted entries, open for reading.
///
/// Opening reads header and footer alone, and the table of value files if there are any. The file
/// is mapped when it is first read from; its indexes are used where they lie, and each part of it
/// is checked against its checksum when it is first touched. It stays open until the last view or
/// snapshot that can see it lets go, also when compaction has long removed its name.
final class SealedSegment: Sendable {
    let number: UInt64
    let path: String
    let footer: SegmentFooter
    let fileSize: UInt64
    let file: any StorageFile
    /// Of the values that lie apart. Open as long as this is.
    let values: SegmentValues
    private let identity: StoreIdentity
    private let cache: BlockCache
    private let loaded = LazyReference<SegmentParts>()

    init(
        number: UInt64, path: String, identity: StoreIdentity, storage: any Storage,
        cache: BlockCache,
        valueFiles: ValueFiles
    ) throws(StoreError) {
        self.number = number
        self.path = path
        self.identity = identity
        self.cache = cache
        let file = try storage.openFile(path, .read)
        self.file = file
        fileSize = try file.size()
        guard fileSize >= UInt64(FileHeader.byteCount + SegmentFooter.byteCount) else {
            throw Malformed("the segment is cut short").error(in: path, at: fileSize)
        }
        let header = unsafe try Block(count: FileHeader.byteCount) { (memory) throws(StoreError) in
            try unsafe file.read(into: memory, at: 0)
        }
        _ = try FileHeader(
            header.bytes, expecting: .sealed, segment: number, identity: identity, path: path)
        let end = fileSize - UInt64(SegmentFooter.byteCount)
        let tail = unsafe try Block(count: SegmentFooter.byteCount) { (memory) throws(StoreError) in
            try unsafe file.read(into: memory, at: end)
        }
        do {
            footer = try SegmentFooter(
                tail.bytes, segment: number, fileSize: fileSize, identity)
        } catch {
            throw error.error(in: path, at: end)
        }
        let table = try Self.valueRows(footer, in: file, identity)
        values = try SegmentValues(table, ofSegmentAt: path, valueFiles)
    }

    /// Which value files the segment names: nothing is read if it names none.
    static func valueRows(
        _ footer: SegmentFooter, in file: any StorageFile, _ identity: StoreIdentity,
        readingEmpty: Bool = false
    ) throws(StoreError) -> SegmentValueRows {
        let handle = footer.valueFiles
        guard readingEmpty || handle.rawCount > SegmentValueRows.emptyByteCount else {
            return SegmentValueRows()
        }
        let block = try file.readBlock(
            handle, kind: .valueFiles, segment: footer.segment, identity)
        do {
            return try SegmentValueRows(decoding: block.bytes)
        } catch {
            throw error.error(in: file.path, at: handle.offset)
        }
    }

    /// What readers work with, for as long as they hold the segment.
    func parts() throws(StoreError) -> SegmentParts {
        try loaded.object { () throws(StoreError) in
            do throws(StoreError) {
                return try SegmentParts(
                    file: file, footer: footer, fileSize: fileSize, identity: identity,
                    values: values, cache: cache)
            } catch {
                cache.events?.tellDamage(error)
                throw error
            }
        }
    }

    /// Has the processor fetch what a search for a key looks at first, if anything was read here.
    @inline(__always)
    func prefetch(hash: UInt64) {
        guard let known = unsafe loaded.reference else { return }
        unsafe known._withUnsafeGuaranteedRef { $0.prefetch(hash: hash) }
    }

    /// Has the processor fetch the entry that a search for a key comes to first. False if there is
    /// none, or if nothing was read here.
    @inline(__always)
    func prefetchEntry(hash: UInt64) -> Bool {
        guard let known = unsafe loaded.reference else { return false }
        return unsafe known._withUnsafeGuaranteedRef { $0.prefetchEntry(hash: hash) }
    }

    /// The newest version of a key in this segment.
    @inline(__always)
    func newest(
        of key: ByteView, in dataset: DatasetID, hash: UInt64
    ) throws(StoreError) -> FoundEntry? {
        guard let known = unsafe loaded.reference else {
            return try parts().newest(of: key, in: dataset, hash: hash)
        }
        return try unsafe known.withBorrowed { (parts) throws(StoreError) in
            try parts.newest(of: key, in: dataset, hash: hash)
        }
    }
}
