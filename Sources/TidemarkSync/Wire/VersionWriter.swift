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
    private var origins: [ChangeView.Origin: WrittenOrigin] = [:]
    private var lastOrigin: (origin: ChangeView.Origin, written: WrittenOrigin)?

    /// What an origin's parts are called in this message.
    private struct WrittenOrigin {
        let replica: Int
        let vector: Int
        let author: Int
        /// The replica's own entry in what the version had seen, if that says more than its dot.
        let own: UInt64
    }

    init() {}

    /// A writer of what follows on these replicas.
    init(after replicas: [ReplicaID]) {
        for replica in replicas {
            self.replicas[replica] = self.replicas.count
        }
    }

    /// For everything that has no table.
    mutating func plain(_ body: (inout ByteWriter) -> Void) {
        body(&writer)
    }

    /// This and the two below return what the thing is called in this message.
    @discardableResult
    mutating func putReplica(_ replica: ReplicaID) -> Int {
        if let index = replicas[replica] {
            writer.putCount(index)
            return index
        }
        let index = replicas.count
        writer.putCount(index)
        writer.putFixed(replica.high)
        writer.putFixed(replica.low)
        replicas[replica] = index
        return index
    }

    @discardableResult
    private mutating func putAuthor(_ author: String) -> Int {
        if let index = authors[author] {
            writer.putCount(index)
            return index
        }
        let index = authors.count
        writer.putCount(index)
        writer.putText(author)
        authors[author] = index
        return index
    }

    /// Entries follow in the order of their replicas, each as replica and counter.
    @discardableResult
    mutating func putVector(_ vector: VersionVector) -> Int {
        if let index = vectors[vector] {
            writer.putCount(index)
            return index
        }
        let index = vectors.count
        writer.putCount(index)
        writer.putCount(vector.count)
        for dot in vector.dots {
            putReplica(dot.replica)
            writer.putVarint(dot.counter)
        }
        vectors[vector] = index
        return index
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
        putForgotten(knowledge.forgotten)
    }

    /// The time only goes with a vector that says anything.
    mutating func putForgotten(_ forgotten: ForgottenDeletions) {
        putVector(forgotten.vector)
        if !forgotten.isEmpty { writer.putFixed(forgotten.time.rawValue) }
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

    /// The same as ``putRecord(_:)`` of a change where it lies.
    mutating func putChange(_ change: ChangeView) throws(StoreError) {
        writer.putCount(change.keyCount)
        writer.append { change.appendKey(to: &$0) }
        let expiresAt = change.expiresAt
        writer.put((change.isDeleted ? 0 : 1) | (expiresAt > 0 ? 2 : 0))
        if !change.isDeleted {
            writer.putCount(change.valueCount)
            try writer.append { (bytes) throws(StoreError) in try change.appendValue(to: &bytes) }
        }
        if expiresAt > 0 { writer.putVarint(expiresAt) }
        let origin = change.origin
        if let lastOrigin, lastOrigin.origin == origin {
            put(change, lastOrigin.written)
        } else if let known = origins[origin] {
            lastOrigin = (origin, known)
            put(change, known)
        } else {
            putNewOrigin(change)
            writer.putVarint(change.syncCount.rawValue)
        }
    }

    /// The version of a change and its sync count.
    private mutating func put(_ change: ChangeView, _ origin: WrittenOrigin) {
        writer.putPiece { piece in
            piece.putCount(origin.replica)
            piece.putVarint(change.counter)
            piece.putVarint(origin.own > change.counter ? origin.own - change.counter : 0)
            piece.putCount(origin.vector)
            piece.putFixed(change.time.rawValue)
            piece.putCount(origin.author)
            piece.putVarint(change.syncCount.rawValue)
        }
    }

    private mutating func putNewOrigin(_ change: ChangeView) {
        let (replica, others, author) = change.source
        let own = others[replica]
        let replicaNumber = putReplica(replica)
        writer.putVarint(change.counter)
        writer.putVarint(own > change.counter ? own - change.counter : 0)
        let vector = putVector(own > 0 ? others.removing(replica) : others)
        writer.putFixed(change.time.rawValue)
        let written = WrittenOrigin(
            replica: replicaNumber, vector: vector, author: putAuthor(author), own: own)
        origins[change.origin] = written
        lastOrigin = (change.origin, written)
    }

    mutating func putPage(_ page: RecordPage) {
        writer.putCount(page.recordCount)
        if let written = page.written, follows(written) {
            // Its references go on from here, and what comes next refers to what it has named.
            writer.append(written.writer.bytes)
            replicas = written.writer.replicas
            vectors = written.writer.vectors
            authors = written.writer.authors
        } else {
            for record in page.records {
                putRecord(record)
            }
        }
        writer.putVarint(page.through.rawValue)
        writer.putFlag(page.isLast)
        putKnowledge(page.knowledge)
    }

    /// Whether just that was written which the records were written to follow on.
    private func follows(_ written: WrittenRecords) -> Bool {
        vectors.isEmpty && authors.isEmpty && replicas.count == written.replicas.count
            && written.replicas.enumerated().allSatisfy { replicas[$1] == $0 }
    }
}
