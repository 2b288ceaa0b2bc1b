import Tidemark

/// The records of all contenders: what the key and the value of a record are follows from its
/// index, so that nothing has to be kept and everything can be checked.
struct WorkingSet: Sendable {
    static let datasetName = "records"
    static let keyBytes = 16
    private static let batchRecords = 1_000
    /// Larger than any number of records and prime, so multiplying by it, modulo that number,
    /// is a permutation.
    private static let prime = 2_147_483_647

    let recordCount: Int
    let valueBytes: Int

    var logicalBytes: Int { recordCount * (Self.keyBytes + valueBytes) }

    /// 16 decimal digits.
    static func key(_ index: Int) -> [UInt8] {
        var key = [UInt8](repeating: UInt8(ascii: "0"), count: keyBytes)
        var rest = index
        var place = keyBytes - 1
        while rest > 0, place >= 0 {
            key[place] += UInt8(rest % 10)
            rest /= 10
            place -= 1
        }
        return key
    }

    /// The first half is random, the second repeats it: half compressible for any compressor.
    static func value(_ index: Int, generation: Int, bytes: Int) -> [UInt8] {
        var random = SplitMix(seed: UInt64(index) &* 0x9E37_79B9 &+ UInt64(generation) << 40)
        let half = (bytes + 1) / 2
        return [UInt8](unsafeUninitializedCapacity: bytes) { buffer, count in
            var place = 0
            while place < half {
                var word = random.next()
                for _ in 0..<min(8, half - place) {
                    buffer.initializeElement(at: place, to: UInt8(truncatingIfNeeded: word))
                    word >>= 8
                    place += 1
                }
            }
            while place < bytes {
                buffer.initializeElement(at: place, to: buffer[place - half])
                place += 1
            }
            count = bytes
        }
    }

    func value(_ index: Int, generation: Int = 0) -> [UInt8] {
        Self.value(index, generation: generation, bytes: valueBytes)
    }

    /// All indices in an order that looks random and is always the same.
    func shuffled(_ range: Range<Int>) -> some Sequence<Int> {
        let count = range.count
        return range.lazy.map { index in
            range.lowerBound + (index - range.lowerBound) * Self.prime % count
        }
    }

    /// Indices that change in a generation: spread over all records, none twice.
    func changed(_ count: Int, generation: Int) -> [Int] {
        (0..<count).map { ($0 + generation * count) % recordCount * Self.prime % recordCount }
    }

    // MARK: - In a store

    func write(
        _ indices: some Sequence<Int>, generation: Int, to dataset: Dataset
    ) throws {
        var batch = WriteBatch()
        for index in indices {
            batch.put(value(index, generation: generation), for: Self.key(index), in: dataset)
            if batch.count == Self.batchRecords {
                try dataset.store.write(batch, durability: .process)
                batch = WriteBatch()
            }
        }
        try dataset.store.write(batch, durability: .process)
    }
}

/// Quick, and the same on every machine.
struct SplitMix {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}
