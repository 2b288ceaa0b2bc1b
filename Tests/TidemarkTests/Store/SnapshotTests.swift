import TestSupport
import Testing
import Tidemark

@Suite("Snapshots")
struct SnapshotTests {
    @Test("Stays still under writes, sealing, compaction and deletion")
    func stillness() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        let other = try fixture.store.dataset("other")
        for index in 0..<300 { try dataset.put("old \(index)", for: "key \(index)") }
        try dataset.delete("key 7")
        try other.put("1", for: "a")
        let snapshot = try fixture.store.snapshot()
        let records = try dataset.records(includingDeleted: true).collect()
        let changes = try dataset.changes(since: 100).collect()
        func check() throws {
            #expect(try snapshot.records(of: dataset, includingDeleted: true).collect() == records)
            #expect(try snapshot.changes(of: dataset, since: 100).collect() == changes)
            #expect(try snapshot.count(of: dataset) == 299)
            #expect(try snapshot.get(bytes("key 5"), in: dataset) == bytes("old 5"))
            #expect(try snapshot.record(for: bytes("key 7"), in: dataset) == nil)
            let tombstone = try snapshot.record(
                for: bytes("key 7"), in: dataset, includingDeleted: true)
            #expect(tombstone?.isDeleted == true)
            #expect(try snapshot.get(bytes("a"), in: other) == bytes("1"))
            let last = try snapshot.records(
                of: dataset, in: .prefix("key 29"), order: .backward
            ).next()
            #expect(last?.keyText == "key 299")
        }
        try check()
        // Enough bytes to fill several of the smallest segments.
        let filling = [UInt8](repeating: 1, count: 20_000)
        for index in 0..<300 { try dataset.put(filling, for: bytes("key \(index)")) }
        try other.delete("a")
        try check()
        try fixture.store.compact()
        try check()
        try dataset.clear()
        try fixture.store.compact()
        try check()
        snapshot.close()
    }

    @Test("A closed snapshot says so, and may be closed again")
    func closing() throws {
        let fixture = try StoreFixture()
        let snapshot = try fixture.store.snapshot()
        snapshot.close()
        snapshot.close()
        expectError(.closed) { try snapshot.get(bytes("a"), in: fixture.dataset) }
        expectError(.closed) { try snapshot.records(of: fixture.dataset) }
        expectError(.closed) { try snapshot.count(of: fixture.dataset) }
        expectError(.closed) { try snapshot.changes(of: fixture.dataset, since: 0) }
    }

    @Test("Closing a snapshot lets its old segments go")
    func space() throws {
        let fixture = try StoreFixture()
        var random = SeededGenerator(Seed(3))
        for index in 0..<100 { try fixture.dataset.put(random.bytes(10_000), for: [UInt8(index)]) }
        try fixture.store.compact()
        let snapshot = try fixture.store.snapshot()
        try fixture.dataset.clear()
        try fixture.store.compact()
        #expect(try snapshot.count(of: fixture.dataset) == 100)
        snapshot.close()
        try fixture.store.compact()
        let sealed = try Files.list(fixture.path).filter { $0.hasSuffix(".seg") }
        let sealedBytes = try sealed.reduce(0) {
            try $0 + Files.read(fixture.path + "/" + $1).count
        }
        #expect(sealedBytes < 100_000, "a million bytes of dead values are still there")
    }

    @Test("A dataset made after the snapshot is not in it")
    func laterDataset() throws {
        let fixture = try StoreFixture()
        let snapshot = try fixture.store.snapshot()
        let later = try fixture.store.dataset("later")
        try later.put("1", for: "a")
        expectError(.datasetNotFound) { try snapshot.get(bytes("a"), in: later) }
        snapshot.close()
    }
}
