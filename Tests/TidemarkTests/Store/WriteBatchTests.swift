import TestSupport
import Testing
import Tidemark

@Suite("Batches and conditions")
struct WriteBatchTests {
    @Test("A batch goes to any datasets, and its writes count in their order")
    func acrossDatasets() throws {
        let fixture = try StoreFixture()
        let other = try fixture.store.dataset("other")
        try fixture.dataset.put("old", for: "b")
        var batch = WriteBatch()
        #expect(batch.isEmpty)
        batch.put("1", for: "a", in: fixture.dataset)
        batch.put([2], for: [2], in: other)
        batch.delete("b", in: fixture.dataset)
        batch.delete([9], in: other)
        #expect(batch.count == 4)
        try fixture.store.write(batch)
        #expect(try fixture.dataset.text("a") == "1" && fixture.dataset.get("b") == nil)
        #expect(try other.get([2]) == [2] && other.count() == 1)
        let changes = try fixture.dataset.changes(since: 0).collect()
        #expect(changes.map(\.keyText) == ["a", "b"])
        #expect(changes.map(\.version.dot.counter) == [2, 3])
        let (store, dataset) = try fixture.reopened()
        #expect(try dataset.text("a") == "1" && store.dataset("other").get([2]) == [2])
        try store.close()
    }

    @Test("Of two writes to one key the later stands, and both count")
    func sameKeyTwice() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        let before = try dataset.syncCount.rawValue
        var batch = WriteBatch()
        batch.put("1", for: "a", in: dataset)
        batch.put("2", for: "b", in: dataset)
        batch.delete("a", in: dataset)
        batch.put("3", for: "a", in: dataset)
        batch.delete("b", in: dataset)
        try fixture.store.write(batch)
        func check(_ dataset: Dataset) throws {
            #expect(try dataset.text("a") == "3" && dataset.get("b") == nil)
            #expect(try dataset.syncCount.rawValue == before + 5)
            #expect(try dataset.record(for: "a")?.version.dot.counter == 4)
            let changes = try dataset.changes(since: 0).collect()
            #expect(changes.map(\.keyText) == ["a", "b"], "each key once, at its last change")
        }
        try check(dataset)
        let (store, reopened) = try fixture.reopened()
        try check(reopened)
        try store.close()
    }

    @Test("An empty batch is fine and changes nothing")
    func empty() throws {
        let fixture = try StoreFixture()
        let before = try fixture.dataset.syncCount
        try fixture.store.write(WriteBatch())
        #expect(try fixture.dataset.syncCount == before)
    }

    @Test("A put at a version succeeds at that version and at no other")
    func compareAndSet() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        let key = bytes("a")
        let first = try dataset.put([1], for: key, ifAt: nil)
        expectError(.versionMismatch) { try dataset.put([2], for: key, ifAt: nil) }
        let second = try dataset.put([2], for: key, ifAt: first)
        expectError(.versionMismatch) { try dataset.put([3], for: key, ifAt: first) }
        #expect(try dataset.get(key) == [2])
        #expect(try dataset.vector[fixture.store.replicaID] == 2, "refused writes take no dot")
        try dataset.delete(key)
        expectError(.versionMismatch) { try dataset.put([3], for: key, ifAt: second) }
        try dataset.put([4], for: key, ifAt: nil)
        let foreign = Dot(replica: ReplicaID(high: 1, low: 1), counter: 1)
        expectError(.versionMismatch) { try dataset.put([5], for: key, ifAt: foreign) }
        #expect(try dataset.get(key) == [4])
    }

    @Test("One condition that fails fails the whole batch", arguments: [0, 1, 2])
    func failedCondition(position: Int) throws {
        let fixture = try StoreFixture()
        let other = try fixture.store.dataset("other")
        let dot = try fixture.dataset.put("1", for: "a")
        try fixture.dataset.put("2", for: "a")
        let digest = try fixture.dataset.digest()
        var batch = WriteBatch()
        for index in 0..<3 {
            if index == position {
                batch.put([3], for: bytes("a"), in: fixture.dataset, ifAt: dot)
            } else {
                batch.put("x", for: "\(index)", in: other)
                batch.put("x", for: "\(index)", in: fixture.dataset)
            }
        }
        expectError(.versionMismatch) { try fixture.store.write(batch) }
        #expect(try fixture.dataset.digest() == digest && other.count() == 0)
        let (store, dataset) = try fixture.reopened()
        #expect(try dataset.digest() == digest)
        try store.close()
    }

    @Test("A deletion at a version")
    func conditionalDeletion() throws {
        let fixture = try StoreFixture()
        let key = bytes("a")
        let old = try fixture.dataset.put([1], for: key)
        let new = try fixture.dataset.put([2], for: key)
        func delete(at dot: Dot?) throws {
            var batch = WriteBatch()
            batch.delete(key, in: fixture.dataset, ifAt: dot)
            try fixture.store.write(batch)
        }
        expectError(.versionMismatch) { try delete(at: old) }
        expectError(.versionMismatch) { try delete(at: nil) }
        try delete(at: new)
        #expect(try fixture.dataset.get(key) == nil)
    }

    @Test("A handle of another store does not get into a batch")
    func foreignDataset() throws {
        let (one, two) = (try StoreFixture(), try StoreFixture())
        var batch = WriteBatch()
        batch.put("1", for: "a", in: one.dataset)
        batch.put("1", for: "a", in: two.dataset)
        expectError(.invalidArgument) { try one.store.write(batch) }
        #expect(try one.dataset.count() == 0 && two.dataset.count() == 0)
    }
}
