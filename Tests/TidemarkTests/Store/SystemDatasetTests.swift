import TestSupport
import Testing

@testable import Tidemark

/// What the store notes for itself lies beside the users' records and nobody else sees it.
@Suite("The store's own datasets")
struct SystemDatasetTests {
    private func note(
        _ value: String?, for key: String, in dataset: Dataset
    ) -> SystemNote {
        SystemNote(in: dataset, key: bytes(key), value: value.map(bytes))
    }

    /// Writes one note with each of so many replicated writes.
    private func replicate(_ count: Int, in dataset: Dataset, _ notes: Dataset) throws {
        let writer = ReplicaID(high: 7, low: 7)
        for number in 1...count {
            var batch = ReplicationBatch()
            let version = Version(
                dot: Dot(replica: writer, counter: UInt64(number)), vector: VersionVector(),
                time: HybridTime(milliseconds: 1_000, counter: UInt16(number)))
            batch.writes = [
                ReplicatedWrite(
                    key: bytes("key \(number)"),
                    content: .adopt(value: bytes("value"), version: version), expected: nil)
            ]
            batch.notes = [
                note("\(number)", for: "last", in: notes),
                note("\(number)", for: "note \(number)", in: notes),
            ]
            #expect(try dataset.replicate(batch).isEmpty)
        }
    }

    @Test("Each has a number of its own at the top, and those of users begin at 1 all the same")
    func numbers() throws {
        let fixture = try StoreFixture()
        let numbers = SystemDataset.allCases.map(\.number)
        #expect(Set(numbers).count == numbers.count)
        #expect(numbers.allSatisfy { Limits.systemDatasetNumbers.contains($0) })
        #expect(Limits.systemDatasetNumbers.count == 1_024)
        #expect(Limits.systemDatasetNumbers.upperBound == Limits.datasetNumberMax)
        for which in SystemDataset.allCases {
            let dataset = try fixture.store.systemDataset(which)
            #expect(dataset.state.recordsID == which.number)
            #expect(SystemDataset(number: which.number) == which)
            // It was another's once, and is given to none.
            #expect(which.number != Limits.systemDatasetNumbers.lowerBound + 8)
            try dataset.put(which.rawValue, for: "name")
        }
        #expect(try fixture.store.dataset("second").state.recordsID == 2)
        try fixture.store.compact()
        let (store, _) = try fixture.reopened()
        #expect(try store.dataset("third").state.recordsID == 3)
        for which in SystemDataset.allCases {
            let dataset = try #require(try store.existingSystemDataset(which))
            #expect(try dataset.text("name") == which.rawValue)
        }
        #expect(try store.verify().damages.isEmpty)
        try store.close()
    }

