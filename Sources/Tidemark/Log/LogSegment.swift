internal import Glibc

/// The active segment: a preallocated file, mapped, to which commits are appended as blocks.
///
/// A store into the mapping is in the page cache at once, so what was appended survives the end
/// of the process without a system call; `sync` makes it survive the loss of power. Thread rule:
/// appending under the writer lock; reading what was appended from anywhere, through a memtable.
/// A crash leaves a prefix of the appended blocks (of the process), or any subset of the pages
/// written since the last sync (of the machine): `LogScanner` finds what counts.
@safe
final class LogSegment: @unchecked Sendable {
    // Unchecked: `appended`, `epoch` and `durable` change only under the store's writer lock; the
    // mapped bytes below `appended` never change.

    /// Blocks begin at multiples of this, so that a scanner knows where to look for the next one.
    static let alignment = 8
    /// Always left free for the block that ends the log.
    static let endByteCount = BlockHeader.byteCount

    let number: UInt64
    let path: String
    let capacity: Int
    private let file: any StorageFile
    private let region: UnsafeMutableRawBufferPointer
    private let ownedMemory: Block?
    /// Where the next block goes, in bytes from the start of the file.
    private(set) var appended: Int
    private(set) var epoch: UInt16
    /// Whether the last block was an empty one, there for its mark alone.
    private(set) var endsInMark = false
    /// Everything before this offset is known to be on disk.
    var durable = 0

    /// Makes a file for a log that will be used later: everything reserved and nothing in it.
    ///
    /// - Parameter isPrepared: whether to write the zeros and bring in the pages, so that neither
    ///   a commit nor a sync has to wait for the file system to allot them later.
    init(
        creating path: String, number: UInt64, capacity: Int, isPrepared: Bool,
        storage: any Storage
    ) throws(StoreError) {
        self.number = number
        self.path = path
        self.capacity = capacity
        let file = try storage.openFile(path, .create)
        self.file = file
        unsafe region = try file.map(size: capacity)
        ownedMemory = nil
        appended = 0
        epoch = 0
        if isPrepared {
            let zeros = [UInt8](repeating: 0, count: 1 << 20)
            try zeros.withBytes { (view) throws(StoreError) in
                var offset = 0
                while offset < capacity {
                    let count = min(zeros.count, capacity - offset)
                    try unsafe file.write(
                        UnsafeRawBufferPointer(start: view.base, count: count),
                        at: UInt64(offset))
                    offset += count
                }
            }
            try file.sync()
            // Touching each page maps it now rather than at the commit that first needs it.
            for offset in stride(from: 0, to: capacity, by: 4_096) {
                unsafe region.storeBytes(of: 0, toByteOffset: offset, as: UInt8.self)
            }
        } else {
            // The size must be durable before anything counts on the log: one that is found
            // shorter was cut.
            try file.sync()
        }
    }

    /// Opens a log as a crash or a close left it. For a writer it is mapped; for a reader beside
    /// another process's writer it is copied, so that nothing moves underneath.
    init(
        opening path: String, number: UInt64, isReadOnly: Bool, storage: any Storage
    ) throws(StoreError) {
        self.number = number
        self.path = path
        let file = try storage.openFile(path, isReadOnly ? .read : .readWrite)
        self.file = file
        let size = try file.size()
        guard size <= UInt64(UInt32.max) else {
            throw Malformed("a log of \(size) bytes is impossible").error(in: path, at: nil)
        }
        capacity = Int(size)
        if isReadOnly || size == 0 {
            let copy = unsafe try Block(count: Int(size)) { (memory) throws(StoreError) in
                try unsafe file.read(into: memory, at: 0)
            }
            ownedMemory = copy
            unsafe region = UnsafeMutableRawBufferPointer(mutating: copy.bytes.buffer)
        } else {
            ownedMemory = nil
            unsafe region = try file.map(size: capacity)
        }
        appended = 0
        epoch = 0
    }

    /// The whole file.
    var bytes: ByteView { unsafe ByteView(UnsafeRawBufferPointer(region)) }

    /// Bytes that a block of operations may still take, its header not counted.
    var remainingPayload: Int {
        capacity - appended - BlockHeader.byteCount - Self.endByteCount
    }

    /// Begins an empty log.
    func begin(header: FileHeader) {
        unsafe header.bytes.withUnsafeBytes { bytes in
            unsafe region.copyMemory(from: bytes)
        }
        appended = FileHeader.byteCount
    }

    /// Goes on after what a scan found. Blocks of the new epoch cannot be taken for older ones
    /// that may still lie behind them.
    func resume(at offset: Int, afterEpoch epochLast: UInt16) {
        appended = offset
        epoch = epochLast + 1
        endsInMark = true
    }

    /// Where the payload of the next block is to be written.
    var payloadStart: UnsafeMutableRawPointer {
        unsafe region.baseAddress! + (appended + BlockHeader.byteCount)
    }

    /// Completes the block whose payload was just written.
    func seal(payloadCount: Int, kind: BlockHeader.Kind = .operations) {
        precondition(
            payloadCount <= capacity - appended - BlockHeader.byteCount,
            "a block of \(payloadCount) bytes was written past the end of its log")
        // The zeros up to where the next block may begin belong to this one and its checksum.
        let paddedCount = Self.rounded(payloadCount)
        for index in payloadCount..<paddedCount {
            unsafe payloadStart.storeBytes(of: 0, toByteOffset: index, as: UInt8.self)
        }
        let header = BlockHeader(
            storedCount: paddedCount, mark: UInt32(durable), segment: number, kind: kind,
            epoch: epoch)
        unsafe header.seal(at: region.baseAddress! + appended)
        appended += BlockHeader.byteCount + paddedCount
        endsInMark = payloadCount == 0
    }

    /// Writes the last block: nothing follows in this log.
    func end() {
        seal(payloadCount: 0, kind: .endOfLog)
    }

    /// Makes everything up to the offset durable.
    func sync(through offset: Int) throws(StoreError) {
        try file.syncMapping(offset: 0, count: offset)
    }

    static func rounded(_ count: Int) -> Int {
        (count + alignment - 1) & ~(alignment - 1)
    }
}
