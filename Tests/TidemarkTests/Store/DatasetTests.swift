import TestSupport
import Testing
import Tidemark

@Suite("Datasets")
struct DatasetTests {
    @Test("put, get, contains, delete; an empty value is a value")
    func basics() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        #expect(dataset.name == "main" && dataset.store === fixture.store)
        #expect(try dataset.get("a") == nil && !dataset.contains("a"))
        let first = try dataset.put("one", for: "a")
        #expect(try dataset.get("a") == bytes("one") && dataset.contains("a"))
        try dataset.put([], for: bytes("empty"))
        #expect(try dataset.get("empty") == [] && dataset.contains(bytes("empty")))
        #expect(try dataset.text("empty") == "")
        let second = try dataset.put("two", for: "a")
        #expect(try dataset.text("a") == "two")
        #expect(first.replica == fixture.store.replicaID && first.counter == 1)
        #expect(second.counter == 3)
        let third = try dataset.delete("a")
        #expect(third.counter == 4)
        #expect(try dataset.get("a") == nil && !dataset.contains("a"))
        #expect(try dataset.count() == 1)
    }

    @Test("Text that is not UTF-8 is an error, not mangled")
    func text() throws {
        let fixture = try StoreFixture()
        try fixture.dataset.put([0xC3, 0x28], for: bytes("bad"))
        expectError(.invalidArgument) { try fixture.dataset.text("bad") }
        #expect(try fixture.dataset.text("missing") == nil)
        let record = try #require(try fixture.dataset.record(for: "bad"))
        #expect(record.valueText == nil && record.keyText == "bad")
    }

    @Test("A tombstone is a record, and a deletion of nothing leaves one")
    func tombstones() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        try dataset.put("1", for: "a")
        try dataset.put("2", for: "b")
        let dot = try dataset.delete("a")
        try dataset.delete("never there")
        #expect(try dataset.record(for: "a") == nil)
        let tombstone = try #require(try dataset.record(for: "a", includingDeleted: true))
        #expect(tombstone.isDeleted && tombstone.value == nil && tombstone.version.dot == dot)
        #expect(try dataset.records().keyTexts() == ["b"])
        let all = try dataset.records(includingDeleted: true).collect()
        #expect(all.map(\.keyText) == ["a", "b", "never there"])
        #expect(all.map(\.isDeleted) == [true, false, true])
        #expect(try dataset.count() == 1)
        let size = try dataset.size()
        #expect([size.recordCount, size.keyBytes, size.valueBytes] == [1, 1, 1])
    }

    @Test("Dots, times and sync counts grow with each write; the author is written down")
    func versions() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        let start = try dataset.syncCount.rawValue
        var last: Record?
        for index in 1...200 {
            let key = "key \(index % 7)"
            let dot = try dataset.put("\(index)", for: key)
            let record = try #require(try dataset.record(for: key))
            #expect(record.version.dot == dot && dot.counter == UInt64(index))
            #expect(record.syncCount.rawValue == start + UInt64(index))
            #expect(record.version.author == "tester" && record.isDirty)
            #expect(record.version.vector.contains(dot))
            if let last {
                #expect(record.version.time > last.version.time)
                #expect(record.version.isLater(than: last.version))
                #expect(record.version.vector.covers(last.version.vector))
            }
            last = record
        }
        #expect(try dataset.vector == last?.version.vector)
        #expect(try dataset.syncCount == last?.syncCount)
    }

    @Test("Datasets count for themselves")
    func independence() throws {
        let fixture = try StoreFixture()
        let other = try fixture.store.dataset("other")
        try fixture.dataset.put("1", for: "a")
        try fixture.dataset.put("2", for: "a")
        #expect(try other.put("3", for: "a").counter == 1)
        #expect(try fixture.dataset.text("a") == "2" && other.text("a") == "3")
        #expect(try fixture.store.datasets().map(\.name) == ["main", "other"])
    }

    @Test("Two handles of one dataset are the same dataset")
    func handles() throws {
        let fixture = try StoreFixture()
        let again = try fixture.store.dataset("main")
        let existing = try #require(try fixture.store.existingDataset("main"))
        try again.put("1", for: "a")
        #expect(try fixture.dataset.text("a") == "1" && existing.text("a") == "1")
    }

    @Test("Clearing leaves a tombstone for each record that lived")
    func clear() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        for index in 0..<30 { try dataset.put("\(index)", for: "key \(index)") }
        try dataset.delete("key 7")
        let before = try dataset.syncCount.rawValue
        try dataset.clear()
        #expect(try dataset.count() == 0)
        #expect(try dataset.records(includingDeleted: true).collect().count == 30)
        #expect(try dataset.syncCount.rawValue == before + 29)
        #expect(try dataset.changes(since: SyncCount(rawValue: before)).collect().count == 29)
        try dataset.clear()
        #expect(try dataset.syncCount.rawValue == before + 29, "there was nothing to clear")
        let (store, reopened) = try fixture.reopened()
        #expect(try reopened.count() == 0)
        try store.close()
    }

    @Test("History gives the retained versions, newest first, also after compaction")
    func history() throws {
        var options = quickOptions()
        options.historyVersions = 3
        let fixture = try StoreFixture(options)
        for index in 1...10 { try fixture.dataset.put("\(index)", for: "a") }
        try fixture.dataset.delete("a")
        try fixture.dataset.put("other", for: "b")
        try fixture.store.compact()
        func check(_ dataset: Dataset) throws {
            let history = try dataset.history(of: bytes("a"))
            #expect(history.count >= 4)
            #expect(history.prefix(4).map(\.valueText) == [nil, "10", "9", "8"])
            #expect(history.allSatisfy { $0.keyText == "a" })
            #expect(try dataset.history(of: bytes("missing")).isEmpty)
        }
        try check(fixture.dataset)
        let (store, dataset) = try fixture.reopened(options)
        try check(dataset)
        try store.close()
    }

    @Test("The digest is of the records, not of how they came about")
    func digest() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        let empty = try dataset.digest()
        try dataset.put("1", for: "a")
        let one = try dataset.digest()
        #expect(one != empty)
        try fixture.store.compact()
        #expect(try dataset.digest() == one)
        try dataset.put("1", for: "a")
        #expect(try dataset.digest() != one, "the same value by another write")
    }
}
