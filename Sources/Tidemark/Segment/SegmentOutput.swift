/// The file of a segment that is being written: from front to back, in large pieces.
final class SegmentOutput {
    private static let bufferBytes = 256 << 10
    /// The disk is given pieces of this size.
    private static let writeBackBytes: UInt64 = 1 << 20
    /// The disk may be behind by so much.
    private static let unsyncedBytesMax: UInt64 = 8 << 20

    private let file: any StorageFile
    private let segment: UInt64
    private let identity: StoreIdentity
    private let isCompressing: Bool
    // One thread writes a segment.
    @exclusivity(unchecked) private var buffer: [UInt8] = []
    private var written: UInt64 = 0
    /// So far the disk has it, or has been told to take it at the least.
    private var begun: UInt64 = 0
    private var taken: UInt64 = 0
    /// Where a block is compressed before it is known whether that saves anything.
    @exclusivity(unchecked) private var packed: [UInt8] = []

    init(
        _ file: any StorageFile, segment: UInt64, identity: StoreIdentity, isCompressing: Bool
    ) {
        self.file = file
        self.segment = segment
        self.identity = identity
        self.isCompressing = isCompressing
        unsafe buffer.reserveCapacity(Self.bufferBytes + 64 << 10)
    }

    /// Where the next byte goes.
    var offset: UInt64 { unsafe written + UInt64(buffer.count) }

    func append(_ bytes: [UInt8]) throws(StoreError) {
        unsafe buffer.append(contentsOf: bytes)
        if unsafe buffer.count >= Self.bufferBytes { try flush() }
    }

    /// The same for what is large: it is not copied, apart from a small one.
    func append(_ bytes: UnsafeRawBufferPointer) throws(StoreError) {
        guard bytes.count >= Self.bufferBytes else {
            unsafe buffer.append(contentsOf: bytes)
            return
        }
        try flush()
        try unsafe file.write(bytes, at: written)
        written += UInt64(bytes.count)
        try writeBack()
    }

    func align(to alignment: Int) throws(StoreError) {
        let rest = Int(offset % UInt64(alignment))
        guard rest > 0 else { return }
        unsafe buffer.append(contentsOf: repeatElement(0, count: alignment - rest))
    }

    /// Appends a block that readers use where it lies, or, if they need not, compressed if that
    /// saves anything. Blocks begin at multiples of eight.
    func appendBlock(
        _ bytes: [UInt8], _ kind: BlockHeader.Kind, mayCompress: Bool = false
    ) throws(StoreError) -> BlockHandle {
        try bytes.withBytes { (view) throws(StoreError) in
            try unsafe appendBlock(view.buffer, kind, mayCompress: mayCompress)
        }
    }

    /// - Parameter mayCompress: nil: blocks of kind `data` only.
    func appendBlock(
        _ raw: UnsafeRawBufferPointer, _ kind: BlockHeader.Kind, mayCompress: Bool? = nil
    ) throws(StoreError) -> BlockHandle {
        let start = offset
        var storedCount = raw.count
        if isCompressing, mayCompress ?? (kind == .data) {
            if unsafe packed.count < raw.count {
                unsafe packed = [UInt8](repeating: 0, count: raw.count)
            }
            let count = unsafe packed.withUnsafeMutableBytes {
                unsafe LZ4Block.compress(raw, into: $0)
            }
            storedCount = count ?? raw.count
        }
        let header = BlockHeader(
            storedCount: storedCount, mark: UInt32(raw.count), segment: segment, kind: kind)
        let headerStart = unsafe buffer.count
        unsafe buffer.append(contentsOf: repeatElement(0, count: BlockHeader.byteCount))
        if storedCount < raw.count {
            unsafe buffer.append(contentsOf: packed[..<storedCount])
        } else {
            unsafe buffer.append(contentsOf: raw)
        }
        unsafe buffer.withUnsafeMutableBytes {
            unsafe header.seal(at: $0.baseAddress! + headerStart, identity)
        }
        try align(to: 8)
        if unsafe buffer.count >= Self.bufferBytes { try flush() }
        return BlockHandle(
            offset: start, storedCount: UInt32(storedCount), rawCount: UInt32(raw.count))
    }

    /// Appends the stored bytes of a data block of another file, as they are, under a header of
    /// this one.
    func appendStored(
        _ stored: UnsafeRawBufferPointer, rawCount: Int
    ) throws(StoreError) -> BlockHandle {
        let start = offset
        let header = BlockHeader(
            storedCount: stored.count, mark: UInt32(rawCount), segment: segment, kind: .data)
        let headerStart = unsafe buffer.count
        unsafe buffer.append(contentsOf: repeatElement(0, count: BlockHeader.byteCount))
        unsafe buffer.append(contentsOf: stored)
        unsafe buffer.withUnsafeMutableBytes {
            unsafe header.seal(at: $0.baseAddress! + headerStart, identity)
        }
        try align(to: 8)
        if unsafe buffer.count >= Self.bufferBytes { try flush() }
        return BlockHandle(
            offset: start, storedCount: UInt32(stored.count), rawCount: UInt32(rawCount))
    }

    /// Hands over to the operating system what it has not been given yet.
    func flush() throws(StoreError) {
        let offset = written
        unsafe try buffer.withBytes { (view) throws(StoreError) in
            try unsafe file.write(view.buffer, at: offset)
        }
        unsafe written += UInt64(buffer.count)
        unsafe buffer.removeAll(keepingCapacity: true)
        try writeBack()
    }

    /// Has the disk begin with what was written, and waits for what it was given long ago. So it
    /// works beside whoever makes the segment, and neither closing nor somebody else's commit waits
    /// until it has taken a whole one: file systems write the data of many files out together.
    private func writeBack() throws(StoreError) {
        guard written - begun >= Self.writeBackBytes else { return }
        let isBegun = try file.writeBack(begun..<written, isWaiting: false)
        begun = written
        guard written - taken >= Self.unsyncedBytesMax else { return }
        if isBegun {
            let end = written - Self.unsyncedBytesMax / 2
            _ = try file.writeBack(taken..<end, isWaiting: true)
            taken = end
        } else {
            try file.sync()
            taken = written
        }
    }

    /// Writes what is left and the footer, and makes the file durable. Returns its size.
    func finish(_ footer: [UInt8]) throws(StoreError) -> UInt64 {
        try append(footer)
        try flush()
        try file.sync()
        return written
    }
}
