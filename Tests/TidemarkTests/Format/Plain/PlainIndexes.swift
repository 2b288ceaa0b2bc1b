import TestSupport

/// Where the data blocks of a segment are, and at which positions they begin.
struct PlainDirectory {
    let count: Int
    private let bytes: [UInt8]
    private let common: [UInt8]
    /// Of the first entry of each block, and of the last of the segment.
    private let positions: [[UInt8]]

    init(_ bytes: [UInt8]) throws {
        self.bytes = bytes
        try require(bytes.count >= 8, "a directory has \(bytes.count) bytes")
        count = Int(bytes.number(at: 0, 4))
        let commonCount = Int(bytes.number(at: 4, 4))
        let starts = 8 + 12 * count + 4
        let commonStart = starts + 4 * (count + 2)
        let positionsStart = commonStart + commonCount
        try require(bytes.count >= positionsStart, "a directory has \(bytes.count) bytes")
        common = Array(bytes[commonStart..<positionsStart])
        var positions: [[UInt8]] = []
        for number in 0...count {
            let start = positionsStart + Int(bytes.number(at: starts + 4 * number, 4))
            let end = positionsStart + Int(bytes.number(at: starts + 4 * number + 4, 4))
            try require(start + 12 <= end && end <= bytes.count, "position \(number)")
            positions.append(Array(bytes[start..<end]))
        }
        self.positions = positions
        let end = Int(bytes.number(at: starts + 4 * (count + 1), 4))
        try require(positionsStart + end == bytes.count, "a directory goes on behind its end")
    }

    private func mark(_ number: Int) -> UInt64 {
        bytes.number(at: 8 + 8 * count + 4 * number, 4)
    }

    func offset(of number: Int) -> Int { 8 * Int(mark(number) & 0x7FFF_FFFF) }

    func isCompressed(_ number: Int) -> Bool { mark(number) >> 31 == 1 }

    func check(_ number: Int, begins entry: PlainEntry) throws {
        try require(
            positions[number] == entry.position, "the position of block \(number) is another")
        let key = positions[number].dropLast(8)
        try require(
            Array(key.prefix(common.count)) == common, "block \(number) lacks what is common")
        let rest = Array(key.dropFirst(common.count).prefix(8))
        let filled: [UInt8] = rest + Array(repeating: 0, count: 8 - rest.count)
        try require(
            bytes.number(at: 8 + 8 * number, 8) == filled.reduce(0) { $0 << 8 | UInt64($1) },
            "the eight bytes of block \(number) are others")
    }

    func checkEnd(at offset: Int, last: PlainEntry?) throws {
        try require(mark(count) == UInt64(offset / 8), "where the data blocks end")
        // Without an entry it is that of nothing: zeros.
        let position = last?.position ?? Array(repeating: 0, count: 12)
        try require(positions[count] == position, "the last position is another")
        // As much as there is: the first byte behind it differs, or a position has ended.
        let keys = positions.dropLast().map { $0.dropLast(8) }
        guard let first = keys.first else { return }
        let isLonger = keys.allSatisfy {
            $0.count > common.count && first.count > common.count
                && $0[common.count] == first[common.count]
        }
        try require(!isLonger, "positions have more in common")
    }
}

extension PlainEntry {
    fileprivate var position: [UInt8] {
        .bigEndian(dataset, count: 4) + key + .littleEndian(syncCount, count: 8)
    }
}

/// Buckets of ten keys.
struct PlainHashIndex {
    private static let bucketBytes = 64
    private let buckets: [UInt8]
    private let count: Int

    init(buckets: [UInt8]) {
        self.buckets = buckets
        count = buckets.count / Self.bucketBytes
    }

    func keyCount() throws -> Int {
        var sum = 0
        for start in stride(from: 0, to: buckets.count, by: Self.bucketBytes) {
            let keys = Int(buckets[start + 20])
            try require(
                keys <= 10 && buckets[start + 21] <= 1 && buckets.number(at: start + 22, 2) == 0,
                "bucket \(start / Self.bucketBytes) is impossible")
            // Who goes on from a bucket found it full.
            try require(buckets[start + 21] == 0 || keys == 10, "a bucket with room went on")
            sum += keys
        }
        return sum
    }

    /// Where the key may be: one of them it is, if it is there at all.
    func places(of hash: UInt64) -> [UInt64] {
        var bucket = Int(hash.multipliedFullWidth(by: UInt64(count)).high)
        var places: [UInt64] = []
        for _ in 0..<count {
            let start = Self.bucketBytes * bucket
            for slot in 0..<Int(buckets[start + 20])
            where buckets.number(at: start + 2 * slot, 2) == hash & 0xFFFF {
                places.append(buckets.number(at: start + 24 + 4 * slot, 4))
            }
            if buckets[start + 21] == 0 { break }
            bucket = (bucket + 1) % count
        }
        return places
    }
}
