/// What becomes of large values while a segment is written: new ones go to a value file under the
/// number of the segment, made when the first one comes; those that lie apart stay where they are,
/// unread, unless their file is hardly used any more.
final class SegmentValueWriter {
    /// Values of at least so many bytes are kept apart.
    let bytesMin: Int
    private let number: UInt64
    private let segmentPath: String
    private let identity: StoreIdentity
    private let options: StoreOptions
    private let storage: any Storage
    private let sparse: Set<UInt64>
    // One thread writes a segment.
    @exclusivity(unchecked) private var file: ValueFileWriter?
    @exclusivity(unchecked) private var table = SegmentValueRows()

    /// - Parameter sparse: value files out of which values are moved when they are met.
    init(
        number: UInt64, segmentPath: String, identity: StoreIdentity, options: StoreOptions,
        storage: any Storage, moving sparse: Set<UInt64>
    ) {
        bytesMin = options.largeValueBytes
        self.number = number
        self.segmentPath = segmentPath
        self.identity = identity
        self.options = options
        self.storage = storage
        self.sparse = sparse
    }

    var isFull: Bool { unsafe file.map { $0.byteCount >= Limits.valueFileBytesMax } ?? false }

    /// Bytes of the value file so far; 0 if there is none.
    var byteCount: UInt64 {
        unsafe file?.byteCount ?? table[number]?.fileSize ?? 0
    }

    /// Writes a value to the value file.
    func add(_ value: ByteView) throws(StoreError) -> ValueHandle {
        if unsafe file == nil {
            unsafe file = try ValueFileWriter(
                number: number, path: FileName.values(number, besideSegmentAt: segmentPath),
                identity: identity, options: options, storage: storage)
        }
        let handle = unsafe try file!.append(value)
        unsafe table.count(handle)
        return handle
    }

    /// The value of an entry whose value file is to be given up; nil if it stays where it is. That
    /// is also what becomes of a value that cannot be read: whoever asks for it is told so, and
    /// nothing that may yet be saved goes away with its file.
    func valueToMove(
        of entry: Entry, from source: VersionTables
    ) throws(StoreError) -> [UInt8]? {
        guard !sparse.isEmpty else { return nil }
        let handle = try source.handle(of: entry)
        guard sparse.contains(handle.file) else { return nil }
        let file = try source.valueFile(handle)
        do {
            return try file.value(handle.block)
        } catch {
            file.noteDamage()
            return nil
        }
    }

    /// Takes note of a value that stays where it is.
    func carry(_ handle: ValueHandle, from source: VersionTables) throws(StoreError) {
        let fileSize = try source.valueFile(handle).fileSize
        unsafe table.count(handle)
        unsafe table.note(fileSize: fileSize, of: handle.file)
    }

    /// Makes the value file durable, if there is one. Returns what the segment is to say of its
    /// values.
    func finish() throws(StoreError) -> SegmentValueRows {
        if let file = unsafe file {
            let fileSize = try file.finish()
            unsafe table.note(fileSize: fileSize, of: number)
        }
        unsafe file = nil
        return unsafe table
    }
}
