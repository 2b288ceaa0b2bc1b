public import Tidemark

/// The greatest of all values that were ever offered, in the order of keys.
///
/// ```swift
/// try scores.update("best", as: Maximum<Int>.self) { best, _ in best.offer(score) }
/// ```
public struct Maximum<Value: OrderedKey>: MergeableValue {
    private var bytes: [UInt8]?

    public init(_ turn: MergeTurn) {}

    /// nil before the first offer.
    public var value: Value? { bytes.flatMap { try? Value(keyBytes: $0) } }

    /// Takes the value if it is greater, and has at most ``MergeableLimits/elementBytesMax`` bytes
    /// as a key.
    public mutating func offer(_ value: Value) {
        offer(value.keyBytes)
    }

    private mutating func offer(_ other: [UInt8]) {
        guard other.count <= MergeableLimits.elementBytesMax,
            bytes.map({ $0.precedes(other) }) ?? true
        else { return }
        bytes = other
    }

    public mutating func merge(_ other: Maximum) {
        if let other = other.bytes { offer(other) }
    }

    public var encoded: [UInt8] { bytes.encoded(as: .maximum) }

    public init(decoding bytes: [UInt8]) throws(MergeableError) {
        self.bytes = try [UInt8].decoded(from: bytes, as: .maximum, Value.self)
    }
}

/// The least of all values that were ever offered, in the order of keys.
public struct Minimum<Value: OrderedKey>: MergeableValue {
    private var bytes: [UInt8]?

    public init(_ turn: MergeTurn) {}

    /// nil before the first offer.
    public var value: Value? { bytes.flatMap { try? Value(keyBytes: $0) } }

    /// Takes the value if it is less, and has at most ``MergeableLimits/elementBytesMax`` bytes as
    /// a key.
    public mutating func offer(_ value: Value) {
        offer(value.keyBytes)
    }

    private mutating func offer(_ other: [UInt8]) {
        guard other.count <= MergeableLimits.elementBytesMax,
            bytes.map({ other.precedes($0) }) ?? true
        else { return }
        bytes = other
    }

    public mutating func merge(_ other: Minimum) {
        if let other = other.bytes { offer(other) }
    }

    public var encoded: [UInt8] { bytes.encoded(as: .minimum) }

    public init(decoding bytes: [UInt8]) throws(MergeableError) {
        self.bytes = try [UInt8].decoded(from: bytes, as: .minimum, Value.self)
    }
}

extension Optional<[UInt8]> {
    fileprivate func encoded(as kind: MergeableKind) -> [UInt8] {
        var writer = MergeableWriter(kind)
        writer.put(self != nil)
        if let self { writer.put(self) }
        return writer.bytes
    }
}

extension [UInt8] {
    /// Checks that the bytes are a key of the type.
    fileprivate static func decoded<Value: OrderedKey>(
        from bytes: [UInt8], as kind: MergeableKind, _ type: Value.Type
    ) throws(MergeableError) -> [UInt8]? {
        var reader = try MergeableReader(bytes, kind)
        guard try reader.takeFlag() else {
            try reader.finish()
            return nil
        }
        let content = try reader.takeBytes()
        try reader.finish()
        guard (try? Value(keyBytes: content)) != nil else {
            throw MergeableError("the value is no key of the type \(type)")
        }
        return content
    }
}
