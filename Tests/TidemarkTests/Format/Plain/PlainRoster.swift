import TestSupport

/// What a closing has kept of the changes of datasets and of exchanges.
struct PlainRoster {
    let log: UInt64
    let logBytes: UInt64
    let digest: [UInt8]
    let epoch: UInt64
    /// The epochs in which datasets changed last.
    private(set) var lines: [String: UInt64] = [:]
    private(set) var peers: [PlainID] = []

    init(_ bytes: [UInt8], identity: PlainIdentity) throws {
        var file = try PlainFile("ROSTER", bytes, .roster, number: 0, identity: identity)
        let content = try file.content(at: PlainFile.headerBytes, kind: 35).bytes
        try file.requireAllRead(alignment: 1)
        var reader = PlainBytes(content)
        log = try reader.varint()
        logBytes = try reader.varint()
        digest = try reader.take(16)
        epoch = try reader.varint()
        _ = try reader.varint()
        var first: UInt64 = 0
        for _ in 0..<(try reader.count()) {
            _ = try reader.fixed(8)
            let next = try reader.varint()
            try require(next > first && next < epoch, "ROSTER: the stretches do not rise")
            first = next
        }
        try require(first > 0, "ROSTER: there is no stretch")
        for _ in 0..<(try reader.count()) {
            lines[try reader.text()] = try reader.varint()
        }
        for _ in 0..<(try reader.count()) {
            peers.append(try reader.id())
            _ = try reader.id()
            for _ in 0..<2 {
                _ = try reader.fixed(8)
                _ = try reader.varint()
            }
            for _ in 0..<(try reader.count()) { _ = try reader.text() }
        }
        try require(reader.isAtEnd, "ROSTER is followed by \(reader.left) bytes")
    }
}
