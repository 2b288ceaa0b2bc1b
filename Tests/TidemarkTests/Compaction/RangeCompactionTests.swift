import TestSupport
import Testing
import Tidemark

/// What compaction of a range of keys does, what it leaves alone, and what it says of itself.
@Suite("Compaction of a range")
struct RangeCompactionTests {
    private func key(_ number: Int) -> String { String(String(100_000 + number).dropFirst()) }

    private func value(_ number: Int) -> String { "value \(number) \(number * 7_919)" }

    /// Segments of a hundred entries, and nothing merged unasked.
    private var options: StoreOptions {
        var options = quickOptions()
        options.compactsAutomatically = false
        options.segmentEntriesMax = 100
        return options
    }

    private func sealedFiles(_ store: Store) throws -> Set<String> {
        Set(try store.usage().segments.filter(\.isSealed).map(\.file))
    }

    /// 5,000 records in one run, and in a second run some of them anew and some deleted.
    private func layered() throws -> StoreFixture {
        let fixture = try StoreFixture(options)
        for number in 0..<5_000 { try fixture.dataset.put(value(number), for: key(number)) }
        try fixture.store.compact()
        for number in stride(from: 0, to: 5_000, by: 2) {
            try fixture.dataset.put("second", for: key(number))
        }
        for number in stride(from: 1, to: 5_000, by: 4) { try fixture.dataset.delete(key(number)) }
        return fixture
    }

    private func check(_ dataset: Dataset) throws {
        var expected: [String: String] = [:]
        for number in 0..<5_000 where number % 4 != 1 {
            expected[key(number)] = number % 2 == 0 ? "second" : value(number)
        }
        let records = try dataset.records().collect()
        #expect(records.count == expected.count)
        #expect(records.allSatisfy { $0.valueText == expected[$0.keyText ?? ""] })
    }

    @Test("Nothing superseded and no tombstone is left in the range; the rest is not touched")
    func range() throws {
        let fixture = try layered()
        let (store, dataset) = (fixture.store, fixture.dataset)
        // What is in the log is sealed first; an empty range does that and no more.
        try dataset.compact(KeyRange(from: "b", upTo: "a"))
        let before = try sealedFiles(store)
        let report = try dataset.compact(KeyRange(from: key(1_000), upTo: key(2_000)))
        try check(dataset)
        let after = try sealedFiles(store)
        #expect(before.subtracting(after).count <= 22 + 12, "only segments that overlap go")
        #expect(after.intersection(before).count >= before.count - 34)
        // 500 were superseded, and 250 deleted: each of these was there with its tombstone.
        #expect(report.entriesDropped == 500 + 500)
        #expect(report.tombstonesDropped == 250)
        let statistics = try #require(try store.statistics().datasets.first)
        #expect(statistics.deadCount == 2_000 + 1_000)
        #expect(statistics.tombstoneCount == 1_000)
        let left = try dataset.records(
            in: KeyRange(from: key(1_000), upTo: key(2_000)), includingDeleted: true)
        #expect(try left.collect().allSatisfy { !$0.isDeleted })
        #expect(try store.verify().damages.isEmpty)
        let (_, again) = try fixture.reopened(options)
        try check(again)
    }

    @Test("The report counts what is there before and after")
    func report() throws {
        let fixture = try layered()
        try fixture.dataset.compact(KeyRange(from: "b", upTo: "a"))
        let before = try fixture.store.usage().segments.filter(\.isSealed)
        for whole in [false, true] {
            let report =
                whole
                ? try fixture.store.compact()
                : try fixture.dataset.compact(KeyRange(from: key(500), upTo: key(700)))
            let after = try fixture.store.usage().segments.filter(\.isSealed)
            #expect(report.segmentsAfter == after.count)
            #expect(report.bytesAfter == after.reduce(0) { $0 + $1.fileBytes })
            if !whole {
                #expect(report.segmentsBefore == before.count)
                #expect(report.bytesBefore == before.reduce(0) { $0 + $1.fileBytes })
            } else {
                #expect(report.entriesDropped == 2_500 + 2_500 - 100 - 100)
                #expect(report.bytesReclaimed > 0)
                #expect(report.bytesReclaimed == report.bytesBefore - report.bytesAfter)
            }
        }
        #expect(try fixture.store.compact().entriesDropped == 0)
        try check(fixture.dataset)
    }

    @Test("Nothing else is there: a range compacts to nothing, and deletions stay known")
    func everything() throws {
        let fixture = try layered()
        let dataset = fixture.dataset
        let last = try dataset.syncCount
        for number in 0..<5_000 { try dataset.delete(key(number)) }
        let report = try dataset.compact()
        #expect(report.tombstonesDropped > 0)
        #expect(try dataset.count() == 0)
        expectError(.changesExpired) { try dataset.changes(since: last) }
        try dataset.put("again", for: key(7))
        try fixture.store.compact()
        let (_, again) = try fixture.reopened(options)
        expectError(.changesExpired) { try again.changes(since: last) }
        #expect(try again.records().keyTexts() == [key(7)])
    }

