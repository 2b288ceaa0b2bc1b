/// 128 bits of one record.
typealias RecordHash = (high: UInt64, low: UInt64)

/// How many records lie in a range of keys, and the sum of their hashes modulo 2^128. The sum of
/// two ranges is that of both together, whatever the order.
package struct RecordsSum: Hashable, Sendable {
    package private(set) var count: Int
    package private(set) var digest: ConvergenceDigest

    package init(count: Int = 0, digest: ConvergenceDigest = ConvergenceDigest()) {
        self.count = count
        self.digest = digest
    }

    mutating func add(_ hash: RecordHash) {
        count &+= 1
        digest.add(hash)
    }

    mutating func add(_ other: RecordsSum) {
        count &+= other.count
        digest.add((other.digest.high, other.digest.low))
    }

    /// - Parameter other: the sum of a part of the same records.
    mutating func subtract(_ other: RecordsSum) {
        count &-= other.count
        digest.subtract((other.digest.high, other.digest.low))
    }
}
