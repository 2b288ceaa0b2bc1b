/// One block in memory: checked against its checksum, decompressed, and free when the last holder
/// lets go.
@safe
final class Block: @unchecked Sendable {
    // Unchecked: the memory is filled before `init` returns and only read afterwards.
    private let memory: UnsafeMutableRawBufferPointer

    /// Readable behind the bytes: an entry's stamp is decoded without a bound.
    static let slackBytes = 64

    /// - Parameter fill: writes all of the memory; what it throws is thrown on.
    init(
        count: Int, fill: (UnsafeMutableRawBufferPointer) throws(StoreError) -> Void
    ) throws(StoreError) {
        let whole = unsafe Pages.allocate(byteCount: count + Self.slackBytes)
        unsafe UnsafeMutableRawBufferPointer(rebasing: whole[count...])
            .initializeMemory(as: UInt8.self, repeating: 0)
        unsafe memory = UnsafeMutableRawBufferPointer(rebasing: whole[..<count])
        // If it throws, the object is complete already and `deinit` gives the memory back.
        try unsafe fill(memory)
    }

    deinit {
        unsafe Pages.deallocate(
            UnsafeMutableRawBufferPointer(
                start: memory.baseAddress, count: memory.count + Self.slackBytes))
    }

    /// Valid as long as the block is held.
    var bytes: ByteView { unsafe ByteView(UnsafeRawBufferPointer(memory)) }

    var count: Int { unsafe memory.count }
}

/// Where a block lies in its file.
struct BlockHandle: Hashable {
    var offset: UInt64
    var storedCount: UInt32
    var rawCount: UInt32

    var endOffset: UInt64 { offset + UInt64(BlockHeader.byteCount) + UInt64(storedCount) }
}

extension StorageFile {
    /// Reads a block and checks everything there is to check about it before anyone sees a byte.
    ///
    /// - Parameters:
    ///   - rawBytesMax: the bound on the memory taken for it.
    /// - Throws: `corruption` with the file and the block's offset; what the read throws.
    func readBlock(
        _ handle: BlockHandle, kind: BlockHeader.Kind, segment: UInt64, _ identity: StoreIdentity
    ) throws(StoreError) -> Block {
        let stored = unsafe try Block(count: BlockHeader.byteCount + Int(handle.storedCount)) {
            (memory) throws(StoreError) in
            try unsafe read(into: memory, at: handle.offset)
        }
        let path = path
        func damaged(_ what: String) -> StoreError {
            Malformed("block \(kind): \(what)").error(in: path, at: handle.offset)
        }
        let header = unsafe BlockHeader(at: stored.bytes.base)
        guard header.storedCount == handle.storedCount,
            unsafe BlockHeader.checksum(
                at: stored.bytes.base, storedCount: Int(handle.storedCount), identity)
                == header.checksum
        else { throw damaged("the checksum does not match") }
        guard header.kind == kind.rawValue, header.mark == handle.rawCount,
            header.segment == UInt32(truncatingIfNeeded: segment), header.epoch == 0
        else { throw damaged("the header is of another block") }
        let payload = unsafe ByteView(
            base: stored.bytes.base + BlockHeader.byteCount, count: Int(handle.storedCount))
        return unsafe try Block(count: Int(handle.rawCount)) { (memory) throws(StoreError) in
            if handle.storedCount == handle.rawCount {
                unsafe memory.copyMemory(from: payload.buffer)
            } else if unsafe !LZ4Block.decompress(payload.buffer, into: memory) {
                throw damaged("it does not decompress to \(handle.rawCount) bytes")
            }
        }
    }
}
