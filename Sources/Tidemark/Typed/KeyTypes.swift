/// As a whole key the text itself in UTF-8, so that it is the same as the calls of ``Dataset`` that
/// take a text, and prefixes work; within a larger key escaped. In the order of Unicode scalars.
extension String: OrderedKey {
    public func append(to bytes: inout KeyBytes) {
        bytes.append(escaped: utf8)
    }

    public init(from reader: inout KeyBytesReader) throws(StoreError) {
        guard let text = String(validating: try reader.escaped(), as: UTF8.self) else {
            throw reader.malformed("a text in it is not UTF-8")
        }
        self = text
    }

    public var keyBytes: [UInt8] { Array(utf8) }

    public init(keyBytes: [UInt8]) throws(StoreError) {
        guard let text = String(validating: keyBytes, as: UTF8.self) else {
            throw .malformedKey(keyBytes, "it is not UTF-8")
        }
        self = text
    }
}

/// Big-endian, at full width, with the sign turned round.
extension OrderedKey where Self: FixedWidthInteger & Sendable {
    public func append(to bytes: inout KeyBytes) {
        for index in stride(from: Self.bitWidth - 8, through: 0, by: -8) {
            var byte = UInt8(truncatingIfNeeded: self >> Self(index))
            if Self.isSigned, index == Self.bitWidth - 8 { byte ^= 0x80 }
            bytes.append(raw: CollectionOfOne(byte))
        }
    }

    public init(from reader: inout KeyBytesReader) throws(StoreError) {
        var value: Self = 0
        let bytes = try reader.raw(Self.bitWidth / 8)
        for (index, byte) in bytes.enumerated() {
            let turned = Self.isSigned && index == 0 ? byte ^ 0x80 : byte
            value = value << 8 | Self(truncatingIfNeeded: turned)
        }
        self = value
    }
}

extension UInt8: OrderedKey {}
extension UInt16: OrderedKey {}
extension UInt32: OrderedKey {}
extension UInt64: OrderedKey {}
extension Int8: OrderedKey {}
extension Int16: OrderedKey {}
extension Int32: OrderedKey {}
extension Int64: OrderedKey {}
/// At 64 bits, whatever the machine.
extension Int: OrderedKey {}

/// Element by element; of two of which one begins with the other the shorter comes first.
extension Array: OrderedKey where Element: OrderedKey {
    /// Asked before every cast, since an empty array is one of any type.
    private static var isOfBytes: Bool { Element.self == UInt8.self }

    public func append(to bytes: inout KeyBytes) {
        if Self.isOfBytes, let own = self as? [UInt8] { return bytes.append(escaped: own) }
        for element in self {
            bytes.append(raw: CollectionOfOne(1))
            bytes.append(element)
        }
        bytes.append(raw: CollectionOfOne(0))
    }

    public init(from reader: inout KeyBytesReader) throws(StoreError) {
        if Self.isOfBytes, let own = try reader.escaped() as? Self {
            self = own
            return
        }
        self = []
        while true {
            switch try reader.nextByte() {
            case 0: return
            case 1: append(try reader.next())
            default: throw reader.malformed("an array in it neither goes on nor ends")
            }
        }
    }

    /// An array of bytes is its own key; of others, the elements' bytes.
    public var keyBytes: [UInt8] {
        if Self.isOfBytes, let own = self as? [UInt8] { return own }
        var bytes = KeyBytes()
        append(to: &bytes)
        return bytes.bytes
    }

    public init(keyBytes: [UInt8]) throws(StoreError) {
        if Self.isOfBytes, let own = keyBytes as? Self {
            self = own
            return
        }
        var reader = KeyBytesReader(keyBytes)
        try self.init(from: &reader)
        guard reader.isAtEnd else { throw .malformedKey(keyBytes, "bytes are left over") }
    }
}

/// Two keys as one, the first before the second: a tuple that can be a key. Pairs nest.
///
///     let visits = TypedDataset(dataset, KeyPair<String, UInt32>.self, TextCoding())
///     try visits.put("from the left", for: KeyPair("door", 17))
///     let atDoor = try visits.records(in: .having("door"))
public struct KeyPair<First: OrderedKey, Second: OrderedKey>: OrderedKey {
    public var first: First
    public var second: Second

    public init(_ first: First, _ second: Second) {
        self.first = first
        self.second = second
    }

    public func append(to bytes: inout KeyBytes) {
        bytes.append(first)
        bytes.append(second)
    }

    public init(from reader: inout KeyBytesReader) throws(StoreError) {
        first = try reader.next()
        second = try reader.next()
    }
}

extension KeyPair: Equatable where First: Equatable, Second: Equatable {}
extension KeyPair: Hashable where First: Hashable, Second: Hashable {}

extension KeyPair: Comparable where First: Comparable, Second: Comparable {
    public static func < (left: KeyPair, right: KeyPair) -> Bool {
        left.first != right.first ? left.first < right.first : left.second < right.second
    }
}
