import Tidemark

/// Which kind of value bytes are: their second byte. Stored; never to be renumbered.
enum MergeableKind: UInt8, CaseIterable {
    case counter = 1
    case growOnlySet = 2
    case observedRemoveSet = 3
    case maximum = 4
    case minimum = 5
    case registerMap = 6

    /// The first byte of every value. It begins no UTF-8, so no text and no JSON is taken for one.
    static let mark: UInt8 = 0xF7
    /// The third byte.
    static let version: UInt8 = 1
}

/// Writes the bytes of a value.
struct MergeableWriter {
    private var writer = ByteWriter()

    init(_ kind: MergeableKind) {
        writer.append([MergeableKind.mark, kind.rawValue, MergeableKind.version])
    }

    var bytes: [UInt8] { writer.bytes }

    mutating func put(_ number: UInt64) {
        writer.putVarint(number)
    }

    mutating func put(_ count: Int) {
        writer.putCount(count)
    }

    /// 8 bytes, little-endian: for numbers that are as likely great as small.
    mutating func put(fixed number: UInt64) {
        writer.putFixed(number)
    }

    mutating func put(_ content: [UInt8]) {
        writer.putBytes(content)
    }

    mutating func put(_ flag: Bool) {
        writer.putFlag(flag)
    }
}

/// Reads the bytes of a value. They may come from anywhere: each length is bounded by what is there
/// before memory is taken, and only what the writer would have written is accepted.
struct MergeableReader {
    private let bytes: [UInt8]
    private var offset = 0

    init(_ bytes: [UInt8], _ kind: MergeableKind) throws(MergeableError) {
        self.bytes = bytes
        guard bytes.count <= MergeableLimits.bytesMax else {
            throw MergeableError(
                "\(bytes.count) bytes exceed \(MergeableLimits.bytesMax) of a mergeable value")
        }
        guard try takeByte() == MergeableKind.mark else {
            throw MergeableError("the value is no mergeable one")
        }
        let found = try takeByte()
        guard found == kind.rawValue else {
            throw MergeableError("the value is of kind \(found) and not of \(kind.rawValue)")
        }
        let version = try takeByte()
        guard version == MergeableKind.version else {
            throw MergeableError("the value is of version \(version), and 1 is known")
        }
    }

    func failure(_ problem: String) -> MergeableError {
        MergeableError("\(problem) before byte \(offset) of the value")
    }

    private mutating func takeByte() throws(MergeableError) -> UInt8 {
        guard offset < bytes.count else { throw failure("it ends too soon") }
        defer { offset += 1 }
        return bytes[offset]
    }

    mutating func takeNumber() throws(MergeableError) -> UInt64 {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), through: 63, by: 7) {
            let byte = try takeByte()
            let bits = UInt64(byte & 0x7F)
            guard shift < 63 || bits <= 1 else { throw failure("a number exceeds 64 bits") }
            number |= bits << shift
            if byte & 0x80 == 0 {
                guard byte != 0 || shift == 0 else { throw failure("a number is too long") }
                return number
            }
        }
        throw failure("a number exceeds 64 bits")
    }

    /// A number of parts that take at least so many bytes each.
    mutating func takeCount(bytesEach: Int) throws(MergeableError) -> Int {
        let count = try takeNumber()
        let max = (bytes.count - offset) / bytesEach
        guard count <= UInt64(max) else { throw failure("\(count) parts are too many") }
        return Int(count)
    }

    mutating func takeFixed() throws(MergeableError) -> UInt64 {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 8) {
            number |= UInt64(try takeByte()) << shift
        }
        return number
    }

    mutating func takeTime() throws(MergeableError) -> HybridTime {
        let time = HybridTime(rawValue: try takeFixed())
        guard time <= .greatest else { throw failure("a time is beyond all times") }
        return time
    }

    mutating func takeBytes() throws(MergeableError) -> [UInt8] {
        let count = try takeNumber()
        let max = min(MergeableLimits.elementBytesMax, bytes.count - offset)
        guard count <= UInt64(max) else { throw failure("\(count) bytes are too many") }
        defer { offset += Int(count) }
        return Array(bytes[offset..<offset + Int(count)])
    }

    mutating func takeFlag() throws(MergeableError) -> Bool {
        let byte = try takeByte()
        guard byte <= 1 else { throw failure("\(byte) is neither yes nor no") }
        return byte == 1
    }

    /// Parts come in strict order, so that there is one way only to write a value.
    func check(_ isInOrder: Bool) throws(MergeableError) {
        guard isInOrder else { throw failure("parts are out of order, or empty") }
    }

    func finish() throws(MergeableError) {
        let rest = bytes.count - offset
        guard rest == 0 else { throw failure("\(rest) bytes too many") }
    }
}

extension HybridTime {
    /// The last one that a store takes from elsewhere.
    static let greatest = HybridTime(rawValue: UInt64(Int64.max) - 1)
}

extension [UInt8] {
    /// The order of elements in what is written.
    func precedes(_ other: [UInt8]) -> Bool { lexicographicallyPrecedes(other) }
}
