import TestSupport
import Testing
import Tidemark

@Suite("Key ranges")
struct KeyRangeTests {
    private func contains(_ range: KeyRange, _ key: [UInt8]) -> Bool {
        if let lower = range.lowerBound, Bytes.precedes(key, lower) { return false }
        if let upper = range.upperBound, !Bytes.precedes(key, upper) { return false }
        return true
    }

    @Test("A prefix's range holds exactly the keys that begin with it")
    func prefixes() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            // Bytes at the edges only, so that prefixes are hit and bounds carry over.
            func drawn(_ length: Int) -> [UInt8] {
                (0..<length).map { _ in random.element(of: [0x00, 0x01, 0xFE, 0xFF]) }
            }
            for _ in 0..<5_000 {
                let prefix = drawn(random.below(4))
                let key = drawn(1 + random.below(5))
                try require(
                    contains(.prefix(prefix), key) == key.starts(with: prefix),
                    "\(prefix) and \(key)")
            }
        }
    }

    @Test("A prefix of 0xFF alone has no upper bound")
    func unboundedPrefixes() {
        #expect(KeyRange.prefix([0xFF, 0xFF]).upperBound == nil)
        #expect(KeyRange.prefix([UInt8]()).upperBound == nil)
        #expect(KeyRange.prefix([0x61, 0xFF, 0xFF]).upperBound == [0x62])
        #expect(KeyRange.prefix("ab") == KeyRange(from: "ab", upTo: "ac"))
    }

    @Test("Without bounds the range is everything")
    func unbounded() {
        #expect(KeyRange.all == KeyRange(from: nil, upTo: nil))
        #expect(contains(.all, [0x00]) && contains(.all, [0xFF]))
    }
}
