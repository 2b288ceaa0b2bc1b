import TestSupport
import Testing
import Tidemark

/// A store on a simulated disk, whose clock a test sets, and one dataset in it.
struct ClockedStore {
    let storage: SimulatedStorage
    let options: StoreOptions
    private(set) var store: Store
    private(set) var dataset: Dataset

    init(
        seed: Seed = Seed(7), historyVersions: Int = 0, historyAge: Duration = .zero
    ) throws {
        storage = SimulatedStorage(seed: seed)
        options = StoreOptions(
            durability: .memory, segmentBytes: 1 << 20, historyVersions: historyVersions,
            historyAge: historyAge, compactsAutomatically: false)
        store = try openSimulated(storage, options)
        dataset = try store.dataset("main")
    }

    var now: UInt64 { storage.clockMilliseconds }

    func wait(_ milliseconds: UInt64) {
        storage.clockMilliseconds += milliseconds
    }

    mutating func reopen() throws {
        try store.close()
        store = try openSimulated(storage, options)
        dataset = try store.dataset("main")
    }
}

/// From its time of expiry on a record counts as deleted for every reader.
@Suite("Expiry")
struct ExpiryTests {
    @Test("A record is there until its time has come, for every way of reading")
    func everyReader() throws {
        var clocked = try ClockedStore()
        let end = clocked.now + 1_000
        try clocked.dataset.put("stays", for: "a")
        try clocked.dataset.put("goes", for: "b", expiresAt: end)
        for isSealed in [false, true] {
            clocked.storage.clockMilliseconds = end - 1
            if isSealed {
                try clocked.store.compact()
                try clocked.reopen()
            }
            let dataset = clocked.dataset
            #expect(try dataset.text("b") == "goes")
            #expect(try dataset.contains("b"))
            #expect(try dataset.count() == 2)
            #expect(try dataset.record(for: "b")?.expiresAt == end)
            #expect(try dataset.record(for: "a")?.expiresAt == nil)
            clocked.wait(1)
            #expect(try dataset.get("b") == nil)
            #expect(try !dataset.contains("b"))
            #expect(try dataset.withValue(for: bytes("b")) { $0 == nil })
            #expect(try dataset.count() == 1)
            #expect(try dataset.size().recordCount == 1)
            #expect(try dataset.record(for: "b") == nil)
            let tombstone = try #require(try dataset.record(for: "b", includingDeleted: true))
            #expect(tombstone.isDeleted && tombstone.expiresAt == end)
            for order in [ScanOrder.forward, .backward] {
                #expect(try dataset.records(order: order).keyTexts() == ["a"])
                let all = try dataset.records(order: order, includingDeleted: true).collect()
                #expect(all.filter(\.isDeleted).map(\.keyText) == ["b"])
            }
            let cursor = try dataset.records(includingDeleted: true)
            var values: [Int?] = []
            while let count = try cursor.withNext({ _, value in value?.byteCount }) {
                values.append(count)
            }
            #expect(values == [5, nil])
            #expect(try dataset.changes(since: 0).collect().filter(\.isDeleted).count == 1)
            #expect(try clocked.store.statistics().datasets[0].tombstoneCount == 1)
        }
    }

    @Test("A snapshot does not age")
    func snapshotIsStill() throws {
        let clocked = try ClockedStore()
        try clocked.dataset.put("1", for: "a", expiresAt: clocked.now + 10)
        let snapshot = try clocked.store.snapshot()
        let cursor = try clocked.dataset.records()
        clocked.wait(10)
        #expect(try clocked.store.deleteExpired() == 1)
        #expect(try snapshot.get(bytes("a"), in: clocked.dataset) == bytes("1"))
        #expect(try snapshot.count(of: clocked.dataset) == 1)
        #expect(try cursor.collect().count == 1)
        #expect(try clocked.dataset.get("a") == nil)
    }

    @Test("An expired record is no record for conditions")
    func conditions() throws {
        let clocked = try ClockedStore()
        let dot = try clocked.dataset.put("1", for: "a", expiresAt: clocked.now + 10)
        expectError(.versionMismatch) { try clocked.dataset.put([2], for: bytes("a"), ifAt: nil) }
        clocked.wait(10)
        expectError(.versionMismatch) { try clocked.dataset.put([2], for: bytes("a"), ifAt: dot) }
        try clocked.dataset.put([2], for: bytes("a"), ifAt: nil)
        #expect(try clocked.dataset.get("a") == [2])
    }

