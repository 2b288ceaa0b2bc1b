import Tidemark

/// Writes a bundle beside its place, and gives it its name once it is whole and durable: whatever
/// is found under the name is a whole bundle, the one before or the new one. Each writer has a
/// file of its own beside that name, so of several at once the last to finish stays, whole.
struct BundleWriter {
    private let path: String
    private let temporary: String
    private let file: any StorageFile
    private(set) var byteCount: UInt64 = 0
    private(set) var pageCount: UInt64 = 0
    private(set) var recordCount: UInt64 = 0
    private var chain = BundleChain()

    /// - Throws: `notAStore` if there is no such directory; what creating the file throws.
    init(path: String) throws(StoreError) {
        self.path = path
        let storage = SystemStorage()
        temporary = "\(path).\(String(storage.randomUInt64(), radix: 16)).new"
        file = try storage.openFile(temporary, .create)
    }

    mutating func append(_ header: BundleHeader) throws(SyncError) {
        try append(frame: try header.encoded())
    }

    mutating func append(_ page: RecordPage) throws(SyncError) {
        try append(frame: try SyncMessage.pullAnswer(PullAnswer(page: page)).encoded())
        pageCount += 1
        recordCount += UInt64(page.recordCount)
    }

    /// Writes the end and puts the bundle in its place. Durable when it returns.
    mutating func finish() throws(SyncError) {
        let end = BundleEnd(
            pageCount: pageCount, recordCount: recordCount, chain: chain.value)
        try append(frame: try end.encoded())
        try engine { () throws(StoreError) in
            let storage = SystemStorage()
            try file.sync()
            try storage.rename(temporary, to: path)
            try storage.syncDirectory(Self.directory(of: path))
        }
    }

    /// Removes what was written so far. If that fails, too, what made us stop says more.
    func abandon() {
        try? SystemStorage().remove(temporary)
    }

    private mutating func append(frame: [UInt8]) throws(SyncError) {
        let offset = byteCount
        try engine { () throws(StoreError) in try file.write(bytes: frame, at: offset) }
        chain.add(frame)
        byteCount += UInt64(frame.count)
    }

    /// The directory that the file lies in.
    private static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
