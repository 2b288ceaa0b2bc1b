import Glibc
import TestSupport
import Testing
import Tidemark

/// Filters, positions to go on from, and consumers that are slower than the store.
///
///     writer:    puts, deletions ... compaction ... puts, deletions ... compaction ...
///     consumer:       one record ............... another ................... the rest
@Suite("Change feeds", .timeLimit(.minutes(Patience.minutes)))
struct ChangeFeedTests {
    /// Keys of three kinds, so that each filter finds some and misses most.
    private func write(
        _ count: Int, to dataset: Dataset, _ state: inout [String: String],
        _ generator: inout SeededGenerator
    ) throws {
        for _ in 0..<count {
            let key = "\(generator.element(of: ["a", "b", "c"]))/\(generator.below(20))"
            if generator.oneIn(4) {
                try dataset.delete(key)
                state[key] = nil
            } else {
                let value = "\(generator.below(1_000_000))"
                try dataset.put(value, for: key)
                state[key] = value
            }
        }
    }

    static let ranges: [KeyRange] = [
        .all, .prefix("b/"), .only("b/7"), KeyRange(from: "a/5", upTo: "b/3"), .prefix("none"),
    ]

    @Test("A filtered feed gives the changes of its keys and no others", arguments: ranges)
    func filters(range: KeyRange) async throws {
        let seed = Seed.drawn()
        var generator = SeededGenerator(seed)
        var options = quickOptions()
        // So that compaction forgets no deletion.
        options.historyVersions = 1
        let fixture = try StoreFixture(options)
        let dataset = fixture.dataset
        var expected: [String: String] = [:]
        var found: [String: String] = [:]
        var position = SyncCount.zero
        for round in 0..<6 {
            try write(300, to: dataset, &expected, &generator)
            if round % 2 == 1 {
                try fixture.store.compact()
                try write(round * 50, to: dataset, &expected, &generator)
            }
            // Another consumer each time, from where the last one came to.
            let changes = dataset.liveChanges(since: position, in: range)
            var iterator = changes.makeAsyncIterator()
            let count = try dataset.changes(since: position, in: range).collect().count
            var last = position
            for _ in 0..<count {
                let record = try #require(try await iterator.next())
                #expect(record.syncCount > last && range.contains(record.key), "\(seed)")
                last = record.syncCount
                #expect(iterator.position >= last)
                found[try #require(record.keyText) as String] = record.valueText
            }
            position = iterator.position
            #expect(found == expected.filter { range.contains(bytes($0.key)) }, "\(seed)")
        }
    }

    @Test("A filtered consumer wakes for its key alone, and its position passes what it skipped")
    func position() async throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        var iterator = dataset.liveChanges(since: 0, in: .only("wanted")).makeAsyncIterator()
        for index in 0..<20_000 { try dataset.put("x", for: "\(index)") }
        try dataset.put("1", for: "wanted")
        #expect(try await iterator.next()?.valueText == "1")
        #expect(try iterator.position == dataset.syncCount)
        try fixture.store.compact()
        for index in 0..<20_000 { try dataset.put("y", for: "\(index)") }
        try fixture.store.compact()
        try dataset.put("2", for: "wanted")
        for index in 0..<10 { try dataset.put("z", for: "\(index)") }
        #expect(try await iterator.next()?.valueText == "2")
    }

    /// Without a bound the consumer would hold the segments of the moment at which it began.
    @Test("A consumer that sleeps while the store compacts holds nothing that the store gave up")
    func sleeper() async throws {
        let seed = Seed.drawn()
        var generator = SeededGenerator(seed)
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        for index in 0..<3_000 {
            try dataset.put(generator.bytes(500), for: bytes("\(index)"))
        }
        try fixture.store.compact()
        var iterator = dataset.liveChanges(since: 0).makeAsyncIterator()
        var state: [[UInt8]: [UInt8]] = [:]
        let first = try #require(try await iterator.next())
        state[first.key] = first.value
        for round in 0..<3 {
            for index in 0..<3_000 where index % 3 == round {
                try dataset.put(generator.bytes(500), for: bytes("\(index)"))
            }
            try fixture.store.compact()
        }
        try fixture.store.waitForBackgroundWork()
        #expect(deletedFilesMapped(from: fixture.path) == [])
        let end = try dataset.put(generator.bytes(1), for: bytes("end"))
        while let record = try await iterator.next() {
            state[record.key] = record.value
            if record.version.dot == end { break }
        }
        let records = try dataset.records().collect()
        #expect(state.count == records.count)
        #expect(records.allSatisfy { state[$0.key] == $0.value }, "\(seed)")
    }

