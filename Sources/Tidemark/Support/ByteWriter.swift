/// Builds the bytes of a block in memory. Everything is little-endian or LEB128.
struct ByteWriter {
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

    mutating func append(varint number: Int) {
        append(varint: UInt64(number))
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

    /// The length as a varint, then the bytes of UTF-8.
    mutating func append(counted text: String) {
        append(varint: text.utf8.count)
        bytes.append(contentsOf: text.utf8)
    }

    mutating func append(_ id: ReplicaID) {
        append(fixed64: id.high.byteSwapped)
        append(fixed64: id.low.byteSwapped)
    }

    /// Whole vectors, with the replicas spelled out; for the few places outside of segments.
    mutating func append(_ vector: VersionVector) {
        append(varint: vector.count)
        for dot in vector.dots {
            append(dot.replica)
            append(varint: dot.counter)
        }
    }

    private mutating func appendFixed(_ number: some FixedWidthInteger) {
        unsafe withUnsafeBytes(of: number.littleEndian) { unsafe bytes.append(contentsOf: $0) }
    }
}
