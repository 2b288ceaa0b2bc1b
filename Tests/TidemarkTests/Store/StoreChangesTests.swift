import TestSupport
import Testing
import Tidemark

/// One consumer of all datasets. It keeps a copy of the store, made of nothing but what it is
/// told, and goes on from its position in another life.
@Suite("Changes of a whole store", .timeLimit(.minutes(Patience.minutes)))
struct StoreChangesTests {
    /// What a consumer knows of a store.
    private struct Copy {
        var datasets: [String: [[UInt8]: [UInt8]]] = [:]
        var position = StorePosition.zero
        var expiries = 0

        /// Applies changes until the key "end" of the dataset "signal" has that value.
        mutating func follow(
            _ store: Store, until end: String, in range: KeyRange = .all
        ) async throws {
            var iterator = store.liveChanges(since: position, in: range).makeAsyncIterator()
            while let change = try await iterator.next() {
                position = iterator.position
                switch change.kind {
                case .record(let record):
                    datasets[change.dataset, default: [:]][record.key] = record.value
                    if change.dataset == "signal", record.valueText == end { return }
                case .datasetDeleted:
                    datasets[change.dataset] = nil
                case .datasetExpired:
                    expiries += 1
                    let records = try store.existingDataset(change.dataset)?.records().collect()
                    datasets[change.dataset] = nil
                    for record in records ?? [] {
                        datasets[change.dataset, default: [:]][record.key] = record.value
                    }
                }
            }
            Issue.record("the feed ended")
        }

        func check(_ store: Store, sourceLocation: SourceLocation = #_sourceLocation) throws {
            var found = datasets.filter { !$0.value.isEmpty }
            for dataset in try store.datasets() {
                let records = try dataset.records().collect()
                let known = found.removeValue(forKey: dataset.name) ?? [:]
                #expect(
                    known.count == records.count
                        && records.allSatisfy { known[$0.key] == $0.value },
                    "\(dataset.name)", sourceLocation: sourceLocation)
            }
            #expect(found.isEmpty, "datasets that are gone", sourceLocation: sourceLocation)
        }
    }

    /// Signals last, and only when the consumer can have seen all else: its dataset comes last in
    /// the order of names, which is the order in which a consumer that was away looks.
    private func signal(_ store: Store, _ end: String) throws {
        try store.dataset("signal").put(end, for: "end")
    }

    @Test("Random changes of many datasets, in several lives", arguments: [false, true])
    func lives(compacts: Bool) async throws {
        let seed = Seed.drawn()
        var generator = SeededGenerator(seed)
        let fixture = try StoreFixture()
        var copy = Copy()
        for life in 0..<12 {
            for _ in 0..<200 {
                let name = "data-\(generator.below(12))"
                if generator.oneIn(40) {
                    try fixture.store.deleteDataset(name)
                    continue
                }
                let dataset = try fixture.store.dataset(name)
                let key = [UInt8(generator.below(30))]
                if generator.oneIn(3) {
                    try dataset.delete(key)
                } else {
                    try dataset.put(generator.bytes(5), for: key)
                }
            }
            if compacts, life % 3 == 1 { try fixture.store.compact() }
            try signal(fixture.store, "\(life)")
            try await copy.follow(fixture.store, until: "\(life)")
            try copy.check(fixture.store)
        }
        print("\(seed): \(copy.expiries) datasets read afresh")
    }

    @Test("A consumer beside two writers ends with their state")
    func beside() async throws {
        let seed = Seed.drawn()
        let fixture = try StoreFixture()
        let store = fixture.store
        async let written: Void = Task.detached {
            try runOnThreads(
                (0..<2).map { thread in
                    { @Sendable () throws -> Void in
                        var generator = SeededGenerator(Seed(seed.rawValue &+ UInt64(thread)))
                        for index in 0..<3_000 {
                            let dataset = try store.dataset("data-\(generator.below(5))")
                            try dataset.put("\(index)", for: "\(thread)/\(generator.below(50))")
                            if index % 1_000 == 999 { try store.compact() }
                        }
                    }
                })
            try store.dataset("signal").put("done", for: "end")
        }.value
        var copy = Copy()
        try await copy.follow(store, until: "done")
        try await written
        // What was in the mailbox together with the signal may come after it.
        try signal(store, "really done")
        try await copy.follow(store, until: "really done")
        try copy.check(store)
    }

    @Test("A deleted dataset is told once, one made again is to be read afresh")
    func lifecycle() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        try fixture.dataset.put("1", for: "a")
        var iterator = store.liveChanges().makeAsyncIterator()
        var change = try await iterator.next()
        guard case .record(let record) = change?.kind else {
            Issue.record("no record")
            return
        }
        #expect(change?.dataset == "main" && record.keyText == "a")
        try store.deleteDataset("main")
        change = try await iterator.next()
        #expect(change?.dataset == "main" && change?.kind == .datasetDeleted)
        #expect(iterator.position.counts["main"] == nil)
        try store.dataset("main").put("2", for: "b")
        change = try await iterator.next()
        #expect(change?.dataset == "main")
        let saved = iterator.position
        try store.deleteDataset("main")
        try store.dataset("main").put("3", for: "c")
        iterator = store.liveChanges(since: saved).makeAsyncIterator()
        change = try await iterator.next()
        #expect(change?.dataset == "main" && change?.kind == .datasetExpired)
        try store.dataset("main").put("4", for: "d")
        change = try await iterator.next()
        guard case .record(let last) = change?.kind else {
            Issue.record("no record")
            return
        }
        #expect(last.keyText == "d", "what was there at the expiry is not told again")
    }

    @Test("A filter goes for all datasets, and closing the store ends the feed")
    func filterAndClose() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        for name in ["one", "two"] {
            let dataset = try store.dataset(name)
            for key in ["a/1", "b/1", "b/2", "c/1"] { try dataset.put(name, for: key) }
        }
        let consumer = Task.detached {
            var keys: [String] = []
            for try await change in store.liveChanges(in: .prefix("b/")) {
                guard case .record(let record) = change.kind else { continue }
                keys.append(change.dataset + " " + (record.keyText ?? "?"))
                if keys.count == 4 { try store.close() }
            }
            return keys
        }
        #expect(try await consumer.value == ["one b/1", "one b/2", "two b/1", "two b/2"])
    }

    @Test("A cancelled consumer ends")
    func cancellation() async throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let consumer = Task.detached {
            var count = 0
            for try await _ in store.liveChanges() { count += 1 }
            return count
        }
        try await eventually("waiting") { store.sleeperCount == 1 }
        consumer.cancel()
        #expect(try await consumer.value == 0)
        try fixture.dataset.put("1", for: "a")
    }
}