    /// The files of the store that this process still maps although they are deleted.
    private func deletedFilesMapped(from path: String) -> [Substring] {
        guard let file = unsafe fopen("/proc/self/maps", "r") else { return ["no maps"] }
        defer { unsafe fclose(file) }
        var text: [UInt8] = []
        while case let byte = unsafe getc(file), byte != EOF {
            text.append(UInt8(truncatingIfNeeded: byte))
        }
        return String(decoding: text, as: UTF8.self).split(separator: "\n")
            .filter { $0.contains(path) && $0.contains("(deleted)") }
    }

    @Test("A slow consumer beside a writer and compaction ends with the writer's state")
    func slowConsumer() async throws {
        let seed = Seed.drawn()
        let fixture = try StoreFixture()
        let (store, dataset) = (fixture.store, fixture.dataset)
        async let written = Task.detached { () throws -> [String: String] in
            var generator = SeededGenerator(seed)
            var state: [String: String] = [:]
            for index in 0..<6_000 {
                let key = "key \(generator.below(500))"
                try dataset.put("\(index)", for: key)
                state[key] = "\(index)"
                if index % 500 == 499 { try store.compact() }
            }
            try dataset.put("", for: "end")
            return state
        }.value
        var state: [String: String] = [:]
        var last = SyncCount.zero
        for try await record in dataset.liveChanges(since: 0) {
            #expect(record.syncCount > last, "out of order, \(seed)")
            last = record.syncCount
            let key: String = try #require(record.keyText)
            if key == "end" { break }
            state[key] = record.valueText
            await Task.yield()
        }
        #expect(try await state == written, "\(seed)")
    }

    @Test("A consumer is told when a deletion it has not seen is forgotten", arguments: [0, 1, 2])
    func expired(kind: Int) async throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        try dataset.put("1", for: "a")
        try dataset.put("1", for: "b")
        var iterator = dataset.liveChanges(since: 0, in: .only("a")).makeAsyncIterator()
        #expect(try await iterator.next()?.keyText == "a")
        switch kind {
        case 0:
            try dataset.delete("a")
            try fixture.store.compact()
        case 1:
            try fixture.store.deleteDataset("main")
            _ = try fixture.store.dataset("main")
        default:
            // Up to date when the dataset went: no record after the position is missing.
            iterator =
                dataset.liveChanges(since: try dataset.syncCount).makeAsyncIterator()
            try fixture.store.deleteDataset("main")
            _ = try fixture.store.dataset("main")
        }
        do {
            let record = try await iterator.next()
            Issue.record("\(record?.keyText ?? "nil") where an error was due")
        } catch {
            #expect(error.code == .changesExpired)
        }
        // What to do then: read afresh, and go on from the count of before.
        let count = try dataset.syncCount
        #expect(try dataset.records().collect().map(\.keyText) == (kind == 0 ? ["b"] : []))
        iterator = dataset.liveChanges(since: count).makeAsyncIterator()
        try dataset.put("2", for: "c")
        #expect(try await iterator.next()?.keyText == "c")
        if kind > 0 {
            let (store, reopened) = try fixture.reopened()
            expectError(.changesExpired) { try reopened.changes(since: 2) }
            #expect(try reopened.changes(since: count).collect().map(\.keyText) == ["c"])
            try store.close()
        }
    }

    @Test("A consumer that waits learns that its dataset is gone")
    func deleted() async throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        try dataset.put("1", for: "a")
        async let code = Task.detached { () -> StoreError.Code? in
            do {
                for try await _ in dataset.liveChanges(since: 0) {}
                return nil
            } catch {
                return (error as? StoreError)?.code
            }
        }.value
        try await eventually("waiting") { fixture.store.sleeperCount == 1 }
        try fixture.store.deleteDataset("main")
        #expect(await code == .datasetNotFound)
    }

    @Test("A record that has expired is told as deleted")
    func expiredRecord() async throws {
        let fixture = try StoreFixture()
        try fixture.dataset.put("gone", for: "a", expiresAt: 1)
        var iterator = fixture.dataset.liveChanges(since: 0).makeAsyncIterator()
        let record = try await iterator.next()
        #expect(record?.keyText == "a" && record?.isDeleted == true)
    }
}
