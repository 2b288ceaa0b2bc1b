import Tidemark

/// Takes apart what ``VersionWriter`` built. Counts the vector entries it hands out, because a few
/// bytes that refer to a long vector stand for a lot of memory.
struct VersionReader {
    private var reader: ByteReader
    private var replicas: [ReplicaID] = []
    private var authors: [String] = []
    private var vectors: [VersionVector] = []
    private var vectorEntries = 0
    private let bounds: MessageBounds
    private var origins: [MergePage.Origin] = []
    private var originNumbers: [MergePage.Origin: UInt32] = [:]
    private var lastOrigin: (origin: MergePage.Origin, number: UInt32)?

    init(_ body: [UInt8], _ bounds: MessageBounds = MessageBounds()) {
        reader = ByteReader(body)
        self.bounds = bounds
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

    /// The number of a table's entry; that of the next one if a new one follows.
    @inline(__always)
    private mutating func takeReference(
        into size: Int, _ what: StaticString
    ) throws(SyncError) -> Int {
        let number = try reader.takeVarint()
        guard number <= UInt64(size) else {
            throw reader.failure("\(what) \(number) was never named")
        }
        return Int(number)
    }

    mutating func takeReplica() throws(SyncError) -> ReplicaID {
        replicas[try takeReplicaNumber()]
    }

    @inline(__always)
    private mutating func takeReplicaNumber() throws(SyncError) -> Int {
        let number = try takeReference(into: replicas.count, "replica")
        if number == replicas.count { try takeNewReplica() }
        return number
    }

    private mutating func takeNewReplica() throws(SyncError) {
        let high = try reader.takeFixed(UInt64.self)
        let low = try reader.takeFixed(UInt64.self)
        replicas.append(ReplicaID(high: high, low: low))
    }

    @inline(__always)
    private mutating func takeAuthorNumber() throws(SyncError) -> Int {
        let number = try takeReference(into: authors.count, "author")
        if number == authors.count {
            authors.append(try reader.takeText("author", max: Limits.authorBytesMax))
        }
        return number
    }

    mutating func takeVector() throws(SyncError) -> VersionVector {
        vectors[try takeVectorNumber()]
    }

    @inline(__always)
    private mutating func takeVectorNumber() throws(SyncError) -> Int {
        let number = try takeReference(into: vectors.count, "vector")
        if number == vectors.count {
            try takeNewVector()
        } else {
            try countEntries(vectors[number].count)
        }
        return number
    }

    private mutating func takeNewVector() throws(SyncError) {
        let count = try reader.takeCount(
            of: "vector entries", bytesEach: 2, max: bounds.vectorEntriesMax)
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
        vectors.append(VersionVector(dots))
    }

    private mutating func countEntries(_ count: Int) throws(SyncError) {
        vectorEntries += count
        guard vectorEntries <= bounds.messageVectorEntriesMax else {
            throw SyncError(
                .tooLarge,
                "a message has more than \(bounds.messageVectorEntriesMax) vector entries; "
                    + "lower the sender's records per page")
        }
    }

    /// The origin of a version, which is the same for most records of a page.
    private mutating func originNumber(
        _ replica: Int, _ vector: Int, _ author: Int
    ) throws(SyncError) -> UInt32 {
        let origin = MergePage.Origin(
            replica: UInt32(replica), vector: UInt32(vector), author: UInt32(author))
        if let lastOrigin, lastOrigin.origin == origin { return lastOrigin.number }
        let number: UInt32
        if let known = originNumbers[origin] {
            number = known
        } else {
            guard vectors[vector][replicas[replica]] == 0 else {
                throw reader.failure("a version contradicts itself")
            }
            number = UInt32(origins.count)
            origins.append(origin)
            originNumbers[origin] = number
        }
        lastOrigin = (origin, number)
        return number
    }

    private mutating func takeItem() throws(SyncError) -> MergePage.Item {
        var item = MergePage.Item()
        let key = try reader.takeRange("key", max: Limits.keyBytesMax)
        guard !key.isEmpty else { throw reader.failure("a key is empty") }
        item.keyOffset = UInt32(key.lowerBound)
        item.keyCount = UInt32(key.count)
        let form = try reader.takeByte()
        guard form < 4 else { throw reader.failure("\(form) is no form of a record") }
        if form & 1 != 0 {
            let value = try reader.takeRange("value", max: Limits.valueBytesMax)
            item.hasValue = true
            item.valueOffset = UInt32(value.lowerBound)
            item.valueCount = UInt32(value.count)
        }
        if form & 2 != 0 { item.expiresAt = try takeExpiry() }
        let replica = try takeReplicaNumber()
        item.counter = try reader.takeVarint()
        let (highest, overflow) = item.counter.addingReportingOverflow(try reader.takeVarint())
        guard item.counter > 0, !overflow else {
            throw reader.failure("a version contradicts itself")
        }
        item.highest = highest
        let vector = try takeVectorNumber()
        item.time = try reader.takeFixed(UInt64.self)
        item.origin = try originNumber(replica, vector, try takeAuthorNumber())
        item.syncCount = try reader.takeVarint()
        return item
    }

    private mutating func takeExpiry() throws(SyncError) -> UInt64 {
        let time = try reader.takeVarint()
        guard time > 0, time < 1 << 48 else {
            throw reader.failure("a record expires at an impossible time")
        }
        return time
    }

    /// What ``VersionWriter/putVersion(_:)`` wrote.
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
        let author = try takeAuthorNumber()
        return Version(
            dot: Dot(replica: replica, counter: counter), vector: vector, time: time,
            author: authors[author])
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
            vector: vector, syncCount: syncCount, lifecycle: lifecycle, batons: try takeBatons(),
            forgotten: try takeForgotten())
    }

    mutating func takeForgotten() throws(SyncError) -> ForgottenDeletions {
        let vector = try takeVector()
        guard !vector.isEmpty else { return ForgottenDeletions() }
        let time = HybridTime(rawValue: try reader.takeFixed(UInt64.self))
        return ForgottenDeletions(vector: vector, time: time)
    }

    mutating func takeBatons() throws(SyncError) -> [Baton] {
        let count = try reader.takeCount(
            of: "batons", bytesEach: 10, max: bounds.vectorEntriesMax)
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
        let count = try reader.takeCount(of: "replicas", max: bounds.vectorEntriesMax)
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
        let items = try takeItems()
        let page: MergePage
        do throws(StoreError) {
            page = try MergePage(
                bytes: reader.bytes, items: items, origins: origins, replicas: replicas,
                vectors: vectors, authors: authors)
        } catch {
            throw .badMessage(error.message)
        }
        let through = SyncCount(rawValue: try reader.takeVarint())
        let isLast = try reader.takeFlag()
        return RecordPage(
            page, through: through, isLast: isLast, knowledge: try takeKnowledge())
    }

    private mutating func takeItems() throws(SyncError) -> [MergePage.Item] {
        let count = try reader.takeCount(
            of: "records", bytesEach: 16, max: SyncLimits.pageRecordsMax)
        var items: [MergePage.Item] = []
        items.reserveCapacity(count)
        for _ in 0..<count {
            items.append(try takeItem())
        }
        return items
    }

    /// The date of a record that stands in a body of its own. Its value is not looked at.
    static func date(ofRecordIn bytes: [UInt8]) throws(SyncError) -> HybridTime {
        var reader = VersionReader(bytes)
        return HybridTime(rawValue: try reader.takeItem().time)
    }

    /// The records of a page of this store's own making.
    ///
    /// - Parameter replicas: those that were named before it.
    static func records(
        _ bytes: [UInt8], count: Int, after replicas: [ReplicaID]
    ) throws(SyncError) -> [Record] {
        var reader = VersionReader(bytes)
        reader.replicas = replicas
        var items: [MergePage.Item] = []
        for _ in 0..<count {
            items.append(try reader.takeItem())
        }
        let (origins, vectors, authors) = (reader.origins, reader.vectors, reader.authors)
        let named = reader.replicas
        return try engine { () throws(StoreError) in
            let page = try MergePage(
                bytes: bytes, items: items, origins: origins, replicas: named, vectors: vectors,
                authors: authors)
            return items.indices.map { page.record(at: $0) }
        }
    }
}
