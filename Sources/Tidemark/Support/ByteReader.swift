/// What a decoder throws when bytes do not have the form they must have. Whoever knows the file
/// and the offset turns it into a ``StoreError``.
struct Malformed: Error {
    let what: String

    init(_ what: String) {
        self.what = what
    }

    /// As a damage of the given place.
    func error(in path: String, at offset: UInt64?) -> StoreError {
        StoreError(
            .corruption, "\(what); run `verify` to find the extent of the damage",
            location: StoreError.Location(path: path, offset: offset))
    }
}

/// Takes bytes apart. Every read is checked against the end, every number against its bounds;
/// hostile bytes end in ``Malformed``, never in a trap.
struct ByteReader {
    private let view: ByteView
    private(set) var offset = 0

    init(_ view: ByteView) {
        self.view = view
    }

    var remaining: Int { view.count - offset }

    var isAtEnd: Bool { offset == view.count }

    mutating func byte() throws(Malformed) -> UInt8 {
        guard remaining >= 1 else { throw Malformed("a byte is missing") }
        defer { offset += 1 }
        return unsafe view.base.load(fromByteOffset: offset, as: UInt8.self)
    }

    mutating func fixed32() throws(Malformed) -> UInt32 {
        guard remaining >= 4 else { throw Malformed("a 32-bit number is cut short") }
        defer { offset += 4 }
        return unsafe UInt32(
            littleEndian: view.base.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    mutating func fixed64() throws(Malformed) -> UInt64 {
        guard remaining >= 8 else { throw Malformed("a 64-bit number is cut short") }
        defer { offset += 8 }
        return unsafe UInt64(
            littleEndian: view.base.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    @inline(__always)
    mutating func varint() throws(Malformed) -> UInt64 {
        if remaining >= 1 {
            let first = unsafe view.base.load(fromByteOffset: offset, as: UInt8.self)
            if first < 0x80 {
                offset += 1
                return UInt64(first)
            }
        }
        return try longVarint()
    }

    private mutating func longVarint() throws(Malformed) -> UInt64 {
        var number: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            let next = try byte()
            // The tenth byte may hold only the last of the 64 bits.
            guard shift < 63 || next <= 1 else { throw Malformed("a varint exceeds 64 bits") }
            number |= UInt64(next & 0x7F) << shift
            if next < 0x80 { return number }
            shift += 7
        }
    }

    /// Something that is counted on from here: see ``Limits/countMax``.
    mutating func varintCount() throws(Malformed) -> UInt64 {
        let number = try varint()
        guard number <= Limits.countMax else { throw Malformed("a count is impossibly high") }
        return number
    }

    mutating func varint32() throws(Malformed) -> UInt32 {
        guard let number = UInt32(exactly: try varint()) else {
            throw Malformed("a varint exceeds 32 bits")
        }
        return number
    }

    /// A number of things that follow, of which each takes at least the given number of bytes:
    /// so a false count cannot make anyone reserve more than what is there.
    mutating func count(eachAtLeast bytes: Int = 1) throws(Malformed) -> Int {
        let number = try varint()
        guard number <= UInt64(remaining / bytes) else {
            throw Malformed("a count exceeds the bytes that follow")
        }
        return Int(number)
    }

    mutating func view(_ count: Int) throws(Malformed) -> ByteView {
        guard count >= 0, count <= remaining else { throw Malformed("bytes are cut short") }
        defer { offset += count }
        return unsafe ByteView(base: view.base + offset, count: count)
    }

    /// A length as a varint, then that many bytes.
    mutating func countedView(max: Int = Int.max) throws(Malformed) -> ByteView {
        let length = try count()
        guard length <= max else { throw Malformed("a length exceeds its bound of \(max)") }
        return try view(length)
    }

    mutating func countedText(max: Int) throws(Malformed) -> String {
        guard
            let text = String(validating: try countedView(max: max).array, as: UTF8.self)
        else { throw Malformed("a text is not UTF-8") }
        return text
    }

    mutating func replicaID() throws(Malformed) -> ReplicaID {
        let high = try fixed64().byteSwapped
        return ReplicaID(high: high, low: try fixed64().byteSwapped)
    }

    mutating func vector() throws(Malformed) -> VersionVector {
        var dots: [Dot] = []
        for _ in 0..<(try count(eachAtLeast: 17)) {
            let replica = try replicaID()
            dots.append(Dot(replica: replica, counter: try varint()))
        }
        return try VersionVector(sorted: dots)
    }
}

extension VersionVector {
    /// A vector from dots as they were written: sorted by replica, each once, none 0.
    init(sorted dots: [Dot]) throws(Malformed) {
        for (index, dot) in dots.enumerated() {
            guard dot.counter > 0, index == 0 || dots[index - 1].replica < dot.replica else {
                throw Malformed("a version vector is out of order")
            }
            guard dot.counter <= Limits.countMax else {
                throw Malformed("a version vector counts further than anyone can")
            }
        }
        self.init()
        entries = dots
    }
}
