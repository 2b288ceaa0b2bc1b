extension [UInt8] {
    /// 0 behind the end.
    func number32(at offset: Int) -> UInt32 {
        guard offset >= 0, offset + 4 <= count else { return 0 }
        return (0..<4).reduce(0) { $0 | UInt32(self[offset + $1]) << UInt32(8 * $1) }
    }

    func number64(at offset: Int) -> UInt64 {
        UInt64(number32(at: offset)) | UInt64(number32(at: offset + 4)) << 32
    }

    mutating func put32(_ number: UInt32, at offset: Int) {
        guard offset >= 0, offset + 4 <= count else { return }
        for index in 0..<4 {
            self[offset + index] = UInt8(truncatingIfNeeded: number >> UInt32(8 * index))
        }
    }

    mutating func put64(_ number: UInt64, at offset: Int) {
        guard offset >= 0, offset + 8 <= count else { return }
        put32(UInt32(truncatingIfNeeded: number), at: offset)
        put32(UInt32(truncatingIfNeeded: number >> 32), at: offset + 4)
    }

    func slice(_ start: Int, _ length: Int) -> [UInt8] {
        guard start >= 0, length >= 0, start <= count, length <= count - start else { return [] }
        return Array(self[start..<(start + length)])
    }

    /// XXH3-64 of a range, with the secret of a store if there is one; 0 if it lies outside.
    func checksum(_ range: Range<Int>, _ identity: StoreIdentity? = nil) -> UInt64 {
        guard range.lowerBound >= 0, range.upperBound <= count else { return 0 }
        return unsafe withUnsafeBytes { bytes in
            let part = unsafe UnsafeRawBufferPointer(rebasing: bytes[range])
            guard let identity else { return unsafe checksum64(part) }
            return unsafe identity.checksum(part)
        }
    }

    /// The offset of a field that may be too large to be one.
    func place(at offset: Int) -> Int {
        Int(Swift.min(number64(at: offset), UInt64(1) << 40))
    }
}
