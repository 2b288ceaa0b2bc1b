import Tidemark

// A bundle is read through before anything of it is used: all frames are whole, in their order and
// none is missing, each page can be taken apart, and nothing comes after the end. So a damaged or
// cut bundle changes nothing. When its pages are applied each is read again; one that is no longer
// what it was then ends the import behind the page before it.

/// A bundle that was found whole.
struct BundleFile: Sendable {
    /// Where a page lies, and what it must still be when it is read again.
    struct Page: Hashable, Sendable {
        let offset: UInt64
        let byteCount: Int
        let checksum: UInt64
        /// In the sender's order of change: the page follows on this.
        let since: SyncCount
        let through: SyncCount
    }

    let summary: BundleSummary
    /// At least one.
    let pages: [Page]
    private let file: any StorageFile

    /// Reads the whole file and checks it. O(bytes); takes memory for one page at a time.
    ///
    /// - Throws: `damagedBundle` with the place; `protocolMismatch` if it is of a newer version;
    ///   `store` if it cannot be read.
    init(path: String) throws(SyncError) {
        var reader = try BundleReader(path: path)
        let header = try reader.takeHeader()
        var pages: [Page] = []
        var recordCount = 0
        var last: RecordPage?
        var position = header.since
        while last?.isLast != true {
            let (page, place) = try reader.takePage(since: position)
            guard page.isLast || page.through > position, page.through >= position else {
                throw reader.damaged(at: place.offset, "a page does not go on after \(position)")
            }
            recordCount += page.recordCount
            position = page.through
            pages.append(place)
            last = page
        }
        try reader.takeEnd(pageCount: pages.count, recordCount: recordCount)
        guard let knowledge = last?.knowledge else {
            throw reader.damaged(at: 0, "the bundle has no page")
        }
        self.pages = pages
        file = reader.file
        summary = BundleSummary(
            header, knowledge, through: position, recordCount: recordCount,
            pageCount: pages.count, byteCount: reader.byteCount)
    }

    /// A page as it was when the file was checked.
    ///
    /// - Throws: as ``frame(at:)``.
    func page(at index: Int) throws(SyncError) -> RecordPage {
        guard case .pullAnswer(let answer) = try SyncMessage(MessageFrame.decoded(frame(at: index)))
        else {
            throw .damagedBundle(
                file.path, at: pages[index].offset,
                "the file was changed while it was imported; this is no page any more")
        }
        return answer.page
    }

    /// The bytes of a page as they were when the file was checked.
    func frame(at index: Int) throws(SyncError) -> [UInt8] {
        let page = pages[index]
        let frame = try engine { () throws(StoreError) in
            try file.bytes(page.byteCount, at: page.offset)
        }
        guard BundleReader.checksum(of: frame) == page.checksum,
            BundleReader.isWhole(frame)
        else {
            throw .damagedBundle(
                file.path, at: page.offset,
                "the file was changed while it was imported; the \(index) pages before are here")
        }
        return frame
    }
}

/// Takes a file apart, frame after frame.
struct BundleReader {
    let file: any StorageFile
    let byteCount: UInt64
    private var offset: UInt64 = 0
    private var chain = BundleChain()

    init(path: String) throws(SyncError) {
        (file, byteCount) = try engine { () throws(StoreError) -> (any StorageFile, UInt64) in
            let file = try SystemStorage().openFile(path, .read)
            return (file, try file.size())
        }
    }

    func damaged(at offset: UInt64, _ problem: String) -> SyncError {
        .damagedBundle(file.path, at: offset, "\(problem); nothing was imported")
    }

    mutating func takeHeader() throws(SyncError) -> BundleHeader {
        let (frame, _) = try takeFrame()
        return try made(at: 0) { () throws(SyncError) in try BundleHeader(frame) }
    }

    mutating func takePage(
        since: SyncCount
    ) throws(SyncError) -> (page: RecordPage, place: BundleFile.Page) {
        let start = offset
        let (frame, checksum) = try takeFrame()
        let message = try made(at: start) { () throws(SyncError) in try SyncMessage(frame) }
        guard case .pullAnswer(let answer) = message else {
            throw damaged(at: start, "a message of kind \(frame.kind) stands where a page belongs")
        }
        let place = BundleFile.Page(
            offset: start, byteCount: Int(offset - start), checksum: checksum, since: since,
            through: answer.page.through)
        return (answer.page, place)
    }

    mutating func takeEnd(pageCount: Int, recordCount: Int) throws(SyncError) {
        let start = offset
        let before = chain.value
        let (frame, _) = try takeFrame()
        let end = try made(at: start) { () throws(SyncError) in try BundleEnd(frame) }
        guard end.pageCount == UInt64(pageCount), end.recordCount == UInt64(recordCount),
            end.chain == before
        else { throw damaged(at: start, "the end of the bundle speaks of other pages") }
        guard offset == byteCount else {
            throw damaged(at: offset, "the file goes on after the end of the bundle")
        }
    }

    /// The next frame, whose checksum was found right.
    private mutating func takeFrame() throws(SyncError) -> (frame: MessageFrame, checksum: UInt64) {
        let start = offset
        let least = UInt64(MessageFrame.headerBytes + MessageFrame.checksumBytes)
        guard byteCount - start >= least else { throw damaged(at: start, "the bundle is cut off") }
        let head = try bytes(MessageFrame.headerBytes, at: start)
        guard head.starts(with: MessageFrame.magic) else {
            throw damaged(at: start, "no frame of a bundle begins here")
        }
        // The four bytes of the length are the last of the head.
        let bodyBytes = head.suffix(4).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let count = least + bodyBytes
        guard count <= UInt64(SyncLimits.messageBytesMax) else {
            throw damaged(at: start, "a frame claims \(count) bytes, which none has")
        }
        guard count <= byteCount - start else { throw damaged(at: start, "the bundle is cut off") }
        let whole = try bytes(Int(count), at: start)
        let frame = try made(at: start) { () throws(SyncError) in
            try MessageFrame.decoded(whole)
        }
        guard SyncLimits.protocolVersions.contains(frame.version) else {
            throw SyncError(
                .protocolMismatch,
                "the bundle is of version \(frame.version) of the protocol; update the older side")
        }
        chain.add(whole)
        offset += count
        return (frame, Self.checksum(of: whole))
    }

    /// What was made of bytes that may be anything: what is wrong with them is wrong with the file.
    private func made<Result>(
        at offset: UInt64, _ body: () throws(SyncError) -> Result
    ) throws(SyncError) -> Result {
        do throws(SyncError) {
            return try body()
        } catch {
            guard error.code == .badMessage || error.code == .tooLarge else { throw error }
            let problem = error.message.prefix { $0 != ";" }
            throw damaged(at: offset, String(problem))
        }
    }

    private func bytes(_ count: Int, at offset: UInt64) throws(SyncError) -> [UInt8] {
        try engine { () throws(StoreError) in try file.bytes(count, at: offset) }
    }

    /// The checksum that a frame carries: its last eight bytes.
    static func checksum(of frame: [UInt8]) -> UInt64 {
        frame.suffix(MessageFrame.checksumBytes).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Whether a frame is what its checksum says.
    static func isWhole(_ frame: [UInt8]) -> Bool {
        MessageFrame.checksum(frame.dropLast(MessageFrame.checksumBytes)) == checksum(of: frame)
    }
}
