/// Takes the body of a message apart. Everything is bounded by what is really there before any
/// memory is taken for it; what does not fit throws `badMessage` with the position.
struct ByteReader {
    let bytes: [UInt8]
    private let end: Int
    private(set) var position = 0

    init(_ bytes: ArraySlice<UInt8>) {
        self.init(Array(bytes))
    }

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        end = bytes.count
    }

    var remaining: Int { end - position }

    func failure(_ problem: String) -> SyncError {
        .badMessage("\(problem) at byte \(position) of the body")
    }

    @inline(__always)
    mutating func takeByte() throws(SyncError) -> UInt8 {
        guard position < end else { throw failure("the message ends too soon") }
        defer { position += 1 }
        return bytes[position]
    }

    @inline(__always)
    mutating func takeVarint() throws(SyncError) -> UInt64 {
        if position < end, bytes[position] < 0x80 {
            defer { position += 1 }
            return UInt64(bytes[position])
        }
        return try takeLongVarint()
    }

    private mutating func takeLongVarint() throws(SyncError) -> UInt64 {
        var number: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            let byte = try takeByte()
            let bits = UInt64(byte & 0x7F)
            // The tenth byte holds the 64th bit alone.
            guard shift < 63 || (shift == 63 && bits <= 1) else {
                throw failure("a number exceeds 64 bits")
            }
            number |= bits << shift
            if byte & 0x80 == 0 {
                return number
            }
            shift += 7
        }
    }

    /// A count of things that take at least so many bytes each, and of which there are at most so
    /// many.
    mutating func takeCount(
        of what: StaticString, bytesEach: Int = 1, max: Int = .max
    ) throws(SyncError) -> Int {
        let count = try takeVarint()
        guard count <= UInt64(min(max, remaining / bytesEach)) else {
            throw failure("\(count) \(what) are more than there can be")
        }
        return Int(count)
    }

    @inline(__always)
    mutating func takeFixed<Number: FixedWidthInteger & UnsignedInteger>(
        _ type: Number.Type
    ) throws(SyncError) -> Number {
        let count = Number.bitWidth / 8
        guard remaining >= count else { throw failure("the message ends too soon") }
        var number: Number = 0
        for index in 0..<count {
            number |= Number(truncatingIfNeeded: bytes[position + index]) << Number(8 * index)
        }
        position += count
        return number
    }

    mutating func takeBytes(_ what: StaticString, max: Int) throws(SyncError) -> [UInt8] {
        Array(bytes[try takeRange(what, max: max)])
    }

    /// Where so many bytes lie as are told in front of them.
    @inline(__always)
    mutating func takeRange(_ what: StaticString, max: Int) throws(SyncError) -> Range<Int> {
        let count = try takeVarint()
        guard count <= UInt64(min(max, remaining)) else {
            throw failure("\(count) bytes of \(what) are more than there can be")
        }
        defer { position += Int(count) }
        return position..<position + Int(count)
    }

    mutating func takeText(_ what: StaticString, max: Int) throws(SyncError) -> String {
        let content = try takeBytes(what, max: max)
        guard let text = String(validating: content, as: UTF8.self) else {
            throw failure("the \(what) is not UTF-8")
        }
        return text
    }

    mutating func takeFlag() throws(SyncError) -> Bool {
        switch try takeByte() {
        case 0: return false
        case 1: return true
        case let other: throw failure("\(other) is neither yes nor no")
        }
    }

    /// Nothing may be left: bytes that nobody reads are bytes that somebody meant differently.
    func finish() throws(SyncError) {
        guard remaining == 0 else { throw failure("\(remaining) bytes too many") }
    }
}
