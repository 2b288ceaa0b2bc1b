/// 128 bits that stand for the content of a dataset.
public struct ConvergenceDigest: Hashable, Sendable, CustomStringConvertible {
    public private(set) var high: UInt64
    public private(set) var low: UInt64

    /// Of nothing, or as it came from another replica.
    package init(high: UInt64 = 0, low: UInt64 = 0) {
        self.high = high
        self.low = low
    }

    /// 32 hexadecimal digits.
    public var description: String { ReplicaID(high: high, low: low).description }

    mutating func add(_ hash: RecordHash) {
        let (sum, carries) = low.addingReportingOverflow(hash.low)
        low = sum
        high = high &+ hash.high &+ (carries ? 1 : 0)
    }

    /// Takes out what was added.
    mutating func subtract(_ hash: RecordHash) {
        let (difference, borrows) = low.subtractingReportingOverflow(hash.low)
        low = difference
        high = high &- hash.high &- (borrows ? 1 : 0)
    }
}
