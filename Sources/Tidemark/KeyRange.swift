/// A range of keys, in the order of their bytes.
public struct KeyRange: Hashable, Sendable {
    /// The first key that belongs to the range; nil for no bound.
    public let lowerBound: [UInt8]?
    /// The first key that no longer belongs to the range; nil for no bound.
    public let upperBound: [UInt8]?

    public init(from lowerBound: [UInt8]? = nil, upTo upperBound: [UInt8]? = nil) {
        self.lowerBound = lowerBound
        self.upperBound = upperBound
    }

    public init(from lowerBound: String, upTo upperBound: String) {
        self.init(from: Array(lowerBound.utf8), upTo: Array(upperBound.utf8))
    }

    /// Every key at or after the bytes, which are copied once.
    public init(from lowerBound: RawSpan) {
        self.init(from: lowerBound.copied)
    }

    public init(from lowerBound: RawSpan, upTo upperBound: RawSpan) {
        self.init(from: lowerBound.copied, upTo: upperBound.copied)
    }

    /// Every key.
    public static let all = KeyRange()

    /// Every key that begins with the given bytes.
    public static func prefix(_ prefix: [UInt8]) -> KeyRange {
        // The range ends at the prefix with its last byte that can grow grown by one.
        guard let last = prefix.lastIndex(where: { $0 < UInt8.max }) else {
            return KeyRange(from: prefix)
        }
        var end = Array(prefix[...last])
        end[last] += 1
        return KeyRange(from: prefix, upTo: end)
    }

    public static func prefix(_ prefix: RawSpan) -> KeyRange {
        .prefix(prefix.copied)
    }

    public static func prefix(_ prefix: String) -> KeyRange {
        .prefix(Array(prefix.utf8))
    }
}

/// The direction of a scan.
public enum ScanOrder: Hashable, Sendable {
    case forward
    case backward
}
