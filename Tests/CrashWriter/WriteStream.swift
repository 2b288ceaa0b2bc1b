/// The stream of writes that is cut off by the crash tests: each number stands for one write, the
/// same in the process that makes it and in the test that checks what is left of it.
package struct WriteStream: Sendable {
    /// One change of a write; a write of several changes is a batch.
    package struct Change: Hashable, Sendable {
        package let dataset: String
        package let key: [UInt8]
        /// nil deletes.
        package let value: [UInt8]?
    }

    package static let datasetNames = ["left", "right"]
    package static let keyCount = 48
    package let seed: UInt64

    package init(seed: UInt64) {
        self.seed = seed
    }

    /// The changes of one write, in order.
    package func changes(of number: UInt64) -> [Change] {
        let kind = mixed(number, 0) % 16
        // Batches go to both datasets, so that half of one would show.
        let count = kind < 12 ? 1 : 2 + mixed(number, 1) % 6
        return (0..<count).map { index in
            let draw = mixed(number, 16 + index)
            let dataset = Self.datasetNames[Int(truncatingIfNeeded: (draw & 1) ^ (index & 1))]
            let key = Array("key-\((draw >> 8) % UInt64(Self.keyCount))".utf8)
            let isDeletion = (draw >> 40) % 6 == 0
            return Change(
                dataset: dataset, key: key,
                value: isDeletion ? nil : value(of: number, draw: draw))
        }
    }

    /// The number of the write, its mark, and filling of a length of its own.
    private func value(of number: UInt64, draw: UInt64) -> [UInt8] {
        let count = (draw >> 48) % 32 == 0 ? 20_000 : (draw >> 16) % 700
        var bytes: [UInt8] = []
        bytes.reserveCapacity(8 + Int(count))
        for shift in stride(from: UInt64(0), to: 64, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> shift))
        }
        var filling = draw
        for _ in 0..<count {
            filling = filling &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            bytes.append(UInt8(truncatingIfNeeded: filling >> 56))
        }
        return bytes
    }

    /// The finalizer of SplitMix64 over the seed, the number and a lane.
    private func mixed(_ number: UInt64, _ lane: UInt64) -> UInt64 {
        var value = seed &+ number &* 0x9E37_79B9_7F4A_7C15 &+ lane &* 0xD1B5_4A32_D192_ED03
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
