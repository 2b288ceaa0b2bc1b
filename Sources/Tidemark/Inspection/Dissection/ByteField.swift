/// Some bytes of a file and what they are.
package struct ByteField: Hashable, Sendable {
    /// From the start of the file, or of a compressed block's content.
    package let offset: UInt64
    /// The bytes, or the first of them where they are too many to be read at once.
    package let bytes: ArraySlice<UInt8>
    /// How many bytes the field has.
    package let count: UInt64
    /// What it belongs to, as `entry 3`; empty if that is the block itself.
    package let group: String
    /// What the format calls it.
    package let name: String
    /// What it says; empty where the bytes are to be read as text.
    package let meaning: String
    /// Whether it is nobody's business: see ``shownBytes``.
    package var isSecret = false

    /// The bytes, or as many zeros in the place of a secret.
    package var shownBytes: ArraySlice<UInt8> {
        isSecret ? [UInt8](repeating: 0, count: bytes.count)[...] : bytes
    }

    package var endOffset: UInt64 { offset + count }
}

/// A piece of a file with all of its fields: a header, a block, a bucket, what fills up.
package struct FilePart: Sendable {
    package let title: String
    /// Every byte of the part, each in one field, in their order.
    package let fields: [ByteField]
    /// The same for what a compressed block holds, from offset 0 on; empty for all others.
    package let content: [ByteField]

    package init(title: String, fields: [ByteField], content: [ByteField] = []) {
        self.title = title
        self.fields = fields
        self.content = content
    }

    /// Of the first byte.
    package var offset: UInt64 { fields.first?.offset ?? 0 }
    package var endOffset: UInt64 { fields.last?.endOffset ?? 0 }
}

/// Takes bytes apart and keeps what each of them was.
///
/// Like ``ByteReader`` it checks every read, and hostile bytes end in ``Malformed``. What was taken
/// until then stays, and ``takeRest(_:_:)`` names what is left, so that no byte goes without.
struct FieldReader {
    private(set) var fields: [ByteField] = []
    /// The group of the fields that are taken from here on.
    var group = ""
    private let bytes: ArraySlice<UInt8>
    private let base: UInt64
    private(set) var position = 0

    /// - Parameter base: the offset of the first byte.
    init(_ bytes: ArraySlice<UInt8>, at base: UInt64) {
        self.bytes = bytes
        self.base = base
    }

    var remaining: Int { bytes.count - position }

    var isAtEnd: Bool { remaining == 0 }

    /// The byte that is next.
    var peeked: UInt8? { remaining > 0 ? bytes[bytes.startIndex + position] : nil }

    /// Takes bytes whose meaning is told from them.
    @discardableResult
    mutating func take(
        _ count: Int, _ name: String, _ meaning: (ArraySlice<UInt8>) -> String = { _ in "" }
    ) throws(Malformed) -> ArraySlice<UInt8> {
        guard count >= 0, count <= remaining else {
            throw Malformed("the \(name) is cut short")
        }
        let start = bytes.startIndex + position
        let taken = bytes[start..<start + count]
        if count > 0 {
            fields.append(
                ByteField(
                    offset: base + UInt64(position), bytes: taken, count: UInt64(count),
                    group: group, name: name, meaning: meaning(taken)))
        }
        position += count
        return taken
    }

    /// Takes bytes that are not to be shown.
    mutating func takeSecret(
        _ count: Int, _ name: String, _ meaning: String
    ) throws(Malformed) {
        try take(count, name) { _ in meaning }
        fields[fields.count - 1].isSecret = true
    }

    /// A little-endian number of one to eight bytes.
    @discardableResult
    mutating func number(
        _ byteCount: Int, _ name: String, _ meaning: (UInt64) -> String = { "\($0)" }
    ) throws(Malformed) -> UInt64 {
        var number: UInt64 = 0
        try take(byteCount, name) { bytes in
            number = Self.littleEndian(bytes)
            return meaning(number)
        }
        return number
    }

    static func littleEndian(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// A number of seven bits a byte, lowest first, at most 64 bits.
    @discardableResult
    mutating func varint(
        _ name: String, _ meaning: (UInt64) -> String = { "\($0)" }
    ) throws(Malformed) -> UInt64 {
        var number: UInt64 = 0
        var count = 0
        while true {
            guard count < remaining, count < 10 else {
                throw Malformed("the \(name) is no number")
            }
            let byte = bytes[bytes.startIndex + position + count]
            number |= UInt64(byte & 0x7F) << UInt64(7 * count)
            count += 1
            if byte < 0x80 { break }
        }
        let value = number
        try take(count, name) { _ in meaning(value) }
        return value
    }

    /// A varint that is a length or a count of what follows.
    mutating func count(
        _ name: String, eachAtLeast byteCount: Int = 1
    ) throws(Malformed) -> Int {
        let count = try varint(name)
        guard count <= UInt64(remaining / max(1, byteCount)) else {
            throw Malformed("the \(name) is more than there are")
        }
        return Int(count)
    }

    /// Text with its length in front.
    @discardableResult
    mutating func counted(_ name: String) throws(Malformed) -> ArraySlice<UInt8> {
        try take(try self.count("length"), name)
    }

    @discardableResult
    mutating func replica(_ name: String) throws(Malformed) -> ReplicaID {
        var id = ReplicaID(high: 0, low: 0)
        try take(16, name) { bytes in
            id = Self.replica(bytes)
            return id.description
        }
        return id
    }

    private static func replica(_ bytes: ArraySlice<UInt8>) -> ReplicaID {
        func half(_ bytes: ArraySlice<UInt8>) -> UInt64 {
            bytes.reduce(0) { $0 << 8 | UInt64($1) }
        }
        return ReplicaID(high: half(bytes.prefix(8)), low: half(bytes.dropFirst(8)))
    }

    /// A vector with the ids in it.
    mutating func vector(_ name: String) throws(Malformed) {
        for _ in 0..<(try count("\(name): entries", eachAtLeast: 17)) {
            try replica("\(name): id")
            try varint("\(name): counter")
        }
    }

    /// All that is left, whatever it is.
    mutating func takeRest(_ name: String, _ meaning: String = "") {
        // As many as there are can always be taken.
        _ = try? take(remaining, name) { _ in meaning }
    }
}

extension HybridTime {
    /// The meaning of a field that holds a time as a number.
    static func meaning(_ number: UInt64) -> String {
        HybridTime(rawValue: number).description
    }

    /// The same for milliseconds.
    static func meaning(ofMilliseconds number: UInt64) -> String {
        HybridTime(milliseconds: number, counter: 0).description
    }
}
