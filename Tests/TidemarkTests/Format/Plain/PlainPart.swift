import TestSupport

/// What has come of a segment that a peer gives out as it lies there: the part and its origin.
struct PlainPart {
    let dataset: String
    let peer: PlainID
    let blockCount: UInt64
    /// The peer's first block that has not come.
    private(set) var next: UInt64 = 0
    /// Of entries in what has come.
    private(set) var entryCount = 0

    init(part: PlainFile, origin: PlainFile) throws {
        var part = part
        var origin = origin
        let (content, end) = try origin.content(at: PlainFile.headerBytes, kind: 33)
        var reader = PlainBytes(content)
        dataset = try reader.text()
        peer = try reader.id()
        let number = try reader.varint()
        // The lifecycle of the dataset in the offer.
        _ = try reader.flag()
        _ = try reader.vector()
        _ = try reader.fixed(8)
        _ = try reader.id()
        _ = try reader.varint()
        _ = try reader.fixed(8)
        let entries = try reader.count()
        blockCount = try reader.varint()
        _ = try reader.fixed(8)
        try require(reader.isAtEnd, "\(origin.name): the origin is too long")
        var offset = end
        var place = PlainFile.headerBytes
        while offset < origin.bytes.count {
            let (content, end) = try origin.content(at: offset, kind: 34)
            var reader = PlainBytes(content)
            let mark = (next: try reader.varint(), end: try reader.count())
            try require(
                reader.isAtEnd && mark.next > next && mark.end > place,
                "\(origin.name): a mark does not rise")
            while place < mark.end {
                let (block, end) = try part.content(at: place, kind: 16)
                entryCount += try Self.entryCount(in: block, of: number)
                place = end
            }
            try require(place == mark.end, "\(part.name): blocks do not fill a range")
            next = mark.next
            offset = end
        }
        try require(next > 0 && next <= blockCount && entryCount <= entries, "\(origin.name)")
        try origin.requireAllRead(alignment: 8)
        try part.requireAllRead(alignment: 8)
    }

    /// The tables are the peer's, so of the entries only the dataset is looked at.
    private static func entryCount(in block: [UInt8], of dataset: UInt64) throws -> Int {
        let count = Int(block.number(at: block.count - 2, 2))
        let offsets = block.count - 2 - 2 * count
        for slot in 0..<count {
            let offset = Int(block.number(at: offsets + 2 * slot, 2))
            var reader = PlainBytes(block, from: offset, upTo: offsets)
            try require(try reader.varint() == dataset, "a part has entries of another dataset")
        }
        return count
    }
}
