/// Tells that a key is certainly not in a segment, most of the time: a blocked Bloom filter, one
/// cache line a key (Putze, Sanders, Singler: "Cache-, Hash- and Space-Efficient Bloom Filters",
/// 2007). Ten bits a key give about one false answer in a hundred.
struct KeyFilter {
    private static let lineByteCount = 64
    private static let bitsPerKey = 10
    private static let probeCount = 6

    /// The hash of a key for every filter it may be asked of.
    @inline(__always)
    static func hash(_ key: ByteView, in dataset: DatasetID) -> UInt64 {
        hash64(key, seed: UInt64(dataset))
    }

    /// The filter's bytes for the given hashes: whole lines, at least one.
    static func build(_ hashes: [UInt64]) -> [UInt8] {
        let lineCount = max(1, (hashes.count * bitsPerKey + 511) / 512)
        var bytes = [UInt8](repeating: 0, count: lineCount * lineByteCount)
        for hash in hashes {
            let line = lineIndex(hash, lineCount: lineCount) * lineByteCount
            var bits = hash
            for _ in 0..<probeCount {
                let bit = Int(bits & 511)
                bytes[line + bit / 8] |= 1 << UInt8(bit % 8)
                bits >>= 9
            }
        }
        return bytes
    }

    private let block: Block
    private let lineCount: Int

    init(_ block: Block) throws(Malformed) {
        guard block.count > 0, block.count % Self.lineByteCount == 0 else {
            throw Malformed("a filter is no whole number of lines")
        }
        self.block = block
        lineCount = block.count / Self.lineByteCount
    }

    /// False only if no key of that hash is in the segment.
    @inline(__always)
    func mayContain(_ hash: UInt64) -> Bool {
        let line = Self.lineIndex(hash, lineCount: lineCount) * Self.lineByteCount
        var bits = hash
        for _ in 0..<Self.probeCount {
            let bit = Int(bits & 511)
            let byte = unsafe block.bytes.base.load(
                fromByteOffset: line + bit / 8, as: UInt8.self)
            if byte & (1 << UInt8(bit % 8)) == 0 { return false }
            bits >>= 9
        }
        return true
    }

    /// The line by the upper bits, which the probes (54 bits from below) share but little.
    @inline(__always)
    private static func lineIndex(_ hash: UInt64, lineCount: Int) -> Int {
        Int((hash &* 0x9E37_79B9_7F4A_7C15).multipliedFullWidth(by: UInt64(lineCount)).high)
    }
}
