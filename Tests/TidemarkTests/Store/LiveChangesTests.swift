import TestSupport
import Testing
import Tidemark

/// A consumer that falls behind sees each key's newest version rather than every version, so the
/// tests wait for a last key and look at what the consumer then holds.
@Suite("Live changes", .timeLimit(.minutes(Patience.minutes)))
struct LiveChangesTests {
    /// Applies changes until the key "end" comes; returns the values by key.
    private func follow(_ changes: LiveChanges) async throws -> [String: String] {
        var state: [String: String] = [:]
        var last = SyncCount.zero
        for try await record in changes {
            #expect(record.syncCount > last, "out of order")
            last = record.syncCount
            let key = try #require(record.keyText)
            if key == "end" { break }
            state[key] = record.valueText
        }
        return state
    }

    private func write(_ count: Int, to dataset: Dataset) throws -> [String: String] {
        var state: [String: String] = [:]
        for index in 0..<count {
            let key = "key \(index % 17)"
            if index % 5 == 4 {
                try dataset.delete(key)
                state[key] = nil
            } else {
                try dataset.put("\(index)", for: key)
                state[key] = "\(index)"
            }
        }
        return state
    }

    @Test("First what is there, then what comes")
    func goesOn() async throws {
        let fixture = try StoreFixture()
        try fixture.dataset.put("1", for: "a")
        var iterator = fixture.dataset.liveChanges(since: 0).makeAsyncIterator()
        #expect(try await iterator.next()?.keyText == "a")
        try fixture.dataset.put("2", for: "b")
        #expect(try await iterator.next()?.keyText == "b")
        try fixture.dataset.delete("a")
        let deletion = try await iterator.next()
        #expect(deletion?.keyText == "a" && deletion?.isDeleted == true)
    }

    @Test("Wakes up for a write made while it waits")
    func wakes() async throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        async let state = follow(dataset.liveChanges(since: try dataset.syncCount))
        try await eventually("waiting") { fixture.store.sleeperCount == 1 }
        try dataset.put("1", for: "a")
        try dataset.put("", for: "end")
        #expect(try await state == ["a": "1"])
    }

    @Test("Two consumers and a writer: each consumer ends with the writer's state")
    func twoConsumers() async throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        async let first = follow(dataset.liveChanges(since: 0))
        async let second = follow(dataset.liveChanges(since: 0))
        let expected = try write(2_000, to: dataset)
        try fixture.store.compact()
        try dataset.put("", for: "end")
        #expect(try await first == expected)
        #expect(try await second == expected)
    }

    @Test("A cancelled consumer ends, and the store goes on")
    func cancellation() async throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        try dataset.put("1", for: "a")
        let consumer = Task {
            var count = 0
            for try await _ in dataset.liveChanges(since: 0) { count += 1 }
            return count
        }
        try await eventually("waiting") { fixture.store.sleeperCount == 1 }
        consumer.cancel()
        #expect(try await consumer.value == 1)
        try dataset.put("2", for: "a")
        #expect(try dataset.text("a") == "2")
    }

    @Test("Closing the store ends the sequence")
    func closing() async throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        try dataset.put("1", for: "a")
        let consumer = Task {
            var keys: [String?] = []
            for try await record in dataset.liveChanges(since: 0) { keys.append(record.keyText) }
            return keys
        }
        try await eventually("waiting") { fixture.store.sleeperCount == 1 }
        try fixture.store.close()
        #expect(try await consumer.value == ["a"])
    }
}
