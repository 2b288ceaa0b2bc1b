import TestSupport
import Testing
import Tidemark

@Suite("Limits")
struct LimitsTests {
    @Test("Keys have 1 to 65,535 bytes")
    func keys() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        let longest = [UInt8](repeating: 0xFF, count: Limits.keyBytesMax)
        for key in [[], longest + [0]] {
            var batch = WriteBatch()
            batch.put("not kept", for: "b", in: dataset)
            batch.put([1], for: key, in: dataset)
            expectError(.invalidArgument) { try dataset.put([1], for: key) }
            expectError(.invalidArgument) { try dataset.put([1], for: key, ifAt: nil) }
            expectError(.invalidArgument) { try dataset.delete(key) }
            expectError(.invalidArgument) { try fixture.store.write(batch) }
            #expect(try dataset.get(key) == nil && !dataset.contains(key))
            #expect(try dataset.record(for: key, includingDeleted: true) == nil)
            #expect(try dataset.history(of: key).isEmpty)
        }
        #expect(try dataset.count() == 0 && dataset.vector.isEmpty)
        try dataset.put([2], for: longest)
        try dataset.put([1], for: [0])
        let (store, reopened) = try fixture.reopened()
        #expect(try reopened.get(longest) == [2])
        #expect(try reopened.records(order: .backward).collect().map(\.key) == [longest, [0]])
        try store.close()
    }

    @Test("A value above 256 MiB is refused, and nothing is left of it")
    func oversizedValue() throws {
        let fixture = try StoreFixture()
        let tooLarge = [UInt8](repeating: 0, count: Limits.valueBytesMax + 1)
        let before = try Files.list(fixture.path)
        var batch = WriteBatch()
        batch.put("not kept", for: "b", in: fixture.dataset)
        batch.put(tooLarge, for: bytes("a"), in: fixture.dataset)
        expectError(.invalidArgument) { try fixture.dataset.put(tooLarge, for: bytes("a")) }
        expectError(.invalidArgument) { try fixture.store.write(batch) }
        #expect(try Files.list(fixture.path) == before)
        #expect(try fixture.dataset.vector.isEmpty)
        try fixture.dataset.put("1", for: "a")
        #expect(try fixture.dataset.text("a") == "1")
    }

    @Test("A batch above 512 MiB is refused as a whole")
    func oversizedBatch() throws {
        let fixture = try StoreFixture()
        let large = [UInt8](repeating: 0, count: Limits.batchBytesMax / 3)
        var batch = WriteBatch()
        for index in 0..<4 { batch.put(large, for: bytes("\(index)"), in: fixture.dataset) }
        expectError(.invalidArgument) { try fixture.store.write(batch) }
        #expect(try fixture.dataset.count() == 0 && fixture.dataset.vector.isEmpty)
    }

    @Test("Values far larger than a segment come back whole, compressible or not")
    func largeValues() throws {
        let fixture = try StoreFixture()
        var random = SeededGenerator(Seed(7))
        let dense = random.bytes(5 << 20)
        let sparse = [UInt8](repeating: 0x2A, count: Limits.valueBytesMax)
        try fixture.dataset.put(dense, for: bytes("dense"))
        try fixture.dataset.put(sparse, for: bytes("sparse"))
        try fixture.dataset.put("small", for: "small")
        func check(_ dataset: Dataset) throws {
            #expect(Bytes.areEqual(try dataset.get("dense"), dense))
            #expect(Bytes.areEqual(try dataset.get("sparse"), sparse))
            #expect(try dataset.text("small") == "small")
        }
        try check(fixture.dataset)
        try fixture.store.compact()
        let (store, dataset) = try fixture.reopened()
        try check(dataset)
        try store.close()
    }

    @Test("The limits are those of the documentation")
    func constants() {
        #expect(Limits.datasetNameBytesMax == 255 && Limits.keyBytesMax == 65_535)
        #expect(Limits.valueBytesMax == 268_435_456 && Limits.authorBytesMax == 255)
        #expect(Limits.batchBytesMax > Limits.valueBytesMax + Limits.keyBytesMax)
    }
}
