import TestSupport
import Testing
import Tidemark

@Suite("Compression")
struct CompressionTests {
    private func options(_ compression: Compression) -> StoreOptions {
        var options = quickOptions()
        options.compression = compression
        return options
    }

    /// A thousand records whose values repeat themselves, sealed.
    private func filled(_ compression: Compression) throws -> StoreFixture {
        let fixture = try StoreFixture(options(compression))
        for index in 0..<1_000 {
            try fixture.dataset.put(value(index), for: bytes("key \(index)"))
        }
        try fixture.store.compact()
        return fixture
    }

    private func value(_ index: Int) -> [UInt8] {
        [UInt8](repeating: UInt8(index % 256), count: 200)
    }

    private func sealed(_ store: Store) throws -> StoreStatistics.Segment {
        let segments = try store.statistics().segments.filter(\.isSealed)
        return try #require(segments.count == 1 ? segments[0] : nil)
    }

    private func checkContent(_ dataset: Dataset) throws {
        #expect(try dataset.count() == 1_000)
        for index in 0..<1_000 {
            guard try dataset.get("key \(index)") == value(index) else {
                Issue.record("the value of key \(index) is another one")
                return
            }
        }
    }

    @Test("LZ4 is the default, and makes less of what repeats itself")
    func compressed() throws {
        #expect(StoreOptions().compression == .lz4)
        let segment = try sealed(try filled(.lz4).store)
        #expect(segment.storedBytes < segment.rawBytes / 2)
    }

    @Test("Without compression every byte is on disk")
    func uncompressed() throws {
        let segment = try sealed(try filled(.none).store)
        #expect(segment.storedBytes >= segment.rawBytes && segment.rawBytes > 200_000)
        #expect(segment.fileBytes > segment.rawBytes)
    }

    @Test(
        "Each make reads the other's files, and compaction rewrites them",
        arguments: Compression.allCases)
    func changed(from: Compression) throws {
        let to: Compression = from == .lz4 ? .none : .lz4
        let fixture = try filled(from)
        let before = try sealed(fixture.store)
        let (store, dataset) = try fixture.reopened(options(to))
        try checkContent(dataset)
        #expect(try sealed(store).storedBytes == before.storedBytes, "opening rewrites nothing")
        try dataset.put("one more", for: "another")
        try store.compact()
        try dataset.delete("another")
        try checkContent(dataset)
        let after = try sealed(store)
        #expect((after.storedBytes < before.storedBytes) == (to == .lz4))
        try store.close()
        let last = try Store.open(at: fixture.path, options: options(from))
        try checkContent(try last.dataset("main"))
        #expect(try last.verify().damages.isEmpty)
        try last.close()
    }
}
