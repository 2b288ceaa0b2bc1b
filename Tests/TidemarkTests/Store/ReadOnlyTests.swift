import TestSupport
import Testing
import Tidemark

@Suite("Read-only stores")
struct ReadOnlyTests {
    private var readOnly: StoreOptions {
        var options = quickOptions()
        options.isReadOnly = true
        return options
    }

    @Test("Opens beside the writer, sees the moment of opening, changes no byte")
    func besideWriter() throws {
        let fixture = try StoreFixture()
        for index in 0..<100 { try fixture.dataset.put("old", for: "key \(index)") }
        try fixture.store.compact()
        try fixture.dataset.put("new", for: "key 1")
        try fixture.store.sync()
        let before = try Files.contents(fixture.path)
        let reader = try Store.open(at: fixture.path, options: readOnly)
        let dataset = try #require(try reader.existingDataset("main"))
        #expect(try Files.contents(fixture.path) == before)
        try fixture.dataset.put("later", for: "key 2")
        #expect(try dataset.text("key 1") == "new")
        #expect(try dataset.text("key 2") == "old")
        #expect(try dataset.count() == 100)
        #expect(reader.replicaID == fixture.store.replicaID)
        // The writer may seal, merge and remove the files under the reader.
        try fixture.store.compact()
        try fixture.store.close()
        #expect(try dataset.text("key 1") == "new")
        #expect(try dataset.records().collect().count == 100)
        try reader.close()
    }

    @Test("Two readers at once, without a writer, leave the directory as it is")
    func readersOnly() throws {
        let fixture = try StoreFixture()
        try fixture.dataset.put("1", for: "a")
        try fixture.store.close()
        let before = try Files.contents(fixture.path)
        let first = try Store.open(at: fixture.path, options: readOnly)
        let second = try Store.open(at: fixture.path, options: readOnly)
        #expect(try first.dataset("main").text("a") == "1")
        #expect(try second.dataset("main").text("a") == "1")
        #expect(try first.verify().damages.isEmpty)
        try first.close()
        try second.close()
        #expect(try Files.contents(fixture.path) == before)
    }

    @Test("Every write is refused")
    func refusesWrites() throws {
        let fixture = try StoreFixture()
        try fixture.dataset.put("1", for: "a")
        try fixture.store.close()
        let store = try Store.open(at: fixture.path, options: readOnly)
        let dataset = try store.dataset("main")
        var batch = WriteBatch()
        batch.put("2", for: "a", in: dataset)
        expectError(.readOnly) { try dataset.put("2", for: "a") }
        expectError(.readOnly) { try dataset.put([2], for: bytes("a"), ifAt: nil) }
        expectError(.readOnly) { try dataset.delete("a") }
        expectError(.readOnly) { try dataset.clear() }
        expectError(.readOnly) { try store.write(batch) }
        expectError(.readOnly) { try store.deleteDataset("main") }
        expectError(.readOnly) { try store.dataset("other") }
        expectError(.readOnly) { try store.compact() }
        #expect(try store.existingDataset("other") == nil)
        #expect(try dataset.text("a") == "1")
        try store.close()
    }

    @Test("There must be a store, whatever createsIfMissing says")
    func createsNothing() throws {
        let directory = try TemporaryDirectory()
        expectError(.notAStore) { try Store.open(at: directory["none"], options: readOnly) }
        #expect(!Files.exists(directory["none"]))
    }
}
