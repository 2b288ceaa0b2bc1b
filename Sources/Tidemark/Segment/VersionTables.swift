internal import Synchronization

/// Where a version comes from: its writer, what that had seen of others, and its author, as numbers
/// in the tables of a segment.
struct Origin: Hashable {
    var replica: UInt32
    var vector: UInt32
    var author: UInt32
}

/// The replicas, version vectors and authors that the entries of one segment name by number, so
/// that a version costs a few bytes. Each segment has its own and needs no other to be read.
///
/// Vectors are kept without the entry of the writer itself, which the dot implies: so all writes
/// of a replica between two exchanges share one vector. An entry names all three by one number,
/// that of their combination, its ``Origin``.
final class VersionTables: Sendable {
    struct Content {
        var replicas: [ReplicaID] = []
        var vectors: [VersionVector] = []
        var authors: [String] = []
        var origins: [Origin] = []
        fileprivate var replicaNumbers: [ReplicaID: UInt32] = [:]
        fileprivate var vectorNumbers: [VersionVector: UInt32] = [:]
        fileprivate var authorNumbers: [String: UInt32] = [:]
        fileprivate var originNumbers: [Origin: UInt32] = [:]

        mutating func number(of replica: ReplicaID) -> (UInt32, isNew: Bool) {
            if let known = replicaNumbers[replica] { return (known, false) }
            let number = UInt32(replicas.count)
            replicas.append(replica)
            replicaNumbers[replica] = number
            return (number, true)
        }

        /// Numbers the vector's replicas, too, if they have none yet.
        mutating func number(of vector: VersionVector) -> (UInt32, isNew: Bool) {
            if let known = vectorNumbers[vector] { return (known, false) }
            for dot in vector.dots {
                _ = number(of: dot.replica)
            }
            let number = UInt32(vectors.count)
            vectors.append(vector)
            vectorNumbers[vector] = number
            return (number, true)
        }

        func knownNumber(of vector: VersionVector) -> UInt32? {
            vectorNumbers[vector]
        }

        mutating func number(of author: String) -> (UInt32, isNew: Bool) {
            if let known = authorNumbers[author] { return (known, false) }
            let number = UInt32(authors.count)
            authors.append(author)
            authorNumbers[author] = number
            return (number, true)
        }

        func knows(_ origin: Origin) -> Bool {
            Int(origin.replica) < replicas.count && Int(origin.vector) < vectors.count
                && Int(origin.author) < authors.count
        }

        /// Its numbers must be in the tables.
        mutating func number(of origin: Origin) -> (UInt32, isNew: Bool) {
            if let known = originNumbers[origin] { return (known, false) }
            let number = UInt32(origins.count)
            origins.append(origin)
            originNumbers[origin] = number
            return (number, true)
        }

        /// The number of a whole origin, with all that it names.
        mutating func number(
            of replica: ReplicaID, _ vector: VersionVector, _ author: String
        ) -> UInt32 {
            let origin = Origin(
                replica: number(of: replica).0, vector: number(of: vector).0,
                author: number(of: author).0)
            return number(of: origin).0
        }

        func version(of stamp: Stamp) -> Version {
            let origin = origins[Int(stamp.origin)]
            return Version(
                dot: Dot(replica: replicas[Int(origin.replica)], counter: stamp.counter),
                vector: vectors[Int(origin.vector)], time: HybridTime(rawValue: stamp.time),
                author: authors[Int(origin.author)])
        }

        func dot(of stamp: Stamp) -> Dot {
            Dot(
                replica: replicas[Int(origins[Int(stamp.origin)].replica)],
                counter: stamp.counter)
        }
    }

    private let content: Mutex<Content>
    /// The files of values that lie apart; nil for a log, where none do.
    let values: SegmentValues?

    init(_ content: consuming sending Content = Content(), values: SegmentValues? = nil) {
        self.content = Mutex(content)
        self.values = values
    }

    func withContent<Result, Failure: Error>(
        _ body: (inout sending Content) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try content.withLock(body)
    }

    /// The whole version of an entry of this segment.
    func version(of entry: Entry) -> Version {
        let stamp = checked(entry.stamp)
        return content.withLock { $0.version(of: stamp) }
    }

    func dot(of entry: Entry) -> Dot {
        dot(of: entry.stamp)
    }

