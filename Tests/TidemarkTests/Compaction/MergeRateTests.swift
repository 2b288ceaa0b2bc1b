import TestSupport
import Testing
import Tidemark

/// A bound on what merges write is kept by each kind of merge, for segments and value files alike:
/// what was written before a merge is last asked is rested for, once.
///
/// Tested is for how long merges were to rest, which no load of the machine changes.
@Suite("The rate of merges")
struct MergeRateTests {
    private static let bytesPerSecond = 16 << 20

    private func options() -> StoreOptions {
        var options = quickOptions()
        options.compactsAutomatically = false
        options.compression = .none
        options.compactionBytesPerSecond = Self.bytesPerSecond
        // Everything fits into one log, and so into one segment and one value file.
        options.segmentBytes = 16 << 20
        return options
    }

    /// Bytes that were rested for while something was done.
    private func paidBytes(_ store: Store, while body: () throws -> Void) rethrows -> Int {
        let before = store.mergeRestMilliseconds
        try body()
        return Int(store.mergeRestMilliseconds - before) * (Self.bytesPerSecond / 1_000)
    }

    private func key(_ number: Int) -> String { "\(1_000_000 + number)" }

    /// The segment is written in three parts: what is before the range, the range, what is behind.
    @Test("A range pays for what it writes, and not twice", arguments: [true, false])
    func segments(isWhole: Bool) throws {
        let fixture = try StoreFixture(options())
        let (store, dataset) = (fixture.store, fixture.dataset)
        let value = [UInt8](repeating: 7, count: 100)
        for number in 0..<15_000 { try dataset.put(value, for: bytes(key(number))) }
        // What is in the log is sealed first, which is no merge.
        let sealed = try paidBytes(store) {
            _ = try dataset.compact(KeyRange(from: "b", upTo: "a"))
        }
        #expect(sealed == 0)
        for _ in 0..<2 {
            var written = 0
            let paid = try paidBytes(store) {
                let report =
                    isWhole
                    ? try store.compact()
                    : try dataset.compact(KeyRange(from: key(5_000), upTo: key(10_000)))
                written = Int(report.bytesAfter)
            }
            // What came after the last question is not paid: up to 4,096 of 15,000 entries.
            #expect(paid <= written && paid >= written * 6 / 10, "\(paid) of \(written)")
        }
        try store.close()
    }

    @Test("Values that are moved are paid for", arguments: [true, false])
    func values(isWhole: Bool) throws {
        var options = options()
        options.largeValueBytes = 1_000
        let fixture = try StoreFixture(options)
        let (store, dataset) = (fixture.store, fixture.dataset)
        let value = [UInt8](repeating: 7, count: 20_000)
        for number in 0..<600 { try dataset.put(value, for: bytes(key(number))) }
        try store.compact()
        let first = try #require(try store.usage().valueFiles.first)
        for number in 0..<310 { try dataset.delete(key(number)) }
        // Nothing of what the first merge drops is known to be needless before it is over.
        try dataset.compact()
        try #require(try store.usage().valueFiles.first?.file == first.file)
        let paid = try paidBytes(store) {
            _ = isWhole ? try store.compact() : try dataset.compact()
        }
        let moved = try #require(try store.usage().valueFiles.first)
        #expect(moved.file != first.file && moved.valueCount == 290)
        #expect(try store.usage().valueFiles.count == 1)
        // It is asked after each 4 MiB of values.
        #expect(paid <= Int(moved.fileBytes) + 100_000, "\(paid)")
        #expect(paid >= Int(moved.fileBytes) - (5 << 20) && paid > 0, "\(paid)")
        try store.close()
    }
}
