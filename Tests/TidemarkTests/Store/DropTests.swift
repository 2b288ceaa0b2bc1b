import TestSupport
import Testing
import Tidemark

/// Records that are let go here and nowhere else, as a replica does that keeps a part of a dataset.
@Suite("Dropped records")
struct DropTests {
    private static let writer = ReplicaID(high: 7, low: 7)

    private func version(_ counter: UInt64) -> Version {
        Version(
            dot: Dot(replica: Self.writer, counter: counter), vector: VersionVector(),
            time: HybridTime(milliseconds: 1_000 + counter, counter: 0))
    }

    /// Takes up another replica's version in place of whatever lies here.
    private func adopt(
        _ value: String?, for key: String, _ counter: UInt64, in dataset: Dataset
    ) throws {
        var batch = ReplicationBatch()
        batch.writes = [
            ReplicatedWrite(
                key: bytes(key),
                content: .adopt(value: value.map(bytes), version: version(counter)),
                expected: try dataset.storedRecord(for: bytes(key))?.version)
        ]
        #expect(try dataset.replicate(batch).isEmpty)
    }

    private func drop(_ key: String, in dataset: Dataset) throws {
        let record = try #require(try dataset.storedRecord(for: bytes(key)))
        var batch = ReplicationBatch()
        batch.drops = [LocalDrop(key: bytes(key), expected: record.version)]
        #expect(try dataset.replicate(batch).isEmpty)
    }

    @Test("A dropped record is gone for readers, and no peer is told")
    func goneHereAlone() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        try adopt("1", for: "a", 1, in: dataset)
        try adopt("2", for: "b", 2, in: dataset)
        let before = try dataset.knowledge()
        let (other, digest) = (try StoreFixture(), try dataset.digest())
        try adopt("2", for: "b", 2, in: other.dataset)
        #expect(try other.dataset.digest() != digest)
        try drop("a", in: dataset)
        #expect(try dataset.get("a") == nil)
        #expect(try dataset.count() == 1)
        #expect(try dataset.records().keyTexts() == ["b"])
        // A follower is told that it went.
        let change = try #require(try dataset.changes(since: before.syncCount).next())
        #expect(change.keyText == "a" && change.isDeleted && change.isDropped && !change.isDirty)
        // It says nothing of what was seen, and nothing to peers.
        #expect(try dataset.vector == before.vector)
        let page = try dataset.changesPage(
            since: 0, recordsMax: 100, bytesMax: 1 << 20, excluding: VersionVector())
        #expect(page.records.map(\.keyText) == ["b"] && page.isLast)
        #expect(page.through.rawValue == before.syncCount.rawValue + 1)
        #expect(try dataset.digest() == other.dataset.digest())
        try fixture.store.close()
        try other.store.close()
    }

    @Test("The very version that was dropped can come again", arguments: [false, true])
    func comesAgain(isSealed: Bool) throws {
        let fixture = try StoreFixture()
        try adopt("1", for: "a", 1, in: fixture.dataset)
        try drop("a", in: fixture.dataset)
        if isSealed { try fixture.store.compact() }
        let (store, dataset) = try fixture.reopened()
        #expect(try dataset.get("a") == nil)
        try adopt("1", for: "a", 1, in: dataset)
        #expect(try dataset.text("a") == "1")
        #expect(try dataset.record(for: "a")?.version == version(1))
        #expect(try store.verify().damages.isEmpty)
        try store.close()
    }

    @Test("A record that has moved on is not dropped, and nothing else of the batch happens")
    func movedOn() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        try adopt("1", for: "a", 1, in: dataset)
        try adopt("1", for: "b", 2, in: dataset)
        var batch = ReplicationBatch()
        batch.drops = [
            LocalDrop(key: bytes("b"), expected: version(2)),
            LocalDrop(key: bytes("a"), expected: version(1)),
        ]
        try dataset.put("2", for: "a")
        #expect(try dataset.replicate(batch) == [bytes("a")])
        #expect(try dataset.text("a") == "2")
        #expect(try dataset.text("b") == "1")
        try fixture.store.close()
    }

    @Test("A write after a drop descends from nothing that was dropped")
    func writtenAfter() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        try adopt("1", for: "a", 1, in: dataset)
        try adopt("1", for: "b", 2, in: dataset)
        try drop("a", in: dataset)
        try dataset.put("2", for: "a")
        try dataset.put("2", for: "b")
        let (a, b) = (try dataset.record(for: "a"), try dataset.record(for: "b"))
        #expect(a?.version.vector[Self.writer] == 0)
        #expect(b?.version.vector[Self.writer] == 2)
        try fixture.store.close()
    }

    @Test("Compaction leaves nothing of them, also where there are peers")
    func compacted() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        var batch = ReplicationBatch()
        batch.checkpoint = (Self.writer, PeerCheckpoint(pulledThrough: 5))
        #expect(try dataset.replicate(batch).isEmpty)
        for counter in 1...50 {
            try adopt("value", for: "key \(counter)", UInt64(counter), in: dataset)
        }
        for counter in 1...49 { try drop("key \(counter)", in: dataset) }
        try adopt(nil, for: "key 50", 51, in: dataset)
        try fixture.store.compact()
        let left = try dataset.records(includingDeleted: true).collect()
        // A deletion is remembered for the peers.
        #expect(left.map(\.keyText) == ["key 50"] && left.allSatisfy { !$0.isDropped })
        try fixture.store.close()
    }

    @Test("Whatever comes, goes and is closed in between, a model holds the same")
    func model() throws {
        withSeed { seed in
            var random = SeededGenerator(seed)
            for _ in 0..<20 {
                let fixture = try StoreFixture()
                var (store, dataset) = (fixture.store, fixture.dataset)
                var live: [String: String] = [:]
                var counter: UInt64 = 0
                for step in 0..<120 {
                    let key = "key \(random.below(12))"
                    switch random.below(12) {
                    case ..<4:
                        counter += 1
                        let value = random.oneIn(5) ? nil : "\(step)"
                        try adopt(value, for: key, counter, in: dataset)
                        live[key] = value
                    case ..<6:
                        try dataset.put("own \(step)", for: key)
                        live[key] = "own \(step)"
                    case ..<10:
                        guard try dataset.storedRecord(for: bytes(key)) != nil else { continue }
                        let vector = try dataset.vector
                        try drop(key, in: dataset)
                        #expect(try dataset.vector == vector)
                        live[key] = nil
                    case 10:
                        try store.compact()
                    default:
                        try store.close()
                        store = try Store.open(at: fixture.path, options: quickOptions())
                        dataset = try store.dataset("main")
                    }
                }
                var held: [String: String] = [:]
                for record in try dataset.records().collect() {
                    held[record.keyText ?? "?"] = record.valueText
                }
                #expect(held == live, "\(seed)")
                #expect(try store.verify().damages.isEmpty, "\(seed)")
                try store.close()
            }
        }
    }
}
