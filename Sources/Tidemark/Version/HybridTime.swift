/// A hybrid logical time: close to the wall clock, and greater than everything its writer had
/// seen. Kulkarni, Demirbas, Madeppa, Avva, Leone: "Logical Physical Clocks and Consistent
/// Snapshots in Globally Distributed Databases" (2014).
///
/// 48 bits of milliseconds since 1970-01-01 UTC (good until the year 10889) above a 16-bit
/// counter that tells writes of one millisecond apart.
public struct HybridTime: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt64

    @inlinable
    public init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// - Parameters:
    ///   - milliseconds: since 1970-01-01 UTC; the lower 48 bits count.
    ///   - counter: orders the writes of one millisecond.
    public init(milliseconds: UInt64, counter: UInt16) {
        rawValue = milliseconds << 16 | UInt64(counter)
    }

    /// The last moment of a millisecond since 1970-01-01 UTC, or the last of all.
    init(endOfMillisecond milliseconds: UInt64) {
        self.init(milliseconds: min(milliseconds, 1 << 48 - 1), counter: .max)
    }

    /// Since 1970-01-01 UTC.
    public var milliseconds: UInt64 { rawValue >> 16 }

    public var counter: UInt16 { UInt16(truncatingIfNeeded: rawValue) }

    public static let zero = HybridTime(rawValue: 0)
}

extension HybridTime: Comparable {
    @inlinable
    public static func < (left: HybridTime, right: HybridTime) -> Bool {
        left.rawValue < right.rawValue
    }
}

extension HybridTime: CustomStringConvertible {
    /// UTC in the form of ISO 8601 with milliseconds, then the counter when it is not 0:
    /// `2026-11-21T06:30:00.125Z+3`.
    public var description: String {
        let time = CalendarTime(millisecondsSince1970: milliseconds)
        return counter == 0 ? time.iso8601 : "\(time.iso8601)+\(counter)"
    }
}
