import CPeers

/// What every peer must agree with: a dictionary, and a sort for each scan.
struct PeerModel {
    var records: [Bytes: Bytes] = [:]

    func scan(from: Bytes?, prefixBytes: Int = 0, limit: Int = .max) -> peer_scan {
        let prefix = (from ?? []).prefix(prefixBytes)
        let keys = records.keys
            .filter { key in from.map { !key.lexicographicallyPrecedes($0) } ?? true }
            .filter { $0.starts(with: prefix) }
            .sorted { $0.lexicographicallyPrecedes($1) }
        var seen = peer_scan()
        for key in keys.prefix(limit) {
            let value = records[key] ?? []
            seen.records += 1
            seen.bytes += key.count + value.count
            seen.checksum &+= Self.leadingNumber(value)
        }
        return seen
    }

    static func leadingNumber(_ value: Bytes) -> UInt64 {
        value.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}

/// Random numbers that a seed repeats.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Short keys of few letters, the extreme bytes among them, so that keys repeat and begin
    /// alike.
    mutating func key() -> Bytes {
        let letters: Bytes = [0x00, 0x61, 0x62, 0xFF]
        return (0..<Int.random(in: 1...5, using: &self)).map { _ in
            letters[Int.random(in: 0..<letters.count, using: &self)]
        }
    }

    /// Mostly short, empty ones too, and now and then one of many pages.
    mutating func value() -> Bytes {
        let isLong = Int.random(in: 0..<20, using: &self) == 0
        let count = Int.random(in: 0...(isLong ? 40_000 : 200), using: &self)
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &self) }
    }
}
