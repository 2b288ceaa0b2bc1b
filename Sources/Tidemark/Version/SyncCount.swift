/// A position in one dataset's own order of change on one replica: the operation that was the
/// n-th to be applied there has the count n. 0 stands before the first.
///
/// Counts of different replicas, or of different datasets, cannot be compared.
public struct SyncCount: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt64

    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Before every change.
    public static let zero = SyncCount(rawValue: 0)
}

extension SyncCount: Comparable {
    @inlinable
    public static func < (left: SyncCount, right: SyncCount) -> Bool {
        left.rawValue < right.rawValue
    }
}

extension SyncCount: ExpressibleByIntegerLiteral {
    public init(integerLiteral value: UInt64) {
        self.init(rawValue: value)
    }
}

extension SyncCount: CustomStringConvertible {
    public var description: String { String(rawValue) }
}
