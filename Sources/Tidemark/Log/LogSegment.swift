internal import Glibc
internal import Synchronization

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
    /// Of the store, as its manifest has it.
    let identity: StoreIdentity
    /// The bytes that the log may come to have. The file grows towards it in steps, so that a
    /// store that is seldom written to does not hold a whole log's space.
    let capacity: Int
    private let file: any StorageFile
    private let region: UnsafeMutableRawBufferPointer
    private let ownedMemory: Block?
    /// Whether what is reserved is written with zeros at once.
    private let writesZeros: Bool
    /// Bytes of the file: they may be stored to without fear for the space.
    ///
    /// Changed by the writer alone. Who looks into a store, or backs it up, asks beside it.
    var reserved: Int {
        get { reservedCount.load(ordering: .acquiring) }
        set { reservedCount.store(newValue, ordering: .releasing) }
    }
    private let reservedCount: Atomic<Int>
    /// Where the next block goes, in bytes from the start of the file.
    private(set) var appended: Int
    private(set) var epoch: UInt16
    /// Whether the last block was an empty one, there for its mark alone.
    private(set) var endsInMark = false
    /// Everything before this offset is known to be on disk.
    var durable = 0

    /// Where a block is put together that is written by a system call; made when first needed.
    private var scratch: UnsafeMutableRawPointer?
    /// The payload of the largest such block.
    static let scratchPayloadMax = 8 << 10

    /// By how much the file grows: little enough that a commit does not wait long for it.
    private static let stepBytes = 1 << 20

    /// Makes a file for a log.
    ///
    /// - Parameters:
    ///   - bytes: that will be stored soon and shall be reserved at once.
    ///   - isPrepared: whether to reserve all, so that no commit has to wait for the file to grow.
    ///   - writesZeros: whether to write what is reserved, for commits that are synced.
    init(
        creating path: String, number: UInt64, identity: StoreIdentity, capacity: Int,
        reserving bytes: Int, isPrepared: Bool, writesZeros: Bool, storage: any Storage
    ) throws(StoreError) {
        self.number = number
        self.path = path
        self.identity = identity
        self.writesZeros = writesZeros
        unsafe scratch = nil
        self.capacity = capacity
        let file = try storage.openFile(path, .create)
        self.file = file
        let reserved = isPrepared ? capacity : min(capacity, max(Self.stepBytes, bytes))
        reservedCount = Atomic(reserved)
        unsafe region = try file.map(size: capacity, reserving: reserved)
        ownedMemory = nil
        appended = 0
        epoch = 0
        if writesZeros { try writeZeros(0..<reserved) }
        // The name, and the first bytes that the size stands for, are durable before anything
        // counts on the log.
        try file.sync()
    }

    deinit {
        unsafe scratch?.deallocate()
    }

    /// Blocks of a file that were written once are synced in two thirds of the time that blocks
    /// take that were only reserved: the file system has nothing left to note about them. Where no
    /// commit is synced that is of no use, and the disk would have all of each log to write twice:
    /// what is reserved reads as zeros anyway.
    private func writeZeros(_ range: Range<Int>) throws(StoreError) {
        try Self.zeros.withBytes { (view) throws(StoreError) in
            var offset = range.lowerBound
            while offset < range.upperBound {
                let count = min(view.count, range.upperBound - offset)
                try unsafe file.write(
                    UnsafeRawBufferPointer(start: view.base, count: count), at: UInt64(offset))
                offset += count
            }
        }
    }

    private static let zeros = [UInt8](repeating: 0, count: 256 << 10)

    /// Makes a log of the file of one that nobody needs any more, renamed. Its blocks are allotted
    /// and written already, so that commits and syncs find them ready; what still stands in them
    /// never counts, since every block names its log's number.
    init(
        reusing oldPath: String, as path: String, number: UInt64, identity: StoreIdentity,
        capacity: Int, storage: any Storage
    ) throws(StoreError) {
        self.number = number
        self.path = path
        self.identity = identity
        // All of it was reserved, and more there is not to reserve.
        writesZeros = false
        unsafe scratch = nil
        self.capacity = capacity
        try storage.rename(oldPath, to: path)
        let file = try storage.openFile(path, .readWrite)
        self.file = file
        reservedCount = Atomic(capacity)
        unsafe region = try file.map(size: capacity, reserving: capacity)
        ownedMemory = nil
        appended = 0
        epoch = 0
    }

    /// Opens a log as a crash or a close left it. For a writer it is mapped; for a reader beside
    /// another process's writer it is copied, so that nothing moves underneath.
    init(
        opening path: String, number: UInt64, identity: StoreIdentity, isReadOnly: Bool,
        storage: any Storage
    ) throws(StoreError) {
        self.number = number
        self.path = path
        self.identity = identity
        writesZeros = true
        unsafe scratch = nil
        let file = try storage.openFile(path, isReadOnly ? .read : .readWrite)
        self.file = file
        let size = try file.size()
        guard size <= Limits.logBytesMax else {
            throw Malformed("a log of \(size) bytes is impossible").error(in: path, at: nil)
        }
        let reserved = Int(size)
        reservedCount = Atomic(reserved)
        if isReadOnly || size == 0 {
            capacity = Int(size)
            let copy = unsafe try Block(count: Int(size)) { (memory) throws(StoreError) in
                try unsafe file.read(into: memory, at: 0)
            }
            ownedMemory = copy
            unsafe region = UnsafeMutableRawBufferPointer(mutating: copy.bytes.buffer)
        } else {
            ownedMemory = nil
            capacity = max(reserved, try Self.capacity(in: file, size: reserved))
            unsafe region = try file.map(size: capacity, reserving: reserved)
            // All of it is about to be read: what the disk cannot read is an error here.
            try file.populate(offset: 0, count: reserved)
        }
        appended = 0
        epoch = 0
    }

    /// What the header says, as far as it can be true; whether it is whole is for others to see.
    private static func capacity(
        in file: any StorageFile, size: Int
    ) throws(StoreError) -> Int {
        guard size >= FileHeader.byteCount else { return 0 }
        let head = unsafe try Block(count: FileHeader.byteCount) { (memory) throws(StoreError) in
            try unsafe file.read(into: memory, at: 0)
        }
        let stated = unsafe UInt32(
            littleEndian: head.bytes.base.loadUnaligned(
                fromByteOffset: FileHeader.capacityOffset, as: UInt32.self))
        return Int(stated)
    }

    /// The whole file.
    var bytes: ByteView {
        unsafe ByteView(UnsafeRawBufferPointer(rebasing: region[..<reserved]))
    }

    /// The first bytes, which must be reserved.
    func bytes(through count: Int) -> ByteView {
        unsafe ByteView(UnsafeRawBufferPointer(rebasing: region[..<count]))
    }

    /// Behind the last byte.
    var limit: UnsafeRawPointer { unsafe UnsafeRawPointer(region.baseAddress! + region.count) }

    /// Where the header says when the log was made, from which the times of its entries count.
    var timeBase: UnsafeRawPointer {
        unsafe UnsafeRawPointer(region.baseAddress! + FileHeader.madeAtOffset)
    }

    /// The bytes that the file must have for a block; nil if it has them.
    func spaceNeeded(payload: Int) -> Int? {
        let needed = appended + payload + 2 * BlockHeader.byteCount + 2 * Self.alignment
        // What the last block of a log lacks of that it does not need.
        guard needed > reserved, reserved < capacity else { return nil }
        return min(capacity, max(reserved + Self.stepBytes, Pages.roundedUp(needed)))
    }

    /// Reserves space, so that a full disk is an error now. It may be used once ``reserved`` says
    /// so. Returns the bytes that there are then.
    func reserve(_ wanted: Int) throws(StoreError) -> Int {
        try file.reserve(wanted)
        if writesZeros {
            try writeZeros(reserved..<wanted)
        } else {
            // One call in place of a fault for each page, which would come in the next commits.
            file.populateForWriting(offset: reserved, count: wanted - reserved)
        }
        return wanted
    }

    /// Has all that is reserved in place for stores: for a log that is made ahead and in which no
    /// commit is synced. The first store into a page of a mapped file makes the file system note
    /// that it is to be written, which takes longer than to store a whole page.
    ///
    /// A piece at a time: meanwhile no other thread can map anything, as the memtable does.
    func populateForWriting() {
        for offset in stride(from: 0, to: reserved, by: Self.stepBytes) {
            file.populateForWriting(
                offset: offset, count: min(Self.stepBytes, reserved - offset))
        }
    }

    /// Gives back the space behind what was appended: for a log that is closed.
    func releaseSpace() throws(StoreError) {
        let wanted = Pages.roundedUp(appended + BlockHeader.byteCount)
        guard wanted < reserved else { return }
        try file.truncate(to: UInt64(wanted))
        reserved = wanted
    }

    /// Bytes of payload that may be stored now.
    var writablePayload: Int {
        (reserved & ~(Self.alignment - 1)) - appended - BlockHeader.byteCount
            - Self.endByteCount
    }

    /// Bytes that a block of operations may still take, its header not counted.
    var remainingPayload: Int {
        // Rounded down, since a header that a crash or a hostile hand left may state anything, and
        // a block is filled up to a multiple of the alignment.
        (capacity & ~(Self.alignment - 1)) - appended - BlockHeader.byteCount
            - Self.endByteCount
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

    /// Where the payload of the next block is to be stored.
    var payloadStart: UnsafeMutableRawPointer {
        unsafe region.baseAddress! + (appended + BlockHeader.byteCount)
    }

    /// Where the payload of a block is put together that ``writeScratch(payloadCount:)`` writes.
    func scratchPayloadStart() -> UnsafeMutableRawPointer {
        let start =
            unsafe scratch
            ?? UnsafeMutableRawPointer.allocate(
                byteCount: BlockHeader.byteCount + Self.scratchPayloadMax + Self.alignment,
                alignment: Self.alignment)
        unsafe scratch = start
        return unsafe start + BlockHeader.byteCount
    }

    /// Completes the block whose payload was just stored.
    func seal(payloadCount: Int, kind: BlockHeader.Kind = .operations) {
        let start = unsafe region.baseAddress! + appended
        let header = unsafe header(at: start, payloadCount: payloadCount, kind, mark: durable)
        unsafe header.seal(at: start, identity)
        appended += header.blockByteCount
        endsInMark = payloadCount == 0
    }

    /// A block that lacks its checksum, and without it is none.
    struct PreparedBlock {
        fileprivate let byteCount: Int
        fileprivate let checksum: UInt64
    }

    /// Prepares the block whose payload was just stored. It belongs to the log when it is added.
    ///
    /// - Parameter mark: how far the log is known to be durable.
    func prepare(payloadCount: Int, mark: Int) -> PreparedBlock {
        let start = unsafe region.baseAddress! + appended
        let header = unsafe header(at: start, payloadCount: payloadCount, .operations, mark: mark)
        let checksum = unsafe header.write(at: start, identity)
        return PreparedBlock(byteCount: header.blockByteCount, checksum: checksum)
    }

    func add(_ block: PreparedBlock) {
        let start = unsafe region.baseAddress! + appended
        unsafe start.storeBytes(of: block.checksum.littleEndian, as: UInt64.self)
        appended += block.byteCount
        endsInMark = false
    }

    /// Completes the block in the scratch memory and writes it by a system call: for a block that
    /// is synced at once. A sync takes away the permission to store into the pages that it wrote,
    /// so the next store into one of them costs a fault and work in the file system, which a
    /// written page does not.
    ///
    /// - Throws: `diskFull`, `inputOutput`; the log is as it was, and nothing may follow in it.
    func writeScratch(payloadCount: Int) throws(StoreError) {
        let start = unsafe scratchPayloadStart() - BlockHeader.byteCount
        let header = unsafe header(
            at: start, payloadCount: payloadCount, .operations, mark: durable)
        unsafe header.seal(at: start, identity)
        let count = header.blockByteCount
        try unsafe file.write(
            UnsafeRawBufferPointer(start: start, count: count), at: UInt64(appended))
        appended += count
        endsInMark = false
    }

    /// Fills the last bytes of a block. Returns its header, which is still to be written.
    private func header(
        at start: UnsafeMutableRawPointer, payloadCount: Int, _ kind: BlockHeader.Kind, mark: Int
    ) -> BlockHeader {
        precondition(
            payloadCount <= reserved - appended - BlockHeader.byteCount,
            "a block of \(payloadCount) bytes was written past the end of its log")
        // The zeros up to where the next block may begin belong to this one and its checksum.
        let paddedCount = Self.rounded(payloadCount)
        for index in payloadCount..<paddedCount {
            unsafe start.storeBytes(
                of: 0, toByteOffset: BlockHeader.byteCount + index, as: UInt8.self)
        }
        return BlockHeader(
            storedCount: paddedCount, mark: UInt32(mark), segment: number, kind: kind,
            epoch: epoch)
    }

    /// Writes the last block: nothing follows in this log.
    func end() {
        seal(payloadCount: 0, kind: .endOfLog)
    }

    /// Makes everything up to the offset durable.
    func sync(through offset: Int) throws(StoreError) {
        try file.syncMapping(offset: 0, count: offset)
    }

    /// After a sync that failed: the kernel may take back what it could not write, so that the
    /// mapping shows older bytes. What is there now stays; whether it is what was appended
    /// ``checkIsWhole()`` tells.
    func detach() throws(StoreError) {
        try file.detachMapping(count: appended)
    }

    /// The same as ``checkIsWhole()`` if the system may have let go of anything that was appended,
    /// and O(1) if it says that it has not.
    func checkNothingIsLost() throws(StoreError) {
        if file.mayHaveLostWrites() { try checkIsWhole() }
    }

    /// Compares the checksums of all that was appended. O(bytes).
    ///
    /// - Throws: `corruption` if the mapping shows something else.
    func checkIsWhole() throws(StoreError) {
        guard appended > FileHeader.byteCount else { return }
        try file.populate(offset: 0, count: appended)
        var scanner = LogScanner(bytes.prefix(appended), segment: number, identity)
        while scanner.next() != nil {}
        guard scanner.offset == appended else {
            throw StoreError(
                .corruption,
                "the log does not read as it was written: the disk failed to take a part of it, "
                    + "and the system has let go of that. Close the store, remedy the cause and "
                    + "open it again; what was acknowledged as durable is there then",
                location: StoreError.Location(path: path, offset: UInt64(scanner.offset)))
        }
    }

    static func rounded(_ count: Int) -> Int {
        (count + alignment - 1) & ~(alignment - 1)
    }
}
