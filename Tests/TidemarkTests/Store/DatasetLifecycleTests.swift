import TestSupport
import Testing
import Tidemark

@Suite("Creating and deleting datasets")
struct DatasetLifecycleTests {
    @Test(
        "Names of 1 to 255 letters, digits, _ . : and - are accepted",
        arguments: [
            "a", "Z", "0", "_", ".", ":", "-", "..", "a.b:c_d-e",
            String(repeating: "x", count: 128), String(repeating: "y", count: 255),
        ])
    func goodNames(name: String) throws {
        let fixture = try StoreFixture()
        try fixture.store.dataset(name).put("1", for: "a")
        let (store, _) = try fixture.reopened()
        #expect(try store.existingDataset(name)?.text("a") == "1")
        try store.close()
    }

    @Test(
        "Any other name is refused",
        arguments: [
            "", " ", "a b", "a/b", "ä", "a\n", "a\0", "*", String(repeating: "x", count: 256), "日本",
        ])
    func badNames(name: String) throws {
        let fixture = try StoreFixture()
        expectError(.invalidArgument) { try fixture.store.dataset(name) }
        expectError(.invalidArgument) { try fixture.store.existingDataset(name) }
        expectError(.invalidArgument) { try fixture.store.deleteDataset(name) }
        #expect(try fixture.store.datasets().map(\.name) == ["main"])
    }

    @Test("A deleted dataset is gone, and its handles say so")
    func deletion() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        try dataset.put("1", for: "a")
        #expect(try fixture.store.deleteDataset("main"))
        #expect(try !fixture.store.deleteDataset("main"))
        #expect(try !fixture.store.deleteDataset("never-there"))
        #expect(try fixture.store.existingDataset("main") == nil)
        #expect(try fixture.store.datasets().isEmpty)
        var batch = WriteBatch()
        batch.put("2", for: "b", in: dataset)
        expectError(.datasetNotFound) { try dataset.get("a") }
        expectError(.datasetNotFound) { try dataset.put("2", for: "b") }
        expectError(.datasetNotFound) { try dataset.delete("a") }
        expectError(.datasetNotFound) { try dataset.records() }
        expectError(.datasetNotFound) { try dataset.count() }
        expectError(.datasetNotFound) { try dataset.clear() }
        expectError(.datasetNotFound) { try fixture.store.write(batch) }
    }

    @Test(
        "Recreated, it starts empty and counts on, also after reopening and compaction",
        arguments: [false, true], [false, true])
    func recreation(isReopened: Bool, isCompacted: Bool) throws {
        let fixture = try StoreFixture()
        var store = fixture.store
        for index in 0..<20 { try fixture.dataset.put("old", for: "key \(index)") }
        if isCompacted { try store.compact() }
        let before = try fixture.dataset.syncCount
        try store.deleteDataset("main")
        if isCompacted { try store.compact() }
        if isReopened { (store, _) = try fixture.reopened() }
        let dataset = try store.dataset("main")
        #expect(try dataset.count() == 0)
        #expect(try dataset.records(includingDeleted: true).collect().isEmpty)
        #expect(try dataset.get("key 3") == nil)
        #expect(try dataset.record(for: "key 3", includingDeleted: true) == nil)
        #expect(try dataset.history(of: bytes("key 3")).isEmpty)
        #expect(try dataset.changes(since: 0).collect().isEmpty)
        let after = try dataset.syncCount
        #expect(after > before, "that all records went is a change")
        #expect(try dataset.put("new", for: "key 3").counter == 21, "no dot is used twice")
        #expect(try dataset.syncCount > after)
        #expect(try dataset.changes(since: after).keyTexts() == ["key 3"])
        expectError(.changesExpired) { try dataset.changes(since: before) }
        if isCompacted { try store.compact() }
        try store.close()
        let last = try Store.open(at: fixture.path, options: quickOptions())
        #expect(try last.existingDataset("main")?.records().keyTexts() == ["key 3"])
        #expect(try last.existingDataset("main")?.text("key 3") == "new")
        try last.close()
    }

    @Test("Deleting one dataset leaves the others alone")
    func others() throws {
        let fixture = try StoreFixture()
        let names = ["mai", "main.", "mainz", "m"]
        for name in names { try fixture.store.dataset(name).put(name, for: "a") }
        try fixture.dataset.put("gone", for: "a")
        try fixture.store.deleteDataset("main")
        try fixture.store.compact()
        for name in names {
            #expect(try fixture.store.existingDataset(name)?.text("a") == name)
        }
        #expect(try fixture.store.datasets().map(\.name) == names.sorted())
    }

    @Test("A snapshot keeps a deleted dataset's records")
    func snapshotOfDeleted() throws {
        let fixture = try StoreFixture()
        try fixture.dataset.put("old", for: "a")
        let snapshot = try fixture.store.snapshot()
        try fixture.store.deleteDataset("main")
        let again = try fixture.store.dataset("main")
        try again.put("new", for: "b")
        try fixture.store.compact()
        #expect(try snapshot.get(bytes("a"), in: again) == bytes("old"))
        #expect(try snapshot.get(bytes("b"), in: again) == nil)
        #expect(try snapshot.records(of: again).keyTexts() == ["a"])
        #expect(try snapshot.count(of: again) == 1)
        snapshot.close()
    }
}
