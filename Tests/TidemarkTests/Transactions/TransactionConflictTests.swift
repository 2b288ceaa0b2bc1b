import TestSupport
import Testing
import Tidemark

/// Two parties, one of them a transaction. What it has read must not change before it commits:
///
///     transaction:  begin -- reads ------------------------- commit: conflict
///     other:                          writes what was read
///
/// Each case runs with the change in the memtable, sealed into a segment, and compacted.
@Suite("Conflicts of transactions")
struct TransactionConflictTests {
    enum Aftermath: CaseIterable {
        case none, sealed, sealedAndMore
    }

    private func settle(_ store: Store, _ dataset: Dataset, _ aftermath: Aftermath) throws {
        guard aftermath != .none else { return }
        try store.compact()
        if aftermath == .sealedAndMore, try store.existingDataset("main") != nil {
            try dataset.put("unread", for: "zzz")
            try store.compact()
        }
    }

    /// Whether a transaction that reads, while somebody else writes, can commit.
    private func commits(
        _ aftermath: Aftermath, read: (Transaction, Dataset) throws -> Void,
        write: (Store, Dataset) throws -> Void
    ) throws -> Bool {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        for key in ["b", "d", "f"] { try dataset.put(key, for: key) }
        try dataset.delete("h")
        let transaction = try fixture.store.beginTransaction()
        try read(transaction, dataset)
        try transaction.put("1", for: "result", in: dataset)
        try write(fixture.store, dataset)
        try settle(fixture.store, dataset, aftermath)
        do throws(StoreError) {
            try transaction.commit()
            return true
        } catch {
            #expect(error.code == .transactionConflict, "\(error)")
            if try fixture.store.existingDataset("main") != nil {
                #expect(try !dataset.contains("result"))
            }
            return false
        }
    }

