import TestSupport
import Testing
import Tidemark

@Suite("Expiry in transactions, batches and typed datasets")
struct TransactionExpiryTests {
    @Test("A transaction puts records that expire, and reads them back with their time")
    func transaction() throws {
        let clocked = try ClockedStore()
        let dataset = clocked.dataset
        let end = clocked.now + 1_000
        try clocked.store.transaction { transaction in
            try transaction.put("1", for: "a", in: dataset, expiresAt: end)
            try transaction.put([2], for: bytes("b"), in: dataset, expiresAt: end)
            try transaction.put("3", for: "b", in: dataset)
            try transaction.put("4", for: "c", in: dataset)
            try transaction.put("5", for: "c", in: dataset, expiresAt: end + 1)
            #expect(try transaction.record(for: "a", in: dataset)?.expiresAt == end)
            #expect(try transaction.record(for: "b", in: dataset)?.expiresAt == nil)
            let all = try transaction.records(of: dataset).collect()
            #expect(all.map(\.expiresAt) == [end, nil, end + 1])
        }
        #expect(try dataset.record(for: "a")?.expiresAt == end)
        #expect(try dataset.record(for: "b")?.expiresAt == nil)
        clocked.wait(1_000)
        #expect(try dataset.records().keyTexts() == ["b", "c"])
        try clocked.store.transaction { transaction in
            let left = try transaction.records(of: dataset).collect()
            #expect(left.map(\.expiresAt) == [nil, end + 1])
            #expect(try !transaction.contains("a", in: dataset))
        }
    }

    @Test("What has expired when the transaction began is not there, also if it was put within")
    func alreadyExpired() throws {
        let clocked = try ClockedStore()
        let dataset = clocked.dataset
        try dataset.put("old", for: "a")
        let transaction = try clocked.store.beginTransaction()
        try transaction.put("gone", for: "a", in: dataset, expiresAt: clocked.now)
        try transaction.put("there", for: "b", in: dataset, expiresAt: clocked.now + 1)
        #expect(try transaction.get("a", in: dataset) == nil)
        #expect(try transaction.records(of: dataset).collect().map(\.keyText) == ["b"])
        clocked.wait(10)
        // Its own clock stands still.
        #expect(try transaction.text("b", in: dataset) == "there")
        try transaction.commit()
        #expect(try dataset.count() == 0)
        #expect(try dataset.history(of: bytes("a")).map(\.valueText) == ["gone", "old"])
    }

    @Test("A time out of bounds fails the commit, and nothing was written")
    func bounds() throws {
        let clocked = try ClockedStore()
        let transaction = try clocked.store.beginTransaction()
        try transaction.put("1", for: "a", in: clocked.dataset)
        try transaction.put("1", for: "b", in: clocked.dataset, expiresAt: Limits.expiryMax + 1)
        expectError(.invalidArgument) { try transaction.commit() }
        #expect(try clocked.dataset.count() == 0)
    }

    @Test("Typed datasets put records that expire, alone, in batches and in transactions")
    func typed() throws {
        let clocked = try ClockedStore()
        let numbers = TypedDataset(clocked.dataset, UInt32.self, IntegerCoding<Int64>())
        let end = clocked.now + 1_000
        try numbers.put(1, for: 1, expiresAt: end)
        try numbers.put(2, for: 2, timeToLive: .milliseconds(1_001))
        try numbers.put(3, for: 3)
        var batch = WriteBatch()
        try numbers.put(4, for: 4, in: &batch, expiresAt: end + 2)
        try clocked.store.write(batch)
        try clocked.store.transaction { transaction in
            try numbers.put(5, for: 5, in: transaction, expiresAt: end + 3)
        }
        let ends = try (1...5).map { try numbers.expiry(of: $0) }
        #expect(ends == [end, end + 1, nil, end + 2, end + 3])
        clocked.wait(1_001)
        #expect(try numbers.records().map(\.value) == [3, 4, 5])
        #expect(throws: StoreError.self) {
            try numbers.put(1, for: 1, timeToLive: .milliseconds(-1))
        }
    }
}
