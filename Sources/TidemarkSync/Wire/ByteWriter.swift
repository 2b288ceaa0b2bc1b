/// Builds the body of a message.
struct ByteWriter {
    private(set) var bytes: [UInt8] = []

    mutating func put(_ byte: UInt8) {
        bytes.append(byte)
    }

    /// LEB128: seven bits a byte, low ones first, the top bit set on all but the last byte.
    mutating func putVarint(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    mutating func putCount(_ count: Int) {
        putVarint(UInt64(count))
    }

    /// Little-endian, in the width of the number.
    mutating func putFixed(_ number: some FixedWidthInteger & UnsignedInteger) {
        // The buffer is that of the number, and copied during the call.
        unsafe withUnsafeBytes(of: number.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }

    mutating func putBytes(_ content: some Collection<UInt8>) {
        putCount(content.count)
        bytes.append(contentsOf: content)
    }

    mutating func putText(_ text: String) {
        putBytes(text.utf8)
    }

    mutating func putFlag(_ flag: Bool) {
        put(flag ? 1 : 0)
    }

    mutating func append(_ content: some Sequence<UInt8>) {
        bytes.append(contentsOf: content)
    }

    /// For what writes itself.
    mutating func append<Failure: Error>(
        _ body: (inout [UInt8]) throws(Failure) -> Void
    ) throws(Failure) {
        try body(&bytes)
    }

    mutating func reserve(_ count: Int) {
        bytes.reserveCapacity(count)
    }
}
