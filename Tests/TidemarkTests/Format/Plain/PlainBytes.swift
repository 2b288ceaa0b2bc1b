import CXXHash
import TestSupport

// A reader of stores that is written from the article on the file format alone. Nothing here uses
// anything of the engine: no type, no constant, no function. Where it reads a store wrongly, the
// article says too little or something else than the engine does.

/// Bytes that are read from the front, in the forms that the article names.
struct PlainBytes {
    let all: [UInt8]
    private(set) var place: Int
    let end: Int

    init(_ all: [UInt8], from place: Int = 0, upTo end: Int? = nil) {
        self.all = all
        self.place = place
        self.end = end ?? all.count
    }

    var isAtEnd: Bool { place >= end }
    var left: Int { end - place }

    mutating func take(_ count: Int) throws -> [UInt8] {
        try require(count >= 0 && count <= left, "\(count) bytes at \(place) of \(end)")
        defer { place += count }
        return Array(all[place..<(place + count)])
    }

    mutating func byte() throws -> UInt8 {
        try require(left > 0, "a byte at \(place) of \(end)")
        defer { place += 1 }
        return all[place]
    }

    /// A number of fixed length, the lowest byte first.
    mutating func fixed(_ count: Int) throws -> UInt64 {
        try take(count).number(at: 0, count)
    }

    /// LEB128: seven bits a byte, the lowest first.
    mutating func varint() throws -> UInt64 {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            let byte = try byte()
            number |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return number }
        }
        throw Mismatch("a varint of more than 64 bits ends at \(place)")
    }

    /// A varint that counts something in memory.
    mutating func count() throws -> Int {
        let number = try varint()
        try require(number < 1 << 32, "\(number) of something at \(place)")
        return Int(number)
    }

    /// The difference that a zigzag stands for, modulo 2^64.
    mutating func zigzag() throws -> UInt64 {
        let number = try varint()
        return number % 2 == 0 ? number / 2 : ~(number / 2)
    }

    mutating func counted() throws -> [UInt8] {
        try take(try count())
    }

    mutating func text() throws -> String {
        let bytes = try counted()
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Mismatch("what ends at \(place) is not UTF-8")
        }
        return text
    }

    mutating func id() throws -> PlainID { PlainID(bytes: try take(16)) }

    mutating func flag() throws -> Bool { try byte() == 1 }

    /// A vector outside of the tables: ids and counters.
    mutating func vector() throws -> PlainVector {
        var vector = PlainVector()
        for _ in 0..<(try count()) {
            try vector.append(try id(), try varint())
        }
        return vector
    }

    /// A vector in terms of numbered ids.
    mutating func vector(of ids: [PlainID]) throws -> PlainVector {
        var vector = PlainVector()
        for _ in 0..<(try count()) {
            let number = try count()
            try require(number < ids.count, "a vector names id \(number) of \(ids.count)")
            try vector.append(ids[number], try varint())
        }
        return vector
    }
}

/// 16 bytes: two big-endian halves, so that ids are in the order of their bytes.
struct PlainID: Hashable, Comparable {
    let bytes: [UInt8]

    static let zero = PlainID(bytes: Array(repeating: 0, count: 16))

    static func < (left: PlainID, right: PlainID) -> Bool {
        Bytes.precedes(left.bytes, right.bytes)
    }
}

struct PlainVector: Equatable {
    private(set) var counters: [PlainID: UInt64] = [:]

    var isEmpty: Bool { counters.isEmpty }
    var ids: [PlainID] { counters.keys.sorted() }

    subscript(id: PlainID) -> UInt64 { counters[id] ?? 0 }

    /// As it is read, when the ids must rise and no counter is 0.
    fileprivate mutating func append(_ id: PlainID, _ counter: UInt64) throws {
        try require(counters.keys.allSatisfy { $0 < id }, "the ids of a vector do not rise")
        try require(counter > 0, "a vector has a counter of 0")
        counters[id] = counter
    }

    mutating func join(_ id: PlainID, _ counter: UInt64) {
        guard counter > self[id] else { return }
        counters[id] = counter
    }

    mutating func join(_ other: PlainVector) {
        counters.merge(other.counters) { max($0, $1) }
    }

