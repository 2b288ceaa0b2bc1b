/// Makes the checksums of a deformed file right again, so that an input gets past them to the
/// checks of structure behind. What lies outside of the file is left alone.
enum Checksums {
    static func mend(_ bytes: inout [UInt8], name: String) {
        mendHeader(&bytes)
        if name.hasSuffix(".seg") {
            mendSegment(&bytes)
        } else if name.hasSuffix(".log") || name.hasSuffix(".val") {
            mendBlocks(&bytes)
        } else {
            // The manifest is one block up to its end.
            bytes.put32(UInt32(max(0, bytes.count - 104)), at: 88)
            bytes.put32(UInt32(max(0, bytes.count - 104)), at: 92)
            mendBlock(&bytes, at: 80, identity(of: bytes))
        }
    }

    static func mendHeader(_ bytes: inout [UInt8]) {
        bytes.put64(bytes.checksum(0..<72), at: 72)
    }

    /// Of the store whose file it says that it is; nil if its header is none.
    static func identity(of file: [UInt8]) -> StoreIdentity? {
        guard !file.isEmpty else { return nil }
        return unsafe file.withUnsafeBytes { FileHeader.identity(in: unsafe ByteView($0)) }
    }

    /// - Parameter identity: of the file, by its header.
    /// - Returns: where the block ends.
    @discardableResult
    static func mendBlock(
        _ bytes: inout [UInt8], at offset: Int, _ identity: StoreIdentity?
    ) -> Int {
        let end = offset + 24 + Int(bytes.number32(at: offset + 8))
        guard offset >= 0, end <= bytes.count else { return offset + 24 }
        bytes.put64(bytes.checksum((offset + 8)..<end, identity), at: offset)
        return end
    }

    static func mendSegment(_ bytes: inout [UInt8]) {
        let footer = bytes.count - 208
        guard footer >= 80 else { return }
        let identity = identity(of: bytes)
        // Data and changes by their directories, where these lie as they stand.
        let directory = bytes.place(at: footer + 88) + 24
        let count = Int(min(bytes.number32(at: directory), 4_096))
        for block in 0..<count {
            let mark = bytes.number32(at: directory + 8 + 8 * count + 4 * block)
            mendBlock(&bytes, at: Int(mark & 0x7FFF_FFFF) << 3, identity)
        }
        let rows = bytes.place(at: footer + 88 + 16) + 24
        for row in 0..<Int(min(bytes.number64(at: footer + 56), 4_096)) {
            let offset = Int(bytes.number32(at: rows + 16 * row + 4)) << 3
            mendBlock(&bytes, at: offset, identity)
        }
        let index = bytes.place(at: footer + 72)
        let bucketBytes = Int(min(bytes.number64(at: footer + 80), 1 << 20)) * 64
        let sums = bytes.place(at: footer + 88 + 32) + 24
        for chunk in stride(from: 0, to: bucketBytes, by: 65_536) {
            let end = index + min(bucketBytes, chunk + 65_536)
            bytes.put64(bytes.checksum((index + chunk)..<end), at: sums + chunk / 65_536 * 8)
        }
        for table in 0..<7 {
            mendBlock(&bytes, at: bytes.place(at: footer + 88 + 16 * table), identity)
        }
        bytes.put64(bytes.checksum(footer..<(footer + 200), identity), at: footer + 200)
    }

    /// Blocks that follow on one another from the header on.
    static func mendBlocks(_ bytes: inout [UInt8]) {
        let identity = identity(of: bytes)
        var offset = 80
        while offset + 24 <= bytes.count, bytes[offset + 20] != 0 {
            let end = mendBlock(&bytes, at: offset, identity)
            offset = (end + 7) & ~7
        }
    }
}
