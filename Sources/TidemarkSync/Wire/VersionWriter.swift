import Tidemark

/// Builds the body of a message that speaks of versions. Replica ids, authors and vectors recur in
/// almost every record; each is written out once and referred to by its number after that.
///
/// A reference is a varint. A number below the size of the table means that entry; the size itself
/// means a new entry, which follows at once.
struct VersionWriter {
    private var writer = ByteWriter()
    private var replicas: [ReplicaID: Int] = [:]
    private var authors: [String: Int] = [:]
    private var vectors: [VersionVector: Int] = [:]

    var bytes: [UInt8] { writer.bytes }

    /// For everything that has no table.
    mutating func plain(_ body: (inout ByteWriter) -> Void) {
        body(&writer)
    }

    mutating func putReplica(_ replica: ReplicaID) {
        if let index = replicas[replica] {
            writer.putCount(index)
            return
        }
        writer.putCount(replicas.count)
        writer.putFixed(replica.high)
        writer.putFixed(replica.low)
        replicas[replica] = replicas.count
    }

    private mutating func putAuthor(_ author: String) {
        if let index = authors[author] {
            writer.putCount(index)
            return
        }
        writer.putCount(authors.count)
        writer.putText(author)
        authors[author] = authors.count
    }

    /// Entries follow in the order of their replicas, each as replica and counter.
    mutating func putVector(_ vector: VersionVector) {
        if let index = vectors[vector] {
            writer.putCount(index)
            return
        }
        writer.putCount(vectors.count)
        writer.putCount(vector.count)
        for dot in vector.dots {
            putReplica(dot.replica)
            writer.putVarint(dot.counter)
        }
        vectors[vector] = vectors.count
    }

    /// The vector goes without the writer's own entry, which almost always is the dot itself: what
    /// is left is the same for all writes of a replica between two exchanges.
    mutating func putVersion(_ version: Version) {
        putReplica(version.dot.replica)
        writer.putVarint(version.dot.counter)
        writer.putVarint(version.vector[version.dot.replica] - version.dot.counter)
        putVector(version.vector.removing(version.dot.replica))
        writer.putFixed(version.time.rawValue)
        putAuthor(version.author)
    }

    mutating func putRecord(_ record: Record) {
        writer.putBytes(record.key)
        writer.put((record.value != nil ? 1 : 0) | (record.expiresAt != nil ? 2 : 0))
        if let value = record.value {
            writer.putBytes(value)
        }
        if let expiresAt = record.expiresAt {
            writer.putVarint(expiresAt)
        }
        putVersion(record.version)
        writer.putVarint(record.syncCount.rawValue)
    }

    mutating func putKnowledge(_ knowledge: PeerKnowledge) {
        putVector(knowledge.vector)
        writer.putVarint(knowledge.syncCount.rawValue)
        writer.putFlag(knowledge.lifecycle.isDeleted)
        putVector(knowledge.lifecycle.wiped)
        writer.putFixed(knowledge.lifecycle.time.rawValue)
        putReplica(knowledge.lifecycle.replica)
        putBatons(knowledge.batons)
    }

    mutating func putBatons(_ batons: [Baton]) {
        writer.putCount(batons.count)
        for baton in batons {
            putReplica(baton.replica)
            writer.putVarint(baton.number)
            writer.putFixed(baton.random)
        }
    }

    mutating func putReplicas(_ replicas: [ReplicaID]) {
        writer.putCount(replicas.count)
        for replica in replicas {
            putReplica(replica)
        }
    }

    mutating func putPage(_ page: RecordPage) {
        writer.putCount(page.records.count)
        for record in page.records {
            putRecord(record)
        }
        writer.putVarint(page.through.rawValue)
        writer.putFlag(page.isLast)
        putKnowledge(page.knowledge)
    }
}
