/// A file that is a header and one block, and is only ever replaced as a whole.
struct OneBlockFile {
    let kind: FileHeader.Kind
    let blockKind: BlockHeader.Kind
    /// As errors call it.
    let title: String
    let bytesMax: UInt64

    func bytes(
        _ content: [UInt8], _ identity: StoreIdentity, at milliseconds: UInt64
    ) -> [UInt8] {
        var block = [UInt8](repeating: 0, count: BlockHeader.byteCount) + content
        let header = BlockHeader(
            storedCount: content.count, mark: UInt32(content.count), segment: 0, kind: blockKind)
        unsafe block.withUnsafeMutableBytes { unsafe header.seal(at: $0.baseAddress!, identity) }
        return FileHeader(kind: kind, segment: 0, identity: identity, madeAt: milliseconds).bytes
            + block
    }

    /// Reads the block.
    ///
    /// - Parameters:
    ///   - identity: of the store; nil if the file says what it is.
    ///   - decode: takes the content apart.
    /// - Throws: `notAStore` if there is no such file, `formatTooNew`, `formatTooOld`,
    ///   `corruption`, `inputOutput`.
    func read<Content>(
        _ path: String, _ identity: StoreIdentity?, _ storage: any Storage,
        _ decode: (ByteView, StoreIdentity) throws(Malformed) -> Content
    ) throws(StoreError) -> Content {
        let file = try storage.openFile(path, .read)
        let size = try file.size()
        guard size <= bytesMax else {
            throw Malformed("a \(title) of \(size) bytes is impossible").error(in: path, at: nil)
        }
        let whole = unsafe try Block(count: Int(size)) { (memory) throws(StoreError) in
            try unsafe file.read(into: memory, at: 0)
        }
        let header = try FileHeader(
            whole.bytes, expecting: kind, segment: 0, identity: identity, path: path)
        let offset = UInt64(FileHeader.byteCount)
        let count = whole.count - FileHeader.byteCount - BlockHeader.byteCount
        guard count > 0, count <= Int(UInt32.max) else {
            throw Malformed("the \(title) is cut short").error(in: path, at: offset)
        }
        let handle = BlockHandle(
            offset: offset, storedCount: UInt32(count), rawCount: UInt32(count))
        let block = try file.readBlock(handle, kind: blockKind, segment: 0, header.identity)
        do {
            return try decode(block.bytes, header.identity)
        } catch {
            throw error.error(in: path, at: offset)
        }
    }
}