    @Test("The last put decides whether and when the record expires")
    func lastPutDecides() throws {
        let clocked = try ClockedStore()
        let dataset = clocked.dataset
        try dataset.put("1", for: "a", timeToLive: .milliseconds(10))
        try dataset.put("2", for: "a")
        try dataset.put("1", for: "b")
        try dataset.put("2", for: "b", timeToLive: .milliseconds(10))
        var batch = WriteBatch()
        let end = try dataset.expiry(after: .seconds(1))
        batch.put("3", for: "c", in: dataset, expiresAt: end)
        batch.put("3", for: "d", in: dataset)
        try clocked.store.write(batch)
        #expect(try dataset.record(for: "c")?.expiresAt == end)
        #expect(try dataset.record(for: "d")?.expiresAt == nil)
        clocked.wait(10)
        #expect(try dataset.records().keyTexts() == ["a", "c", "d"])
        clocked.wait(990)
        #expect(try dataset.records().keyTexts() == ["a", "d"])
    }

    @Test("A sweep tells followers, keeps the version, and gives the space back")
    func sweep() throws {
        let clocked = try ClockedStore()
        let dataset = clocked.dataset
        for index in 0..<300 {
            let key = "\(1_000 + index)"
            try dataset.put(key, for: key, expiresAt: clocked.now + 100 + UInt64(index % 3))
        }
        let before = try dataset.record(for: "1000")
        #expect(try clocked.store.deleteExpired() == 0)
        clocked.wait(101)
        let known = try dataset.syncCount
        let vector = try dataset.vector
        let digest = try dataset.digest()
        #expect(try clocked.store.deleteExpired() == 200)
        #expect(try clocked.store.deleteExpired() == 0)
        #expect(try dataset.vector == vector, "a sweep is no write with a dot of its own")
        #expect(try dataset.digest() == digest)
        let told = try dataset.changes(since: known).collect()
        #expect(told.count == 200 && told.allSatisfy { $0.isDeleted && $0.expiresAt != nil })
        #expect(told[0].version == before?.version)
        #expect(try dataset.history(of: bytes("1000")).map(\.valueText) == [nil, "1000"])
        try clocked.store.compact()
        #expect(try dataset.records(includingDeleted: true).collect().count == 100)
        clocked.wait(1)
        #expect(try clocked.store.deleteExpired() == 100)
    }

    @Test("What was swept and what is still to be swept survive closing")
    func reopening() throws {
        var clocked = try ClockedStore()
        for index in 0..<10 {
            try clocked.dataset.put(
                "1", for: "\(index)", expiresAt: clocked.now + UInt64(100 + index))
        }
        try clocked.store.compact()
        try clocked.reopen()
        clocked.wait(104)
        #expect(try clocked.store.deleteExpired() == 5)
        try clocked.reopen()
        clocked.wait(5)
        #expect(try clocked.store.deleteExpired() == 5)
        try clocked.reopen()
        #expect(try clocked.dataset.count() == 0)
        #expect(try clocked.store.deleteExpired() == 0)
    }

    @Test("Times out of bounds are refused")
    func bounds() throws {
        let clocked = try ClockedStore()
        let dataset = clocked.dataset
        try dataset.put("1", for: "a", expiresAt: 1 << 48 - 1)
        #expect(try dataset.record(for: "a")?.expiresAt == 1 << 48 - 1)
        expectError(.invalidArgument) { try dataset.put("1", for: "b", expiresAt: 1 << 48) }
        expectError(.invalidArgument) {
            try dataset.put("1", for: "b", timeToLive: .milliseconds(-1))
        }
        expectError(.invalidArgument) {
            try dataset.put("1", for: "b", timeToLive: .seconds(Int64.max))
        }
        try dataset.put("1", for: "b", expiresAt: 1)
        #expect(try dataset.get("b") == nil)
        #expect(try dataset.count() == 1)
    }

    @Test(
        "The background deletes what has expired, and says so",
        .timeLimit(.minutes(Patience.minutes)))
    func background() async throws {
        let fixture = try StoreFixture()
        var changes = fixture.dataset.liveChanges(since: 0).makeAsyncIterator()
        try fixture.dataset.put("1", for: "a", timeToLive: .milliseconds(20))
        var isDeleted = false
        while !isDeleted, let record = try await changes.next() {
            isDeleted = record.isDeleted && record.syncCount.rawValue == 2
        }
        #expect(isDeleted)
        try fixture.store.close()
    }
}