    @Test("A neighbour's tombstone in a segment that is rewritten goes on deleting")
    func neighbours() throws {
        var options = quickOptions()
        options.compactsAutomatically = false
        let fixture = try StoreFixture(options)
        let (store, first) = (fixture.store, fixture.dataset)
        let second = try store.dataset("other")
        let third = try store.dataset("third")
        for number in 0..<100 {
            try first.put("1", for: key(number))
            try third.put("1", for: key(number))
        }
        try store.compact()
        // In the middle run: tombstones of the neighbours beside all that there is of `second`.
        for number in 0..<100 {
            try second.put("2", for: key(number))
            if number < 50 { try first.delete(key(number)) }
            if number >= 50 { try third.delete(key(number)) }
        }
        try second.compact(KeyRange(from: "b", upTo: "a"))
        for number in 0..<100 { try second.put("3", for: key(number)) }
        let report = try second.compact()
        #expect(report.entriesDropped == 100 && report.tombstonesDropped == 0)
        #expect(try first.count() == 50)
        #expect(try third.count() == 50)
        #expect(try second.records().collect().allSatisfy { $0.valueText == "3" })
        try store.compact()
        #expect(try first.count() == 50)
        #expect(try third.count() == 50)
    }

    @Test("Changes come in their order, whatever was compacted by itself")
    func changes() throws {
        let fixture = try layered()
        let dataset = fixture.dataset
        let all = try dataset.changes(since: 0).collect().filter { !$0.isDeleted }
        try dataset.compact(KeyRange(from: key(300), upTo: key(4_100)))
        for number in 200..<400 where number % 4 != 1 {
            try dataset.put(number % 2 == 0 ? "second" : value(number), for: key(number))
        }
        try dataset.compact(KeyRange(from: bytes(key(2_500))))
        let changes = try dataset.changes(since: 0).collect().filter { !$0.isDeleted }
        #expect(Set(changes.map(\.key)) == Set(all.map(\.key)))
        #expect(zip(changes, changes.dropFirst()).allSatisfy { $0.syncCount < $1.syncCount })
        let since = try #require(changes.dropLast(100).last?.syncCount)
        let tail = try dataset.changes(since: since).collect().filter { !$0.isDeleted }
        #expect(tail == Array(changes.suffix(100)))
    }

    /// The versions of a key may go on in the next segment, and belong together all the same.
    @Test("A neighbour whose versions lie in two segments stays one record")
    func versionsInTwoSegments() throws {
        var options = options
        options.segmentEntriesMax = 5
        options.historyVersions = 20
        let fixture = try StoreFixture(options)
        let dataset = fixture.dataset
        for round in 0..<7 {
            for key in ["a", "b", "c"] { try dataset.put("\(round)", for: key) }
        }
        try fixture.store.compact()
        for key in ["a", "b", "c"] {
            try dataset.compact(.only(key))
            #expect(try dataset.keys().collect() == [bytes("a"), bytes("b"), bytes("c")])
            #expect(try dataset.records().collect().allSatisfy { $0.valueText == "6" })
            for key in ["a", "b", "c"] {
                #expect(try dataset.history(of: bytes(key)).count == 7)
            }
        }
        #expect(try fixture.store.verify().damages.isEmpty)
    }

    @Test("A snapshot goes on seeing what a compaction has dropped")
    func snapshots() throws {
        let fixture = try layered()
        let snapshot = try fixture.store.snapshot()
        let before = try snapshot.records(of: fixture.dataset, includingDeleted: true).collect()
        try fixture.dataset.compact(.prefix(bytes("01")))
        try fixture.dataset.compact()
        #expect(
            try snapshot.records(of: fixture.dataset, includingDeleted: true).collect() == before)
    }

    @Test("What cannot be compacted says so")
    func errors() throws {
        let fixture = try layered()
        let dataset = fixture.dataset
        try fixture.store.deleteDataset("main")
        expectError(.datasetNotFound) { try dataset.compact() }
        try fixture.store.close()
        expectError(.datasetNotFound) { try dataset.compact() }
        var readOnly = options
        readOnly.isReadOnly = true
        let store = try Store.open(at: fixture.path, options: readOnly)
        expectError(.readOnly) { try store.compact() }
        var negative = options
        negative.compactionBytesPerSecond = -1
        let path = fixture.path
        expectError(.invalidArgument) { try Store.open(at: path, options: negative) }
    }
}
