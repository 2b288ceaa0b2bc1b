import TestSupport
import Testing
import Tidemark

@Suite("Changes")
struct ChangesTests {
    @Test("Each key once, at its newest version, in the order of change")
    func order() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        for text in ["a", "b", "c", "a", "d", "b"] { try dataset.put(text, for: text) }
        try dataset.delete("c")
        let changes = try dataset.changes(since: 0).collect()
        #expect(changes.map(\.keyText) == ["a", "d", "b", "c"])
        #expect(changes.map(\.isDeleted) == [false, false, false, true])
        for (earlier, later) in zip(changes, changes.dropFirst()) {
            #expect(earlier.syncCount < later.syncCount)
        }
    }

    @Test("Nothing is missed and nothing comes twice, from wherever one goes on")
    func everyStart() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        for index in 0..<60 {
            try dataset.put("\(index)", for: "key \(index % 13)")
            if index % 20 == 19 { try fixture.store.compact() }
        }
        let all = try dataset.changes(since: 0).collect()
        let end = try dataset.syncCount.rawValue
        for since in 0...end {
            let changes = try dataset.changes(since: SyncCount(rawValue: since)).collect()
            #expect(changes == all.filter { $0.syncCount.rawValue > since })
        }
        #expect(try dataset.changes(since: SyncCount(rawValue: end)).collect().isEmpty)
    }

    @Test("The same after reopening and after compaction")
    func persistence() throws {
        var options = quickOptions()
        options.historyVersions = 1
        let fixture = try StoreFixture(options)
        for index in 0..<100 { try fixture.dataset.put("\(index)", for: "key \(index % 30)") }
        try fixture.dataset.delete("key 3")
        let changes = try fixture.dataset.changes(since: 5).collect()
        let (store, dataset) = try fixture.reopened(options)
        #expect(try dataset.changes(since: 5).collect() == changes)
        try store.compact()
        #expect(try dataset.changes(since: 5).collect() == changes)
        try store.close()
    }

    /// Without history and without peers nobody needs a tombstone once all older versions are gone.
    @Test("Where compaction collected a tombstone, changes before it have expired")
    func expiry() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        try dataset.put("1", for: "a")
        let before = try dataset.syncCount
        try dataset.put("2", for: "b")
        try dataset.delete("a")
        let after = try dataset.syncCount
        try fixture.store.compact()
        do {
            // If the tombstone is still there, it must be told.
            #expect(try dataset.changes(since: before).keyTexts() == ["b", "a"])
        } catch let error as StoreError {
            #expect(error.code == .changesExpired)
        }
        #expect(try dataset.changes(since: after).collect().isEmpty)
        try dataset.put("3", for: "c")
        #expect(try dataset.changes(since: after).keyTexts() == ["c"])
        #expect(try dataset.records().keyTexts() == ["b", "c"])
    }

    @Test("A walk stays at its moment")
    func stillness() throws {
        let fixture = try StoreFixture()
        for index in 0..<20 { try fixture.dataset.put("old", for: "\(index)") }
        let cursor = try fixture.dataset.changes(since: 0)
        try fixture.dataset.put("new", for: "3")
        try fixture.store.compact()
        let records = try cursor.collect()
        #expect(records.count == 20 && records.allSatisfy { $0.valueText == "old" })
    }
}
