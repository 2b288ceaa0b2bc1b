import TestSupport
import Testing
import Tidemark

@Suite("Memory limit")
struct MemoryLimitTests {
    /// Beside the limit: the program itself, stacks, and what the work of the test holds.
    private static let besideBytes = 16 << 20

    /// In a process of its own, since this one's memory is that of all tests.
    @Test(
        "Anonymous memory stays within the limit whatever is done, and is given back",
        arguments: [8, 32, 128])
    func churn(megabytes: Int) throws {
        let directory = try TemporaryDirectory()
        let limit = megabytes << 20
        let process = try ChildProcess(
            "CrashWriter", [directory["store"], "churn", "\(limit)", "200000"])
        let output = try process.readToEnd()
        #expect(!process.wait())
        try #require(output.count == 16, "the process said \(output.count) bytes")
        let numbers = stride(from: 0, to: 16, by: 8).map { start in
            output[start..<(start + 8)].reversed().reduce(0) { $0 << 8 | Int($1) }
        }
        let (peakBytes, restBytes) = (numbers[0] << 10, numbers[1] << 10)
        #expect(peakBytes <= limit + Self.besideBytes, "\(peakBytes >> 10) KiB at most")
        #expect(restBytes <= Self.besideBytes, "\(restBytes >> 10) KiB after closing")
    }

    @Test("Options out of their ranges are refused, naming the range")
    func ranges() throws {
        let directory = try TemporaryDirectory()
        func open(limit: Int?, cache: Int?) throws {
            var options = quickOptions()
            options.memoryLimit = limit
            options.blockCacheBytes = cache
            try Store.open(at: directory["store"], options: options).close()
        }
        let (least, most) = (Limits.memoryLimit.lowerBound, Limits.memoryLimit.upperBound)
        for (limit, cache) in [
            (least - 1, nil), (most + 1, nil), (-1, nil), (nil, -1), (nil, most + 1),
            (least, least - (4 << 20) + 1), (64 << 20, 64 << 20),
        ] {
            let error = expectError(.invalidArgument) { try open(limit: limit, cache: cache) }
            #expect(error?.message.contains("allowed are") == true)
        }
        #expect(!Files.exists(directory["store"]))
        for (limit, cache) in [
            (least, nil), (least, 0), (least, least - (4 << 20)), (nil, 0), (1 << 30, nil),
        ] {
            try open(limit: limit, cache: cache)
        }
    }

    @Test("Under the least limit a store is cut into more parts and holds the same")
    func smallest() throws {
        var options = quickOptions()
        options.segmentBytes = 8 << 20
        options.memoryLimit = Limits.memoryLimit.lowerBound
        let fixture = try StoreFixture(options)
        let count = 150_000
        for start in stride(from: 0, to: count, by: 1_000) {
            var batch = WriteBatch()
            for number in start..<(start + 1_000) {
                batch.put([UInt8(number & 0xFF)], for: bytes("\(number)"), in: fixture.dataset)
            }
            try fixture.store.write(batch)
        }
        try fixture.store.compact()
        let segments = try fixture.store.statistics().segments.filter(\.isSealed)
        #expect(segments.count > 1 && segments.allSatisfy { $0.entryCount <= 70_000 })
        let (store, dataset) = try fixture.reopened(options)
        #expect(try dataset.count() == count)
        for number in stride(from: 0, to: count, by: 997) {
            #expect(try dataset.get(bytes("\(number)")) == [UInt8(number & 0xFF)])
        }
        #expect(try store.verify().damages.isEmpty)
        try store.close()
    }
}
