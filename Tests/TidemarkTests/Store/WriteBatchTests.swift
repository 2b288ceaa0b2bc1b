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

    @Test("A batch longer than what is staged at once keeps the order of its writes")
    func longBatch() throws {
        let fixture = try StoreFixture()
        let datasets = try (0..<3).map { try fixture.store.dataset("long.\($0)") }
        var batch = WriteBatch()
        for number in 0..<1_003 {
            batch.put("\(number)", for: "\(number % 7)", in: datasets[number % 5 % 3])
        }
        try fixture.store.write(batch)
        func last(_ key: Int, _ dataset: Int) -> Int {
            (0..<1_003).last { $0 % 7 == key && $0 % 5 % 3 == dataset } ?? -1
        }
        for (number, dataset) in datasets.enumerated() {
            for key in 0..<7 {
                #expect(try dataset.text("\(key)") == "\(last(key, number))")
            }
            #expect(try dataset.count() == 7)
            let writes = (0..<1_003).count { $0 % 5 % 3 == number }
            #expect(try dataset.syncCount.rawValue == UInt64(writes))
            let changes = try dataset.changes(since: 0).collect().map(\.keyText)
            let expected = (0..<7).sorted { last($0, number) < last($1, number) }
            #expect(changes == expected.map { "\($0)" })
        }
        let (store, _) = try fixture.reopened()
        #expect(try store.dataset("long.2").text("3") == "\(last(3, 2))")
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

    @Test("Writes of batches are counted and dated one after the other, as single ones are")
    func stamps() throws {
        let fixture = try StoreFixture()
        let datasets = [fixture.dataset, try fixture.store.dataset("other")]
        for round in 0..<4 {
            try datasets[0].put("single", for: "\(round)")
            var batch = WriteBatch()
            for number in 0..<20 {
                batch.put("\(round)", for: "\(round).\(number)", in: datasets[number / 3 % 2])
            }
            batch.delete("\(round)", in: datasets[0])
            try fixture.store.write(batch)
        }
        try datasets[1].put("last", for: "last")
        func check(_ dataset: Dataset, writeCount: Int, deletionCount: Int) throws {
            let versions = try dataset.changes(since: 0).collect().map(\.version)
            #expect(versions.count == writeCount - deletionCount)
            #expect(try dataset.syncCount.rawValue == UInt64(writeCount))
            #expect(try dataset.vector[dataset.store.replicaID] == UInt64(writeCount))
            #expect(versions.last?.dot.counter == UInt64(writeCount))
            for (earlier, later) in zip(versions, versions.dropFirst()) {
                #expect(earlier.dot.counter < later.dot.counter)
                #expect(earlier.time < later.time)
            }
        }
        // In each round 11 of 20 writes go to the first, and one is deleted that came before.
        try check(datasets[0], writeCount: 4 * 13, deletionCount: 4)
        try check(datasets[1], writeCount: 4 * 9 + 1, deletionCount: 0)
        let (store, dataset) = try fixture.reopened()
        try check(dataset, writeCount: 4 * 13, deletionCount: 4)
        try check(try store.dataset("other"), writeCount: 4 * 9 + 1, deletionCount: 0)
        try store.close()
    }

    @Test("A write out of bounds fails the whole batch, which can be emptied and used again")
    func outOfBounds() throws {
        let fixture = try StoreFixture()
        var batch = WriteBatch()
        batch.put([1], for: bytes("a"), in: fixture.dataset)
        batch.put([1], for: [], in: fixture.dataset)
        batch.put([1], for: bytes("c"), in: fixture.dataset)
        expectError(.invalidArgument) { try fixture.store.write(batch) }
        #expect(try fixture.dataset.count() == 0)
        batch.removeAll(keepingCapacity: true)
        batch.put("2", for: "b", in: fixture.dataset, ifAt: nil)
        try fixture.store.write(batch)
        expectError(.versionMismatch) { try fixture.store.write(batch) }
        batch.removeAll(keepingCapacity: true)
        batch.put("3", for: "b", in: fixture.dataset)
        try fixture.store.write(batch)
        #expect(try fixture.dataset.text("b") == "3" && fixture.dataset.count() == 1)
    }

    @Test("A batch to a dataset that is gone fails as a whole")
    func deletedDataset() throws {
        let fixture = try StoreFixture()
        var batch = WriteBatch()
        batch.put("1", for: "a", in: fixture.dataset)
        batch.put("1", for: "a", in: try fixture.store.dataset("other"))
        try fixture.store.deleteDataset("other")
        expectError(.datasetNotFound) { try fixture.store.write(batch) }
        #expect(try fixture.dataset.count() == 0)
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

    @Test("Random batches of conditional writes: whole or nothing, as a model says")
    func randomConditions() {
        withSeed { seed in
            var generator = SeededGenerator(seed)
            let fixture = try StoreFixture()
            let datasets = [fixture.dataset, try fixture.store.dataset("other")]
            var values: [[String: String]] = [[:], [:]]
            var (applied, refused) = (0, 0)
            for round in 0..<600 {
                var batch = WriteBatch()
                var after = values
                var holds = true
                for _ in 0..<(1 + generator.below(4)) {
                    let (at, key) = (generator.below(2), "\(generator.below(5))")
                    let present = try datasets[at].record(for: key)?.version.dot
                    // Mostly what is there, at times what is not.
                    let other = Dot(replica: fixture.store.replicaID, counter: 1_000_000)
                    let expected = generator.oneIn(6) ? (present == nil ? other : nil) : present
                    holds = holds && expected == present
                    if generator.oneIn(3) {
                        batch.delete(key, in: datasets[at], ifAt: expected)
                        after[at][key] = nil
                    } else {
                        batch.put("\(round)", for: key, in: datasets[at], ifAt: expected)
                        after[at][key] = "\(round)"
                    }
                }
                do {
                    try fixture.store.write(batch)
                    try require(holds, "a batch against its condition")
                    values = after
                    applied += 1
                } catch let error as StoreError where error.code == .versionMismatch {
                    try require(!holds, "a batch refused although its conditions hold")
                    refused += 1
                }
                for (dataset, expected) in zip(datasets, values) {
                    let records = try dataset.records().collect()
                    try require(records.count == expected.count, "part of a batch")
                    for record in records {
                        try require(
                            expected[record.keyText ?? ""] == record.valueText, "a value")
                    }
                }
                if round % 200 == 150 { try fixture.store.compact() }
            }
            try require(applied > 100 && refused > 100, "\(applied) and \(refused)")
        }
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
