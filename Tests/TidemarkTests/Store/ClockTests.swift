import TestSupport
import Testing
import Tidemark

@Suite("Clocks")
struct ClockTests {
    private let options = StoreOptions(durability: .memory, segmentBytes: 1 << 20)

    private func time(of key: String, in dataset: Dataset) throws -> HybridTime {
        try #require(try dataset.record(for: key)).version.time
    }

    @Test("Times go on when the clock goes back, also across reopening")
    func backwards() throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let start = storage.clockMilliseconds
        var store = try openSimulated(storage, options)
        var dataset = try store.dataset("main")
        try dataset.put("1", for: "a")
        let first = try time(of: "a", in: dataset)
        #expect(first.milliseconds == start)
        storage.clockMilliseconds = start - 3_600_000
        try dataset.put("2", for: "a")
        let second = try time(of: "a", in: dataset)
        #expect(second > first)
        try store.close()
        storage.clockMilliseconds = 0
        store = try openSimulated(storage, options)
        dataset = try store.dataset("main")
        try dataset.put("3", for: "b")
        #expect(try time(of: "b", in: dataset) > second)
        storage.clockMilliseconds = start + 5_000
        try dataset.put("4", for: "c")
        #expect(try time(of: "c", in: dataset).milliseconds == start + 5_000)
        try store.close()
    }

    @Test("More writes in a millisecond than its counter has numbers still have an order")
    func standingStill() throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        var last = HybridTime.zero
        for _ in 0..<70 {
            var batch = WriteBatch()
            for index in 0..<1_000 { batch.put([1], for: bytes("\(index)"), in: dataset) }
            try store.write(batch)
            let times = try dataset.changes(since: 0).collect().map(\.version.time)
            #expect(try #require(times.first) > last)
            #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
            last = try #require(times.last)
        }
        try store.close()
    }

    @Test(
        "A clock beyond what a time can hold is no trap",
        arguments: [
            UInt64.max, 1 << 48, (1 << 48) - 1, 0,
        ] as [UInt64])
    func absurd(milliseconds: UInt64) throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let store = try openSimulated(storage, options)
        let dataset = try store.dataset("main")
        storage.clockMilliseconds = milliseconds
        for index in 0..<3 { try dataset.put("\(index)", for: "a") }
        #expect(try dataset.text("a") == "2")
        try store.close()
        let again = try openSimulated(storage, options)
        try again.dataset("main").put("3", for: "a")
        #expect(try again.dataset("main").text("a") == "3")
        try again.close()
    }
}
