import TestSupport

/// The operations of one replica. Each follows from the seed, the replica and its number alone, so
/// that the process which makes it and the one which checks it need not tell each other.
struct TortureStream: Sendable {
    /// One write of an operation; several are one batch.
    struct Write: Hashable, Sendable {
        let key: TortureKey
        /// nil deletes.
        let value: [UInt8]?
    }

    let seed: Seed
    let replica: Int

    /// The writes of one operation, in their order; a key may be written twice.
    ///
    /// - Parameter number: from 1.
    func writes(of number: UInt64) -> [Write] {
        let lane = UInt64(replica + 1) &* 0xD1B5_4A32_D192_ED03
        var random = SeededGenerator(
            Seed(seed.rawValue ^ lane ^ (number &* 0x9E37_79B9_7F4A_7C15)))
        let count = random.oneIn(4) ? 2 + random.below(8) : 1
        var writes: [Write] = []
        for _ in 0..<count {
            let key = drawnKey(&random)
            let value = random.oneIn(5) ? nil : drawnValue(of: number, &random)
            writes.append(Write(key: key, value: value))
        }
        return writes
    }

    private func drawnKey(_ random: inout SeededGenerator) -> TortureKey {
        let dataset = random.below(TortureKey.datasetNames.count)
        if random.oneIn(3) {
            return TortureKey(
                dataset: dataset, owner: nil, number: random.below(TortureKey.sharedCount))
        }
        return TortureKey(
            dataset: dataset, owner: replica, number: random.below(TortureKey.ownCount))
    }

    /// Begins with who wrote it, then a blank; see ``origin(of:)``.
    private func drawnValue(of number: UInt64, _ random: inout SeededGenerator) -> [UInt8] {
        // Some are large enough to lie apart from their keys.
        let count = random.oneIn(40) ? random.below(12_000) : random.below(300)
        let head = Array("\(replica).\(number) ".utf8)
        return head + (random.oneIn(2) ? random.bytes(count) : random.compressibleBytes(count))
    }

    /// Which operation of which replica a value says it is of; nil if it is no value of a stream.
    static func origin(of value: [UInt8]) -> (replica: Int, number: UInt64)? {
        guard let blank = value.prefix(40).firstIndex(of: UInt8(ascii: " ")) else { return nil }
        let parts = String(decoding: value[..<blank], as: UTF8.self).split(separator: ".")
        guard parts.count == 2, let replica = Int(parts[0]), let number = UInt64(parts[1]) else {
            return nil
        }
        return (replica, number)
    }
}