    @Test("Keys read, found or missing", arguments: Aftermath.allCases)
    func keys(aftermath: Aftermath) throws {
        func read(_ transaction: Transaction, _ dataset: Dataset) throws {
            #expect(try transaction.text("b", in: dataset) == "b")
            #expect(try !transaction.contains("c", in: dataset))
            #expect(try transaction.record(for: "h", in: dataset) == nil)
        }
        func after(_ write: (Store, Dataset) throws -> Void) throws -> Bool {
            try commits(aftermath, read: read, write: write)
        }
        #expect(try after { _, _ in })
        #expect(try after { try $1.put("2", for: "d") })
        #expect(try !after { try $1.put("2", for: "b") })
        #expect(try !after { try $1.put("b", for: "b") }, "another version of the same value")
        #expect(try !after { try $1.delete("b") })
        #expect(try !after { try $1.put("2", for: "c") })
        #expect(try !after { try $1.put("2", for: "h") })
        #expect(try after { try $1.delete("c") }, "missing as before")
        #expect(
            try after {
                try $1.put("2", for: "c")
                try $1.delete("c")
            }, "missing again")
        #expect(try !after { store, _ in try store.deleteDataset("main") })
        #expect(
            try !after { store, _ in
                try store.deleteDataset("main")
                try store.dataset("main").put("b", for: "b")
            })
    }

    @Test("Ranges walked over admit no phantom", arguments: Aftermath.allCases)
    func phantoms(aftermath: Aftermath) throws {
        let ranges: [(KeyRange, ScanOrder)] = [
            (KeyRange(from: "b", upTo: "e"), .forward), (.prefix("d"), .forward),
            (KeyRange(from: "b", upTo: "e"), .backward), (.only("d"), .backward),
        ]
        for (range, order) in ranges {
            func after(_ write: (Store, Dataset) throws -> Void) throws -> Bool {
                try commits(aftermath) { transaction, dataset in
                    _ = try transaction.records(of: dataset, in: range, order: order).collect()
                } write: {
                    try write($0, $1)
                }
            }
            #expect(try after { try $1.put("2", for: "a") })
            #expect(try after { try $1.put("2", for: "e") })
            #expect(try !after { try $1.put("2", for: "d") })
            #expect(try !after { try $1.delete("d") })
            if range.contains(bytes("c")) {
                #expect(try !after { try $1.put("new", for: "c") }, "a phantom")
            }
        }
    }

    @Test("Of a walk that was not finished only the part that was seen", arguments: [false, true])
    func partOfRange(isBackward: Bool) throws {
        func after(_ key: String) throws -> Bool {
            try commits(.none) { transaction, dataset in
                let keys = try transaction.records(
                    of: dataset, order: isBackward ? .backward : .forward, limit: 2
                ).collect().map(\.keyText)
                #expect(keys == [isBackward ? "f" : "b", "d"])
            } write: {
                try $1.put("new", for: key)
            }
        }
        #expect(try !after("d") && !after(isBackward ? "e" : "c"))
        #expect(try !after(isBackward ? "g" : "a"))
        #expect(try after(isBackward ? "c" : "e"))
    }

    /// On call are two; each may leave as long as the other stays. Snapshots alone would let both.
    @Test("Write skew is prevented", arguments: [false, true])
    func writeSkew(byRange: Bool) throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        try dataset.put("on", for: "alice")
        try dataset.put("on", for: "bob")
        func leave(_ transaction: Transaction, _ name: String) throws {
            let onCall =
                byRange
                ? try transaction.records(of: dataset).collect().filter { $0.valueText == "on" }
                    .count
                : try ["alice", "bob"].filter { try transaction.text($0, in: dataset) == "on" }
                    .count
            if onCall > 1 { try transaction.put("off", for: name, in: dataset) }
        }
        let (one, two) = (
            try fixture.store.beginTransaction(), try fixture.store.beginTransaction()
        )
        try leave(one, "alice")
        try leave(two, "bob")
        try one.commit()
        expectError(.transactionConflict) { try two.commit() }
        try fixture.store.transaction { try leave($0, "bob") }
        #expect(try dataset.text("bob") == "on")
    }

    @Test("What is only written, or read back of one's own, conflicts with nothing")
    func blindWrites() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        let (one, two) = (
            try fixture.store.beginTransaction(), try fixture.store.beginTransaction()
        )
        for (transaction, value) in [(one, "1"), (two, "2")] {
            try transaction.put(value, for: "a", in: dataset)
            #expect(try transaction.text("a", in: dataset) == value)
        }
        try two.commit()
        try one.commit()
        #expect(try dataset.text("a") == "1")
    }

    @Test("A record that came by replication is a change like any other")
    func replicated() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        let transaction = try fixture.store.beginTransaction()
        _ = try transaction.get("a", in: dataset)
        try transaction.put("1", for: "b", in: dataset)
        let peer = Dot(replica: ReplicaID(high: 7, low: 7), counter: 1)
        var batch = ReplicationBatch()
        batch.writes = [
            ReplicatedWrite(
                key: bytes("a"),
                content: .adopt(
                    value: [1],
                    version: Version(dot: peer, vector: VersionVector(), time: .zero)),
                expected: nil)
        ]
        #expect(try dataset.replicate(batch).isEmpty)
        expectError(.transactionConflict) { try transaction.commit() }
    }

    @Test("An expired record reads as missing, and that it has expired is no change")
    func expired() throws {
        for aftermath in Aftermath.allCases {
            let fixture = try StoreFixture()
            let dataset = fixture.dataset
            try dataset.put("gone", for: "a", expiresAt: 1)
            try dataset.put("there", for: "b")
            let transaction = try fixture.store.beginTransaction()
            #expect(try transaction.get("a", in: dataset) == nil)
            #expect(try !transaction.contains("a", in: dataset))
            try transaction.put("1", for: "result", in: dataset)
            try settle(fixture.store, dataset, aftermath)
            try transaction.commit()
            let second = try fixture.store.beginTransaction()
            #expect(try second.get("a", in: dataset) == nil)
            try second.put("2", for: "result", in: dataset)
            try dataset.put("again", for: "a")
            try settle(fixture.store, dataset, aftermath)
            expectError(.transactionConflict) { try second.commit() }
        }
    }
}
