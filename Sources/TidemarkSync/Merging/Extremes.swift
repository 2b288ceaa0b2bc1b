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
        bytes.take(value.keyBytes) { $0.precedes($1) }
    }

    public mutating func merge(_ other: Maximum) {
        bytes.take(other.bytes) { $0.precedes($1) }
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
        bytes.take(value.keyBytes) { $1.precedes($0) }
    }

    public mutating func merge(_ other: Minimum) {
        bytes.take(other.bytes) { $1.precedes($0) }
    }

    public var encoded: [UInt8] { bytes.encoded(as: .minimum) }

    public init(decoding bytes: [UInt8]) throws(MergeableError) {
        self.bytes = try [UInt8].decoded(from: bytes, as: .minimum, Value.self)
    }
}

extension Optional<[UInt8]> {
    /// Becomes the other one if there was none, or if that yields to it; never one that is too
    /// long.
    fileprivate mutating func take(
        _ other: [UInt8]?, if yields: (_ known: [UInt8], _ other: [UInt8]) -> Bool
    ) {
        guard let other, other.count <= MergeableLimits.elementBytesMax else { return }
        if let self, !yields(self, other) { return }
        self = other
    }

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
