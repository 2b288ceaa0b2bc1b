import Glibc
import TestSupport
import Tidemark

/// What the killed writer writes: each operation follows from the seed and its number alone.
struct SoakChild {
    static let datasetName = "killed"
    private let seed: Seed

    init(_ seed: Seed) {
        self.seed = seed
    }

    /// The writes of one operation; nil deletes.
    func writes(of number: UInt64) -> [(key: [UInt8], value: [UInt8]?)] {
        var random = SeededGenerator(Seed(seed.rawValue ^ number &* 0x9E37_79B9_7F4A_7C15))
        return (0..<(random.oneIn(3) ? 1 + random.below(20) : 1)).map { _ in
            let key = Array("key \(random.below(3_000))".utf8)
            if random.oneIn(6) { return (key, nil) }
            return (key, random.bytes(random.oneIn(50) ? random.below(30_000) : random.below(300)))
        }
    }

    /// Writes until it is killed; tells each acknowledged number in eight little-endian bytes.
    func write(to directory: String, from first: UInt64) throws {
        let store = try Store.open(at: directory, options: SoakRun.options(historyVersions: 1))
        let dataset = try store.dataset(Self.datasetName)
        var number = first
        while true {
            var batch = WriteBatch()
            for write in writes(of: number) {
                if let value = write.value {
                    batch.put(value, for: write.key, in: dataset)
                } else {
                    batch.delete(write.key, in: dataset)
                }
            }
            try store.write(batch, durability: number % 16 == 0 ? .disk : .process)
            var littleEndian = number.littleEndian
            let count = unsafe withUnsafeBytes(of: &littleEndian) {
                unsafe Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count)
            }
            guard count == 8 else { return }
            number += 1
        }
    }
}
