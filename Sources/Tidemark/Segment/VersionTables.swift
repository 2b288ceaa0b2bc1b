internal import Synchronization

/// The replicas, version vectors and authors that the entries of one segment name by number, so
/// that a version costs a few bytes. Each segment has its own and needs no other to be read.
///
/// Vectors are kept without the entry of the writer itself, which the dot implies: so all writes
/// of a replica between two exchanges share one vector.
final class VersionTables: Sendable {
    struct Content {
        var replicas: [ReplicaID] = []
        var vectors: [VersionVector] = []
        var authors: [String] = []
        fileprivate var replicaNumbers: [ReplicaID: UInt32] = [:]
        fileprivate var vectorNumbers: [VersionVector: UInt32] = [:]
        fileprivate var authorNumbers: [String: UInt32] = [:]

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

        mutating func number(of author: String) -> (UInt32, isNew: Bool) {
            if let known = authorNumbers[author] { return (known, false) }
            let number = UInt32(authors.count)
            authors.append(author)
            authorNumbers[author] = number
            return (number, true)
        }
    }

    private let content: Mutex<Content>

    init(_ content: consuming sending Content = Content()) {
        self.content = Mutex(content)
    }

    func withContent<Result, Failure: Error>(
        _ body: (inout sending Content) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try content.withLock(body)
    }

    /// The whole version of an entry of this segment.
    func version(of entry: Entry) -> Version {
        content.withLock { content in
            Version(
                dot: Dot(
                    replica: content.replicas[Int(entry.replica)], counter: entry.counter),
                vector: content.vectors[Int(entry.vector)],
                time: HybridTime(rawValue: entry.time),
                author: content.authors[Int(entry.author)])
        }
    }

    func dot(of entry: Entry) -> Dot {
        content.withLock { content in
            Dot(replica: content.replicas[Int(entry.replica)], counter: entry.counter)
        }
    }

    /// Whether an entry names only what is in the tables: asked once of each entry that was read
    /// from a disk, so that nobody need ask again.
    func covers(replica: UInt32, vector: UInt32, author: UInt32) -> Bool {
        content.withLock { content in
            Int(replica) < content.replicas.count && Int(vector) < content.vectors.count
                && Int(author) < content.authors.count
        }
    }

    var counts: (replicas: Int, vectors: Int, authors: Int) {
        content.withLock { ($0.replicas.count, $0.vectors.count, $0.authors.count) }
    }
}

extension Version {
    /// The vector as it is stored: without what the dot says itself.
    var storedVector: VersionVector {
        vector[dot.replica] == dot.counter ? vector.removing(dot.replica) : vector
    }
}

// MARK: - As bytes

extension VersionTables {
    /// Replicas, vectors (each as the entries of its own) and authors, each list with its count.
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
            return writer.bytes
        }
    }

    convenience init(decoding bytes: ByteView) throws(Malformed) {
        var reader = ByteReader(bytes)
        var content = Content()
        for _ in 0..<(try reader.count(eachAtLeast: 16)) {
            let replica = try reader.replicaID()
            guard content.number(of: replica).isNew else {
                throw Malformed("a replica stands twice in the tables")
            }
        }
        for _ in 0..<(try reader.count()) {
            let vector = try Self.vector(from: &reader, replicas: content.replicas)
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
        guard reader.isAtEnd else { throw Malformed("the tables are followed by more bytes") }
        self.init(content)
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
