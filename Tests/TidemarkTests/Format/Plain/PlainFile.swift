import TestSupport

/// One file of a store: its header, its blocks, and which bytes of it have been read.
///
/// What is left over in the end must be zeros that fill up to the next part: so not one byte of a
/// file is there that the article does not speak of.
struct PlainFile {
    enum Kind: UInt64 {
        case log = 1
        case segment, manifest, backupMark, valueFile, partOrigin, roster
    }

    struct Block {
        let kind: UInt8
        let mark: Int
        let epoch: UInt64
        let stored: [UInt8]
        let end: Int
    }

    static let headerBytes = 80

    let name: String
    let bytes: [UInt8]
    let number: UInt64
    let madeAt: UInt64
    let previousLog: UInt64
    let capacity: UInt64
    let identity: PlainIdentity
    private var read: [Range<Int>]

    /// - Parameter identity: of the store, that of the file must be the same; nil for the first
    ///   file.
    init(
        _ name: String, _ bytes: [UInt8], _ kind: Kind, number: UInt64, identity: PlainIdentity?
    ) throws {
        try require(bytes.count >= Self.headerBytes, "\(name) has \(bytes.count) bytes")
        try require(Array(bytes[..<8]) == Array("TIDEMARK".utf8), "\(name) begins otherwise")
        try require(bytes.number(at: 8, 4) == 2, "\(name) has another format version")
        try require(bytes.number(at: 12, 4) == kind.rawValue, "\(name) is of another kind")
        try require(bytes.number(at: 16, 8) == number, "\(name) has another number within")
        try require(
            Plain.hash(bytes[..<72]) == bytes.number(at: 72, 8), "\(name) has a damaged header")
        self.name = name
        self.bytes = bytes
        self.number = number
        madeAt = bytes.number(at: 24, 8)
        previousLog = bytes.number(at: 32, 8)
        capacity = bytes.number(at: 40, 4)
        let own = PlainIdentity(tag: bytes.number(at: 48, 8), secret: Array(bytes[56..<72]))
        self.identity = own
        try require(
            kind == .log || previousLog == 0 && bytes.number(at: 40, 8) == 0, "\(name) is no log")
        try require(identity == nil || own == identity, "\(name) is of another store")
        read = [0..<Self.headerBytes]
    }

    /// The block that begins at an offset; nil if there is no whole one of this file.
    func block(at offset: Int) -> Block? {
        guard offset % 8 == 0, offset + 24 <= bytes.count else { return nil }
        let end = offset + 24 + Int(bytes.number(at: offset + 8, 4))
        guard end <= bytes.count,
            identity.checksum(bytes[(offset + 8)..<end]) == bytes.number(at: offset, 8),
            bytes.number(at: offset + 16, 4) == number & 0xFFFF_FFFF
        else { return nil }
        return Block(
            kind: bytes[offset + 20], mark: Int(bytes.number(at: offset + 12, 4)),
            epoch: bytes.number(at: offset + 22, 2), stored: Array(bytes[(offset + 24)..<end]),
            end: end)
    }

    /// The content of a block outside of logs, and where what follows it begins.
    mutating func content(at offset: Int, kind: UInt8) throws -> (bytes: [UInt8], next: Int) {
        guard let block = block(at: offset), block.kind == kind, block.epoch == 0 else {
            throw Mismatch("\(name): no block of kind \(kind) at \(offset)")
        }
        note(offset..<block.end)
        let next = (block.end + 7) / 8 * 8
        if block.mark == block.stored.count { return (block.stored, next) }
        try require(
            [16, 18, 19, 20, 24, 25].contains(kind), "\(name): \(kind) is never compressed")
        // Compressed where that saves an eighth at least.
        try require(
            block.stored.count <= block.mark - block.mark / 8,
            "\(name): \(block.mark) bytes are stored as \(block.stored.count)")
        return (try Plain.decompressed(block.stored, to: block.mark), next)
    }

    mutating func note(_ range: Range<Int>) { read.append(range) }

    /// Each byte was read once, or is a zero that fills up, fewer than `alignment` of them.
    func requireAllRead(alignment: Int) throws {
        var end = 0
        for range in read.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            try require(
                range.lowerBound >= end, "\(name): two parts share byte \(range.lowerBound)")
            try requireZeros(end..<range.lowerBound, countMax: alignment - 1)
            end = range.upperBound
        }
        try requireZeros(end..<bytes.count, countMax: alignment - 1)
    }

    func requireZeros(_ range: Range<Int>, countMax: Int = .max) throws {
        try require(
            range.count <= countMax && bytes[range].allSatisfy { $0 == 0 },
            "\(name): nothing speaks of bytes \(range)")
    }
}
