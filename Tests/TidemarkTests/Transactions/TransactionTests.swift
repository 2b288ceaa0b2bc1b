import TestSupport
import Testing
import Tidemark

private struct Refusal: Error {}

@Suite("Transactions")
struct TransactionTests {
    @Test("Writes of several datasets come together, and are read back before")
    func ownWrites() throws {
        let fixture = try StoreFixture()
        let (main, other) = (fixture.dataset, try fixture.store.dataset("other"))
        try main.put("old", for: "a")
        try main.put("gone", for: "b")
        let transaction = try fixture.store.beginTransaction()
        try transaction.put("new", for: "a", in: main)
        try transaction.delete("b", in: main)
        try transaction.put("1", for: "x", in: other)
        try transaction.put("2", for: "x", in: other)
        #expect(try transaction.text("a", in: main) == "new")
        #expect(try transaction.get("b", in: main) == nil)
        #expect(try !transaction.contains("b", in: main))
        #expect(try transaction.record(for: "x", in: other)?.valueText == "2")
        #expect(try transaction.record(for: "x", in: other)?.version == nil)
        let count = try transaction.withValue(for: bytes("a"), in: main) { $0?.byteCount }
        #expect(count == 3 && transaction.writeCount == 3)
        #expect(try main.text("a") == "old" && other.count() == 0, "nothing shows before")
        let before = try main.syncCount.rawValue
        try transaction.commit()
        #expect(try main.text("a") == "new" && main.get("b") == nil && other.text("x") == "2")
        #expect(try main.syncCount.rawValue == before + 2)
        #expect(try other.vector[fixture.store.replicaID] == 1, "each key once")
        let (store, reopened) = try fixture.reopened()
        #expect(try reopened.text("a") == "new")
        try store.close()
    }

    @Test("Reads are of the moment of the beginning")
    func oneMoment() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        let dot = try dataset.put("1", for: "a")
        let transaction = try fixture.store.beginTransaction()
        try dataset.put("2", for: "a")
        try dataset.put("2", for: "b")
        #expect(try transaction.text("a", in: dataset) == "1")
        #expect(try transaction.record(for: "a", in: dataset)?.version?.dot == dot)
        #expect(try transaction.get("b", in: dataset) == nil)
        #expect(try transaction.records(of: dataset).collect().map(\.keyText) == ["a"])
        // It writes nothing, so it takes effect at its moment, and commits.
        try transaction.commit()
    }

    @Test("After its end, whichever, every call throws `closed`", arguments: [0, 1, 2])
    func theEnd(kind: Int) throws {
        let fixture = try StoreFixture()
        let transaction = try fixture.store.beginTransaction()
        try transaction.put("1", for: "a", in: fixture.dataset)
        switch kind {
        case 0: try transaction.commit()
        case 1: transaction.cancel()
        default:
            _ = try transaction.get("b", in: fixture.dataset)
            try fixture.dataset.put("1", for: "b")
            expectError(.transactionConflict) { try transaction.commit() }
        }
        #expect(transaction.isOver)
        expectError(.closed) { try transaction.get("a", in: fixture.dataset) }
        expectError(.closed) { try transaction.put("1", for: "b", in: fixture.dataset) }
        expectError(.closed) { try transaction.records(of: fixture.dataset) }
        expectError(.closed) { try transaction.commit() }
        transaction.cancel()
        #expect(try fixture.dataset.contains("a") == (kind == 0))
    }

    @Test("The closure's result comes back, and its error leaves nothing behind")
    func closure() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        let count = try fixture.store.transaction { transaction in
            try transaction.put("1", for: "a", in: dataset)
            return transaction.writeCount
        }
        #expect(count == 1)
        let before = try dataset.syncCount
        #expect(throws: Refusal.self) {
            try fixture.store.transaction { transaction in
                try transaction.put("2", for: "a", in: dataset)
                throw Refusal()
            }
        }
        #expect(try dataset.text("a") == "1" && dataset.syncCount == before)
    }

    @Test("The closure is run again after a conflict, up to the bound", arguments: [1, 2, 5])
    func attempts(bound: Int) throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        var runs = 0
        expectError(.transactionConflict) {
            try fixture.store.transaction(attemptsMax: bound) { transaction in
                runs += 1
                _ = try transaction.get("a", in: dataset)
                try dataset.put("\(runs)", for: "a")
                try transaction.put("mine", for: "b", in: dataset)
            }
        }
        #expect(runs == bound)
        #expect(try !dataset.contains("b"))
        runs = 0
        let seen = try fixture.store.transaction(attemptsMax: bound + 1) { transaction in
            runs += 1
            let seen = try transaction.text("a", in: dataset)
            if runs <= bound { try dataset.put("again \(runs)", for: "a") }
            try transaction.put("mine", for: "b", in: dataset)
            return seen
        }
        #expect(runs == bound + 1 && seen == "again \(bound)", "a new moment each time")
        expectError(.invalidArgument) { try fixture.store.transaction(attemptsMax: 0) { _ in } }
    }

    @Test("Refused: other stores, writes out of bounds, datasets that are gone, read-only stores")
    func refused() throws {
        let (fixture, other) = (try StoreFixture(), try StoreFixture())
        let transaction = try fixture.store.beginTransaction()
        expectError(.invalidArgument) { try transaction.get("a", in: other.dataset) }
        expectError(.invalidArgument) { try transaction.put("1", for: "a", in: other.dataset) }
        try transaction.put("1", for: "", in: fixture.dataset)
        try transaction.put("1", for: "b", in: fixture.dataset)
        expectError(.invalidArgument) { try transaction.commit() }
        #expect(try fixture.dataset.count() == 0)
        let young = try fixture.store.beginTransaction()
        let late = try fixture.store.dataset("late")
        expectError(.datasetNotFound) { try young.get("a", in: late) }
        try young.put("1", for: "a", in: late)
        try young.commit()
        #expect(try late.text("a") == "1")
        let blind = try fixture.store.beginTransaction()
        try blind.put("2", for: "a", in: late)
        try fixture.store.deleteDataset("late")
        expectError(.datasetNotFound) { try blind.commit() }
        try fixture.store.close()
        var options = quickOptions()
        options.isReadOnly = true
        let store = try Store.open(at: fixture.path, options: options)
        let main = try #require(try store.existingDataset("main"))
        let isEmpty = try store.transaction { transaction in
            try transaction.records(of: main).collect().isEmpty
        }
        #expect(isEmpty)
        expectError(.readOnly) {
            try store.transaction { try $0.put("1", for: "a", in: main) }
        }
        try store.close()
    }
}
