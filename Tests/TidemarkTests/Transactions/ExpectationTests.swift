import TestSupport
import Testing
import Tidemark

/// Batches that are applied only if datasets are still as they were.
@Suite("Expected sync counts", .timeLimit(.minutes(Patience.minutes)))
struct ExpectationTests {
    @Test("What nobody has changed meanwhile is written, and its counts are the next ones")
    func unchanged() throws {
        let fixture = try StoreFixture()
        let (store, dataset) = (fixture.store, fixture.dataset)
        let other = try store.dataset("other")
        try dataset.put("old", for: "a")
        let count = try dataset.syncCount
        // Changes of other datasets do not matter, nor that the batch writes to them.
        try other.put("1", for: "x")
        var batch = WriteBatch()
        batch.put("1", for: "a", in: dataset)
        batch.put("2", for: "x", in: other)
        batch.delete("b", in: dataset)
        try store.write(batch, expecting: [(dataset: dataset, count: count)])
        #expect(try dataset.text("a") == "1")
        #expect(try other.text("x") == "2")
        let written = try dataset.changes(since: count).collect()
        #expect(written.map(\.keyText) == ["a", "b"])
        #expect(written.map(\.syncCount.rawValue) == [count.rawValue + 1, count.rawValue + 2])
    }

    @Test("Any change since then is a conflict, and nothing is written")
    func changed() throws {
        let fixture = try StoreFixture()
        let (store, dataset) = (fixture.store, fixture.dataset)
        let changes: [(Dataset) throws -> Void] = [
            { try $0.put("1", for: "b") }, { try $0.delete("a") },
            { try $0.put("1", for: "a") },
            { _ in
                try store.deleteDataset("main")
                _ = try store.dataset("main")
            },
        ]
        for change in changes {
            let count = try dataset.syncCount
            try change(dataset)
            let after = try dataset.syncCount
            #expect(after > count)
            var batch = WriteBatch()
            batch.put("never", for: "c", in: dataset)
            let error = #expect(throws: StoreError.self) {
                try store.write(batch, expecting: [(dataset: dataset, count: count)])
            }
            #expect(error?.code == .transactionConflict)
            #expect(try dataset.get("c") == nil)
            #expect(try dataset.syncCount == after)
        }
    }

    @Test("A deleted dataset has no count to be expected")
    func deleted() throws {
        let fixture = try StoreFixture()
        let (store, dataset) = (fixture.store, fixture.dataset)
        let other = try store.dataset("other")
        try dataset.put("1", for: "a")
        let count = try dataset.syncCount
        try store.deleteDataset("main")
        var batch = WriteBatch()
        batch.put("never", for: "c", in: other)
        for expected in [count, SyncCount(rawValue: count.rawValue + 1)] {
            let error = #expect(throws: StoreError.self) {
                try store.write(batch, expecting: [(dataset: dataset, count: expected)])
            }
            #expect(error?.code == .transactionConflict)
        }
        #expect(try other.get("c") == nil)
    }

    /// Each thread adds one to a number by reading it and the count, and writing both together. If
    /// anything came between a read and a write, an addition would be lost.
    @Test("Of threads that decide by the same count one goes through")
    func threads() throws {
        let fixture = try StoreFixture()
        let (store, dataset) = (fixture.store, fixture.dataset)
        try dataset.put("0", for: "sum")
        let bodies = (0..<3).map { _ in
            { @Sendable () throws -> Void in
                var added = 0
                while added < 100 {
                    let count = try dataset.syncCount
                    let sum = try dataset.text("sum").flatMap { Int($0) } ?? -1_000
                    var batch = WriteBatch()
                    batch.put("\(sum + 1)", for: "sum", in: dataset)
                    do throws(StoreError) {
                        try store.write(batch, expecting: [(dataset: dataset, count: count)])
                        added += 1
                    } catch {
                        guard error.code == .transactionConflict else { throw error }
                    }
                }
            }
        }
        try runOnThreads(bodies)
        #expect(try dataset.text("sum") == "300")
    }
}