    mutating func remove(_ id: PlainID) { counters[id] = nil }

    func covers(_ other: PlainVector) -> Bool {
        other.counters.allSatisfy { self[$0.key] >= $0.value }
    }
}

extension [UInt8] {
    /// A number of `count` bytes, the lowest first.
    func number(at offset: Int, _ count: Int) -> UInt64 {
        self[offset..<(offset + count)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// A number with the highest byte first.
    static func bigEndian(_ number: UInt64, count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * (count - 1 - $0))) }
    }

    static func littleEndian(_ number: UInt64, count: Int) -> [UInt8] {
        bigEndian(number, count: count).reversed()
    }
}

/// What all files of a store have in common, by the article: the tag, the secret, and what follows
/// from that.
struct PlainIdentity: Equatable {
    let tag: UInt64
    private let secret: [UInt8]
    /// What XXH3 is given as its secret.
    private let expanded: [UInt8]
    /// For the hashes of keys, before a dataset's number comes to it.
    private let keySeed: UInt64

    init(tag: UInt64, secret: [UInt8]) {
        self.tag = tag
        self.secret = secret
        expanded = (0..<12 as Range<UInt8>).flatMap { Plain.hash128(secret + [$0]) }
        keySeed = Plain.hash128(secret + [12]).number(at: 0, 8)
    }

    /// Of a block, or a footer.
    func checksum(_ bytes: some Collection<UInt8>) -> UInt64 {
        Plain.hash(bytes, secret: expanded)
    }

    func hash(of key: [UInt8], in dataset: UInt64) -> UInt64 {
        Plain.hash(key, seed: keySeed &+ dataset &* 0x9E37_79B9_7F4A_7C15)
    }
}

/// The two algorithms that the article names and leaves to others.
enum Plain {
    /// XXH3 with 64 bits, by its own library.
    static func hash(_ bytes: some Collection<UInt8>, seed: UInt64 = 0) -> UInt64 {
        let bytes = Array(bytes)
        return unsafe bytes.withUnsafeBytes { buffer in
            unsafe XXH3_64bits_withSeed(buffer.baseAddress, buffer.count, seed)
        }
    }

    static func hash(_ bytes: some Collection<UInt8>, secret: [UInt8]) -> UInt64 {
        let bytes = Array(bytes)
        return unsafe bytes.withUnsafeBytes { buffer in
            unsafe secret.withUnsafeBytes { secret in
                unsafe XXH3_64bits_withSecret(
                    buffer.baseAddress, buffer.count, secret.baseAddress, secret.count)
            }
        }
    }

    /// XXH3 with 128 bits: the lower half, then the higher, each with the lowest byte first.
    static func hash128(_ bytes: [UInt8]) -> [UInt8] {
        let hash = unsafe bytes.withUnsafeBytes { buffer in
            unsafe XXH3_128bits(buffer.baseAddress, buffer.count)
        }
        return [UInt8].littleEndian(hash.low64, count: 8)
            + [UInt8].littleEndian(hash.high64, count: 8)
    }

    /// An LZ4 block without a frame, by its own description: lengths of literals and matches in
    /// half a byte each, 15 going on in further bytes; a match is at least four bytes long.
    static func decompressed(_ source: [UInt8], to count: Int) throws -> [UInt8] {
        var reader = PlainBytes(source)
        var target: [UInt8] = []
        target.reserveCapacity(count)
        func length(_ nibble: UInt8) throws -> Int {
            var length = Int(nibble)
            var more: UInt8 = nibble == 15 ? 255 : 0
            while more == 255 {
                more = try reader.byte()
                length += Int(more)
            }
            return length
        }
        while true {
            let token = try reader.byte()
            let literalCount = try length(token >> 4)
            target += try reader.take(literalCount)
            if reader.isAtEnd { break }
            let distance = Int(try reader.fixed(2))
            let matchCount = try length(token & 15) + 4
            try require(distance > 0 && distance <= target.count, "an LZ4 match is before all")
            try require(target.count + matchCount <= count, "an LZ4 block is too long")
            for _ in 0..<matchCount { target.append(target[target.count - distance]) }
        }
        try require(target.count == count, "an LZ4 block has \(target.count) bytes, not \(count)")
        return target
    }
}
