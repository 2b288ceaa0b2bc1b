import TestSupport

/// One version of one record, with the whole of what it says of itself.
struct PlainEntry {
    struct Handle {
        let file: UInt64
        /// Where the block begins, in units of 8 bytes.
        let eighth: Int
        let count: Int
        let saved: Int

        var offset: Int { 8 * eighth }
    }

    let dataset: UInt64
    let key: [UInt8]
    /// nil: deleted. Of a value that lies apart, once the value file was asked.
    var value: [UInt8]?
    let handle: Handle?
    let isSuperseded: Bool
    /// 0 if it does not expire.
    let expiry: UInt64
    let syncCount: UInt64
    let counter: UInt64
    let time: UInt64
    let replica: PlainID
    let author: String
    let seen: PlainVector
    /// The number of its block and its offset there, as indexes name it; 0 in a log.
    var place: UInt64 = 0

    /// - Parameter base: of the times, in milliseconds.
    init(_ reader: inout PlainBytes, base: UInt64, _ tables: PlainTables) throws {
        dataset = try reader.varint()
        try require(dataset < 1 << 31, "a dataset number of \(dataset)")
        let keyMark = try reader.count()
        isSuperseded = keyMark & 1 == 1
        let expires = keyMark & 1 << 17 != 0
        let form = try reader.count()
        key = try reader.take((keyMark & 0x1_FFFF) / 2)
        switch form {
        case 0:
            value = nil
            handle = nil
        case 1:
            value = []
            handle = Handle(
                file: try reader.varint(), eighth: try reader.count(), count: try reader.count(),
                saved: try reader.count())
        default:
            value = try reader.take(form - 2)
            handle = nil
        }
        expiry = expires ? try reader.fixed(6) : 0
        try require(!expires || expiry > 0, "a record expires in 1970")
        syncCount = try reader.varint()
        let origin = try reader.count()
        let difference = try reader.zigzag()
        counter = syncCount &+ difference
        let timeDifference = try reader.zigzag()
        time = (base << 16) &+ timeDifference
        try require(origin < tables.origins.count, "an entry names origin \(origin)")
        let source = tables.origins[origin]
        replica = tables.ids[source.id]
        author = tables.authors[source.author]
        var seen = tables.vectors[source.vector]
        seen.join(replica, counter)
        self.seen = seen
    }

    /// What a record left that was dropped in this store alone.
    var isMark: Bool { counter == 0 }
}

/// What entries name by number: in a segment a table, in a log one item after the other.
struct PlainTables {
    struct Origin: Hashable {
        let id: Int
        let vector: Int
        let author: Int
    }

    private(set) var ids: [PlainID] = []
    private(set) var vectors: [PlainVector] = []
    private(set) var authors: [String] = []
    private(set) var origins: [Origin] = []

    init() {}

    /// The tables of a segment.
    init(_ bytes: [UInt8]) throws {
        var reader = PlainBytes(bytes)
        for _ in 0..<(try reader.count()) { try addID(&reader) }
        for _ in 0..<(try reader.count()) { try addVector(&reader) }
        for _ in 0..<(try reader.count()) { try addAuthor(&reader) }
        for _ in 0..<(try reader.count()) { try addOrigin(&reader) }
        try require(reader.isAtEnd, "tables are followed by \(reader.left) bytes")
    }

    mutating func addID(_ reader: inout PlainBytes) throws {
        let id = try reader.id()
        try require(!ids.contains(id), "an id stands twice")
        ids.append(id)
    }

    mutating func addVector(_ reader: inout PlainBytes) throws {
        let vector = try reader.vector(of: ids)
        try require(!vectors.contains(vector), "a vector stands twice")
        vectors.append(vector)
    }

    mutating func addAuthor(_ reader: inout PlainBytes) throws {
        let author = try reader.text()
        try require(!authors.contains(author), "an author stands twice")
        authors.append(author)
    }

    mutating func addOrigin(_ reader: inout PlainBytes) throws {
        let origin = Origin(
            id: try reader.count(), vector: try reader.count(), author: try reader.count())
        try require(
            origin.id < ids.count && origin.vector < vectors.count
                && origin.author < authors.count && !origins.contains(origin),
            "an origin stands twice or names what is not there")
        origins.append(origin)
    }
}
