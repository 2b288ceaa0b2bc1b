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
    mutating func append<Problem: Error>(
        _ body: (inout [UInt8]) throws(Problem) -> Void
    ) throws(Problem) {
        try body(&bytes)
    }

    mutating func reserve(_ count: Int) {
        bytes.reserveCapacity(count)
    }

    /// For numbers that stand behind each other: they are added as one piece.
    @inline(__always)
    mutating func putPiece(_ body: (inout NumberPiece) -> Void) {
        unsafe withUnsafeTemporaryAllocation(
            byteCount: NumberPiece.byteCountMax, alignment: 8
        ) { memory in
            guard let base = memory.baseAddress else { return }
            var piece = unsafe NumberPiece(at: base)
            body(&piece)
            // What was put is within the memory: each number was checked to have room.
            unsafe bytes.append(
                contentsOf: UnsafeRawBufferPointer(start: base, count: piece.count))
        }
    }
}

/// Numbers that are put together before they are added to a message: an array to which bytes are
/// added one by one is asked for its room with each of them.
@safe
struct NumberPiece {
    private static let varintBytesMax = 10
    /// Six varints and a fixed number: what a version says beside its key and value.
    static let byteCountMax = 6 * varintBytesMax + 8

    private let base: UnsafeMutableRawPointer
    private(set) var count = 0

    /// - Parameter base: memory of ``byteCountMax`` bytes that outlives this.
    fileprivate init(at base: UnsafeMutableRawPointer) {
        unsafe self.base = base
    }

    /// As ``ByteWriter/putVarint(_:)``.
    @inline(__always)
    mutating func putVarint(_ number: UInt64) {
        precondition(
            count + Self.varintBytesMax <= Self.byteCountMax, "a piece has no room for a number")
        var rest = number
        while rest >= 0x80 {
            put(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        put(UInt8(truncatingIfNeeded: rest))
    }

    @inline(__always)
    mutating func putCount(_ count: Int) {
        putVarint(UInt64(count))
    }

    /// As ``ByteWriter/putFixed(_:)``.
    @inline(__always)
    mutating func putFixed(_ number: UInt64) {
        precondition(count + 8 <= Self.byteCountMax, "a piece has no room for a number")
        unsafe base.storeBytes(of: number.littleEndian, toByteOffset: count, as: UInt64.self)
        count += 8
    }

    @inline(__always)
    private mutating func put(_ byte: UInt8) {
        unsafe base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count += 1
    }
}