    func dot(of stamp: Stamp) -> Dot {
        let stamp = checked(stamp)
        return content.withLock { $0.dot(of: stamp) }
    }

    /// Origins were checked when the block or log was; if the memory of a mapped file has changed
    /// since then, any answer is wrong, and none may trap.
    private func checked(_ stamp: Stamp) -> Stamp {
        var known = stamp
        if Int(known.origin) >= originCount { known.origin = 0 }
        return known
    }

    /// Who made the versions of an origin, what that had seen of others as it is stored, and for
    /// whom.
    func source(of origin: UInt32) -> (ReplicaID, VersionVector, author: String) {
        content.withLock { content in
            // As above.
            let known = content.origins[Int(origin) < content.origins.count ? Int(origin) : 0]
            return (
                content.replicas[Int(known.replica)], content.vectors[Int(known.vector)],
                content.authors[Int(known.author)]
            )
        }
    }

    var originCount: Int { content.withLock { $0.origins.count } }
}

extension Version {
    /// The vector as it is stored: without what the dot says itself.
    var storedVector: VersionVector {
        vector[dot.replica] == dot.counter ? vector.removing(dot.replica) : vector
    }
}

// MARK: - As bytes

extension VersionTables {
    /// Replicas, vectors (each as the entries of its own), authors and origins, each list with its
    /// count.
    func encoded() -> [UInt8] {
        content.withLock { content in
            var writer = ByteWriter()
            writer.append(varint: content.replicas.count)
            for replica in content.replicas {
                writer.append(replica)
            }
            writer.append(varint: content.vectors.count)
            for vector in content.vectors {
                writer.append(varint: vector.count)
                for dot in vector.dots {
                    writer.append(varint: UInt64(content.replicaNumbers[dot.replica]!))
                    writer.append(varint: dot.counter)
                }
            }
            writer.append(varint: content.authors.count)
            for author in content.authors {
                writer.append(counted: author)
            }
            writer.append(varint: content.origins.count)
            for origin in content.origins {
                writer.append(varint: UInt64(origin.replica))
                writer.append(varint: UInt64(origin.vector))
                writer.append(varint: UInt64(origin.author))
            }
            return writer.bytes
        }
    }

    convenience init(
        decoding bytes: ByteView, values: SegmentValues? = nil
    ) throws(Malformed) {
        self.init(try Self.content(decoding: bytes), values: values)
    }

    static func content(decoding bytes: ByteView) throws(Malformed) -> Content {
        var reader = ByteReader(bytes)
        var content = Content()
        for _ in 0..<(try reader.count(eachAtLeast: 16)) {
            let replica = try reader.replicaID()
            guard content.number(of: replica).isNew else {
                throw Malformed("a replica stands twice in the tables")
            }
        }
        for _ in 0..<(try reader.count()) {
            let vector = try vector(from: &reader, replicas: content.replicas)
            guard content.number(of: vector).isNew else {
                throw Malformed("a version vector stands twice in the tables")
            }
        }
        for _ in 0..<(try reader.count()) {
            let author = try reader.countedText(max: Limits.authorBytesMax)
            guard content.number(of: author).isNew else {
                throw Malformed("an author stands twice in the tables")
            }
        }
        for _ in 0..<(try reader.count(eachAtLeast: 3)) {
            let origin = Origin(
                replica: try reader.varint32(), vector: try reader.varint32(),
                author: try reader.varint32())
            guard content.knows(origin), content.number(of: origin).isNew else {
                throw Malformed("an origin stands twice or names what is not in the tables")
            }
        }
        guard reader.isAtEnd else { throw Malformed("the tables are followed by more bytes") }
        return content
    }

    /// A vector in terms of numbered replicas: count, then (number, counter) each.
    static func vector(
        from reader: inout ByteReader, replicas: [ReplicaID]
    ) throws(Malformed) -> VersionVector {
        var dots: [Dot] = []
        for _ in 0..<(try reader.count(eachAtLeast: 2)) {
            let number = try reader.varint()
            guard number < UInt64(replicas.count) else {
                throw Malformed("a version vector names an unknown replica")
            }
            dots.append(Dot(replica: replicas[Int(number)], counter: try reader.varint()))
        }
        return try VersionVector(sorted: dots)
    }
}
