/// The name of one store as its peers see it: 128 random bits, drawn when the store is created.
///
/// A store that finds out that it has gone back in time (a restored backup, a copied directory)
/// draws a new one before its next write, so that no ``Dot`` ever names two writes.
/// The order of two ids means nothing by itself; it only breaks ties in the same way everywhere.
public struct ReplicaID: Hashable, Sendable {
    /// The first eight bytes, read as a big-endian number.
    public let high: UInt64
    /// The last eight bytes, read as a big-endian number.
    public let low: UInt64

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }
}

extension ReplicaID: Comparable {
    @inlinable
    public static func < (left: ReplicaID, right: ReplicaID) -> Bool {
        left.high != right.high ? left.high < right.high : left.low < right.low
    }
}

extension ReplicaID: LosslessStringConvertible {
    /// Reads the 32 hexadecimal digits that ``description`` writes; nil for anything else.
    public init?(_ description: String) {
        let digits = Array(description.utf8)
        guard digits.count == 32 else { return nil }
        var halves: [UInt64] = [0, 0]
        for (index, digit) in digits.enumerated() {
            guard let value = Self.value(ofHexDigit: digit) else { return nil }
            halves[index / 16] = halves[index / 16] << 4 | value
        }
        self.init(high: halves[0], low: halves[1])
    }

    /// 32 lower-case hexadecimal digits.
    public var description: String {
        Self.hexDigits(of: high) + Self.hexDigits(of: low)
    }

    /// The first 8 digits: enough for a person to tell replicas apart, not for a program.
    public var shortDescription: String {
        String(description.prefix(8))
    }

    private static func value(ofHexDigit digit: UInt8) -> UInt64? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(digit - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(digit - UInt8(ascii: "a") + 10)
        case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt64(digit - UInt8(ascii: "A") + 10)
        default: nil
        }
    }

    private static func hexDigits(of half: UInt64) -> String {
        let digits = String(half, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
