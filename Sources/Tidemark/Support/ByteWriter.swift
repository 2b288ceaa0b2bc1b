/// Builds the bytes of a block in memory. Everything is little-endian or LEB128.
struct ByteWriter: ByteSink {
    private(set) var bytes: [UInt8] = []

    var count: Int { bytes.count }

    mutating func reserve(_ count: Int) {
        bytes.reserveCapacity(count)
    }

    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
    }

    mutating func append(byte: UInt8) {
        bytes.append(byte)
    }

    mutating func append(fixed32 number: UInt32) {
        appendFixed(number)
    }

    mutating func append(fixed64 number: UInt64) {
        appendFixed(number)
    }

    /// LEB128: seven bits a byte, the lowest first, the eighth bit set on all but the last.
    mutating func append(varint number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    mutating func append(_ view: ByteView) {
        unsafe bytes.append(contentsOf: view.buffer)
    }

    mutating func append(_ array: [UInt8]) {
        bytes.append(contentsOf: array)
    }

    /// The length as a varint, then the bytes.
    mutating func append(counted view: ByteView) {
        append(varint: view.count)
        append(view)
    }

    private mutating func appendFixed(_ number: some FixedWidthInteger) {
        unsafe withUnsafeBytes(of: number.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }
}
