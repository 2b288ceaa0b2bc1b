import Tidemark

/// Takes apart what ``VersionWriter`` built. Counts the vector entries it hands out, because a few
/// bytes that refer to a long vector stand for a lot of memory.
struct VersionReader {
    private var reader: ByteReader
    private var replicas: [ReplicaID] = []
    private var authors: [String] = []
    private var vectors: [VersionVector] = []
    private var vectorEntries = 0

    init(_ body: [UInt8]) {
        reader = ByteReader(body)
    }

    /// For everything that has no table.
    mutating func plain<Result>(
        _ body: (inout ByteReader) throws(SyncError) -> Result
    ) throws(SyncError) -> Result {
        try body(&reader)
    }

    func finish() throws(SyncError) {
        try reader.finish()
    }

    /// The number of a table's entry, or nil if a new one follows.
    private mutating func takeReference(into size: Int, _ what: String) throws(SyncError) -> Int? {
        let number = try reader.takeVarint()
        guard number <= UInt64(size) else {
            throw reader.failure("\(what) \(number) was never named")
        }
        return number == UInt64(size) ? nil : Int(number)
    }

    mutating func takeReplica() throws(SyncError) -> ReplicaID {
        if let index = try takeReference(into: replicas.count, "replica") {
            return replicas[index]
        }
        let high = try reader.takeFixed(UInt64.self)
        let low = try reader.takeFixed(UInt64.self)
        let replica = ReplicaID(high: high, low: low)
        replicas.append(replica)
        return replica
    }

    private mutating func takeAuthor() throws(SyncError) -> String {
        if let index = try takeReference(into: authors.count, "author") {
            return authors[index]
        }
        let author = try reader.takeText("author", max: Limits.authorBytesMax)
        authors.append(author)
        return author
    }

    mutating func takeVector() throws(SyncError) -> VersionVector {
        if let index = try takeReference(into: vectors.count, "vector") {
            try countEntries(vectors[index].count)
            return vectors[index]
        }
        let count = try reader.takeCount(
            of: "vector entries", bytesEach: 2, max: SyncLimits.vectorEntriesMax)
        try countEntries(count)
        var dots: [Dot] = []
        dots.reserveCapacity(count)
        for _ in 0..<count {
            let replica = try takeReplica()
            let counter = try reader.takeVarint()
            // One form for one vector: in order, none twice, none that says nothing.
            guard counter > 0, dots.last.map({ $0.replica < replica }) ?? true else {
                throw reader.failure("a vector is not in order")
            }
            dots.append(Dot(replica: replica, counter: counter))
        }
        let vector = VersionVector(dots)
        vectors.append(vector)
        return vector
    }

    private mutating func countEntries(_ count: Int) throws(SyncError) {
        vectorEntries += count
        guard vectorEntries <= SyncLimits.messageVectorEntriesMax else {
            throw SyncError(
                .tooLarge,
                "a message has more than \(SyncLimits.messageVectorEntriesMax) vector entries; "
                    + "lower the sender's records per page")
        }
    }

    mutating func takeVersion() throws(SyncError) -> Version {
        let replica = try takeReplica()
        let counter = try reader.takeVarint()
        let (highest, overflow) = counter.addingReportingOverflow(try reader.takeVarint())
        var vector = try takeVector()
        guard counter > 0, !overflow, vector[replica] == 0 else {
            throw reader.failure("a version contradicts itself")
        }
        vector.insert(Dot(replica: replica, counter: highest))
        let time = HybridTime(rawValue: try reader.takeFixed(UInt64.self))
        return Version(
            dot: Dot(replica: replica, counter: counter), vector: vector, time: time,
            author: try takeAuthor())
    }

    mutating func takeRecord() throws(SyncError) -> Record {
        let key = try reader.takeBytes("key", max: Limits.keyBytesMax)
        guard !key.isEmpty else { throw reader.failure("a key is empty") }
        let form = try reader.takeByte()
        guard form < 4 else { throw reader.failure("\(form) is no form of a record") }
        let value =
            form & 1 != 0 ? try reader.takeBytes("value", max: Limits.valueBytesMax) : nil
        let expiresAt = form & 2 != 0 ? try takeExpiry() : nil
        let version = try takeVersion()
        let syncCount = SyncCount(rawValue: try reader.takeVarint())
        return Record(
            key: key, value: value, version: version, syncCount: syncCount, isDirty: false,
            expiresAt: expiresAt)
    }

    private mutating func takeExpiry() throws(SyncError) -> UInt64 {
        let time = try reader.takeVarint()
        guard time > 0, time < 1 << 48 else {
            throw reader.failure("a record expires at an impossible time")
        }
        return time
    }

    mutating func takeKnowledge() throws(SyncError) -> PeerKnowledge {
        let vector = try takeVector()
        let syncCount = SyncCount(rawValue: try reader.takeVarint())
        let isDeleted = try reader.takeFlag()
        let wiped = try takeVector()
        let time = HybridTime(rawValue: try reader.takeFixed(UInt64.self))
        let lifecycle = PeerLifecycle(
            isDeleted: isDeleted, wiped: wiped, time: time, replica: try takeReplica())
        return PeerKnowledge(
            vector: vector, syncCount: syncCount, lifecycle: lifecycle, batons: try takeBatons())
    }

    mutating func takeBatons() throws(SyncError) -> [Baton] {
        let count = try reader.takeCount(
            of: "batons", bytesEach: 10, max: SyncLimits.vectorEntriesMax)
        try countEntries(count)
        var batons: [Baton] = []
        for _ in 0..<count {
            let replica = try takeReplica()
            let number = try reader.takeVarint()
            // The one after the greatest would be none.
            guard number > 0, number <= Baton.numberMax,
                batons.last.map({ $0.replica < replica }) ?? true
            else { throw reader.failure("a list of batons is not in order") }
            batons.append(
                Baton(
                    replica: replica, number: number,
                    random: try reader.takeFixed(UInt64.self)))
        }
        return batons
    }

    mutating func takeReplicas() throws(SyncError) -> [ReplicaID] {
        let count = try reader.takeCount(of: "replicas", max: SyncLimits.vectorEntriesMax)
        try countEntries(count)
        var replicas: [ReplicaID] = []
        for _ in 0..<count {
            let replica = try takeReplica()
            guard replicas.last.map({ $0 < replica }) ?? true else {
                throw reader.failure("a list of replicas is not in order")
            }
            replicas.append(replica)
        }
        return replicas
    }

    mutating func takePage() throws(SyncError) -> RecordPage {
        let count = try reader.takeCount(
            of: "records", bytesEach: 16, max: SyncLimits.pageRecordsMax)
        var records: [Record] = []
        records.reserveCapacity(count)
        var keys: Set<[UInt8]> = []
        for _ in 0..<count {
            let record = try takeRecord()
            guard keys.insert(record.key).inserted else {
                throw reader.failure("a page names a key twice")
            }
            records.append(record)
        }
        let through = SyncCount(rawValue: try reader.takeVarint())
        let isLast = try reader.takeFlag()
        return RecordPage(
            records: records, through: through, isLast: isLast, knowledge: try takeKnowledge())
    }
}
