import TestSupport
import Testing
import Tidemark

/// Readers of single records when the block cache holds a small part of the blocks.
@Suite("A cache that is too small")
struct SmallCacheTests {
    /// Half of it compressible, of a length that tells whether the right bytes came.
    private static func value(_ index: Int) -> [UInt8] {
        let length = index % 50 == 0 ? 3_000 : index * 37 % 400
        return (0..<length).map { $0 % 8 < 4 ? 7 : UInt8(truncatingIfNeeded: $0 &* 31 &+ index) }
    }

    @Test(
        "Every value is read as it was written, by several threads at once",
        arguments: [0, 40 << 10, 300 << 10, 64 << 20])
    func valuesAreRight(cacheBytes: Int) throws {
        let count = 8_000
        var options = quickOptions()
        options.blockCacheBytes = cacheBytes
        let fixture = try StoreFixture(options)
        let dataset = fixture.dataset
        for index in 0..<count {
            try dataset.put(Self.value(index), for: bytes("key \(index)"))
        }
        try fixture.store.compact()
        withSeed { seed in
            var random = SeededGenerator(seed)
            let generators = (0..<3).map { _ in random.split() }
            try runOnThreads(
                generators.map { generator in
                    {
                        var random = generator
                        for _ in 0..<10_000 {
                            let index = random.below(count)
                            #expect(try dataset.get("key \(index)") == Self.value(index))
                            let record = try dataset.record(for: "key \(index)")
                            #expect(record?.version.dot.counter == UInt64(index + 1))
                        }
                    }
                })
        }
        try fixture.store.close()
    }
}