    @Test("No list, count or feed has them, and no name leads to them")
    func invisible() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        #expect(try store.existingSystemDataset(.peers) == nil)
        let notes = try store.systemDataset(.peers)
        try notes.put("1", for: "a")
        for isSealed in [false, true] {
            if isSealed { try store.compact() }
            #expect(try store.datasetNames() == ["main"])
            #expect(try store.datasets().map(\.name) == ["main"])
            #expect(try store.datasetNamesForSync() == ["main"])
            let statistics = try store.statistics()
            #expect(statistics.datasets.map(\.name) == ["main"])
            #expect(statistics.segments.allSatisfy { $0.deadCount == 0 })
        }
        for name in ["~peers", "~", "~other"] {
            expectError(.invalidArgument) { try store.dataset(name) }
            expectError(.invalidArgument) { try store.existingDataset(name) }
            expectError(.invalidArgument) { try store.deleteDataset(name) }
            expectError(.invalidArgument) { try store.datasetForSync(name, creating: true) }
            expectError(.invalidArgument) { try store.datasetForSync(name, creating: false) }
        }
        try fixture.dataset.put("2", for: "b")
        var changes = store.liveChanges().makeAsyncIterator()
        #expect(try await changes.next()?.dataset == "main")
        // What was noted would come between the second change and the third.
        try notes.put("3", for: "a")
        try fixture.dataset.put("4", for: "b")
        #expect(try await changes.next()?.dataset == "main")
        try fixture.dataset.put("5", for: "b")
        #expect(try await changes.next()?.dataset == "main")
        try store.close()
    }

    @Test("Of their records only the newest is kept, whatever history the options ask for")
    func noHistory() throws {
        var options = quickOptions()
        options.historyVersions = 100
        let fixture = try StoreFixture(options)
        let notes = try fixture.store.systemDataset(.batons)
        for number in 0..<50 { try notes.put("\(number)", for: "key") }
        try notes.delete("key")
        try notes.put("kept", for: "other")
        for number in 0..<3 { try fixture.dataset.put("\(number)", for: "key") }
        try fixture.store.compact()
        #expect(try notes.history(of: bytes("key")).isEmpty)
        #expect(try notes.history(of: bytes("other")).count == 1)
        #expect(try fixture.dataset.history(of: bytes("key")).count == 3)
    }

    @Test("A backup has them, and so has what is repaired")
    func operations() throws {
        let fixture = try StoreFixture()
        let notes = try fixture.store.systemDataset(.batons)
        try replicate(20, in: fixture.dataset, notes)
        try fixture.store.compact()
        try replicate(5, in: try fixture.store.dataset("second"), notes)
        try fixture.store.backup(to: fixture.directory["backup"])
        try fixture.store.close()
        _ = try Store.repair(at: fixture.path, to: fixture.directory["repaired"])
        try Store.restore(from: fixture.directory["backup"], to: fixture.directory["restored"])
        for name in ["restored", "repaired"] {
            let store = try Store.open(at: fixture.directory[name], options: quickOptions())
            let kept = try #require(try store.existingSystemDataset(.batons))
            #expect(try kept.text("last") == "5")
            #expect(try kept.count() == 21)
            try kept.put("6", for: "last")
            #expect(try store.datasetNames() == ["main", "second"])
            #expect(try store.dataset("third").state.recordsID == 3)
            try store.close()
        }
    }

    @Test("After any loss of power a note is there exactly with the write that it is about")
    func atomic() throws {
        withSeed { seed in
            var random = SeededGenerator(seed)
            for _ in 0..<40 {
                let storage = SimulatedStorage(seed: Seed(random.next()))
                let options = StoreOptions(segmentBytes: 1 << 20, compactsAutomatically: false)
                let store = try openSimulated(storage, options)
                let dataset = try store.dataset("main")
                let notes = try store.systemDataset(.batons)
                try replicate(1 + random.below(30), in: dataset, notes)
                if random.oneIn(2) { try store.sync() }
                let survival = Survival.drawn(using: &random)
                let after = storage.afterPowerLoss(survival, using: &random)
                let again = try openSimulated(after, options)
                let kept = try again.existingDataset("main")?.count() ?? 0
                let noted = try again.existingSystemDataset(.batons)?.count() ?? 0
                #expect(noted == (kept == 0 ? 0 : kept + 1))
                try again.close()
            }
        }
    }

    @Test("A note that cannot be written refuses the whole batch")
    func refusals() throws {
        let (fixture, other) = (try StoreFixture(), try StoreFixture())
        let notes = try fixture.store.systemDataset(.peers)
        let stranger = try other.store.systemDataset(.peers)
        let refused = [
            note("1", for: "", in: notes), note("1", for: "a", in: stranger),
            note("1", for: "a", in: fixture.dataset),
        ]
        for bad in refused {
            var batch = ReplicationBatch()
            batch.notes = [note("1", for: "good", in: notes), bad]
            expectError(.invalidArgument) { try fixture.dataset.replicate(batch) }
            #expect(try notes.count() == 0)
        }
        var batch = ReplicationBatch()
        batch.notes = [note("1", for: "good", in: notes), note(nil, for: "good", in: notes)]
        #expect(try fixture.dataset.replicate(batch).isEmpty)
        #expect(try notes.count() == 0)
        #expect(try notes.records(includingDeleted: true).collect().count == 1)
    }

    @Test("A stamp says what the batch's write became, and which changes were the batch's")
    func stamps() throws {
        let fixture = try StoreFixture()
        let notes = try fixture.store.systemDataset(.conflicts)
        try fixture.dataset.put("earlier", for: "other")
        let writer = ReplicaID(high: 7, low: 8)
        let version = Version(
            dot: Dot(replica: writer, counter: 3), vector: VersionVector(),
            time: HybridTime(milliseconds: 1_000, counter: 0))
        var batch = ReplicationBatch()
        batch.writes = [
            ReplicatedWrite(
                key: bytes("key"), content: .adopt(value: bytes("1"), version: version),
                expected: nil),
            ReplicatedWrite(
                key: bytes("key"), content: .resolve(value: bytes("2"), seen: version),
                expected: nil),
        ]
        batch.notes = [
            SystemNote(in: notes, key: bytes("first"), value: [1], stamp: .dot(ofWrite: 0)),
            SystemNote(in: notes, key: bytes("last"), value: [], stamp: .dot(ofWrite: 1)),
            SystemNote(in: notes, key: bytes("counts"), value: [9, 9], stamp: .counts),
            SystemNote(in: notes, key: bytes("gone"), value: nil, stamp: .counts),
        ]
        #expect(try fixture.dataset.replicate(batch).isEmpty)
        func number(_ key: String, at offset: Int) throws -> UInt64 {
            let value = try #require(try notes.get(key))
            return value[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        #expect(try notes.get("first")?.count == 25)
        #expect(try notes.get("last")?.count == 24)
        #expect(try number("first", at: 1) == 7)
        #expect(try number("first", at: 9) == 8)
        #expect(try number("first", at: 17) == 3)
        let dot = try #require(try fixture.dataset.record(for: "key")?.version.dot)
        #expect(try number("last", at: 0) == dot.replica.high)
        #expect(try number("last", at: 8) == dot.replica.low)
        #expect(try number("last", at: 16) == dot.counter)
        #expect(try number("counts", at: 2) == 1)
        #expect(try number("counts", at: 10) == 3)
        #expect(try notes.get("gone") == nil)
        batch.writes = []
        batch.notes = [SystemNote(in: notes, key: [1], value: [], stamp: .dot(ofWrite: 0))]
        expectError(.invalidArgument) { try fixture.dataset.replicate(batch) }
        #expect(try notes.get([1]) == nil)
    }

    @Test("No change of theirs is one for peers; a note is a change of what it is about")
    func roster() throws {
        let fixture = try StoreFixture()
        let notes = try fixture.store.systemDataset(.batons)
        let mark = try fixture.store.changeMark()
        try notes.put("value", for: "key")
        #expect(try fixture.store.datasetsChanged(since: mark) == [])
        #expect(try fixture.store.changeMark() == mark)
        var batch = ReplicationBatch()
        batch.notes = [note("1", for: "key", in: notes)]
        #expect(try fixture.dataset.replicate(batch).isEmpty)
        #expect(try fixture.store.datasetsChanged(since: mark) == [fixture.dataset.name])
    }

    @Test("A name and a number of different sorts are no dataset")
    func sorts() {
        let (system, user) = (SystemDataset.peers.number, DatasetID(5))
        #expect(DatasetName.fits("~peers", number: system) && DatasetName.fits("notes", number: 5))
        #expect(!DatasetName.fits("~peers", number: user))
        #expect(!DatasetName.fits("notes", number: system))
        #expect(DatasetName.fits("~peers", number: 0) && DatasetName.fits("notes", number: 0))
        #expect(DatasetName.isStorable("~peers") && !DatasetName.isStorable("~~peers"))
        #expect(!DatasetName.isStorable("~") && !DatasetName.isValid("~peers"))
    }
}
