/// How values of a type become bytes and are made of them again.
///
/// The store brings ``BytesCoding``, ``TextCoding`` and ``IntegerCoding``, and no encoder of other
/// types, because it does without Foundation. A JSON coding is these lines in a service that has
/// it:
///
///     struct JSONCoding<Value: Codable & Sendable>: ValueCoding {
///         func encode(_ value: Value) throws -> [UInt8] {
///             Array(try JSONEncoder().encode(value))
///         }
///         func decode(_ bytes: RawSpan) throws -> Value {
///             let data = bytes.withUnsafeBytes { Data($0) }
///             return try JSONDecoder().decode(Value.self, from: data)
///         }
///     }
///
///     let orders = TypedDataset(try store.dataset("orders"), String.self, JSONCoding<Order>())
///
/// Bytes that were stored once must be decoded by every later version of the coding.
public protocol ValueCoding<Value>: Sendable {
    associatedtype Value

    /// - Throws: whatever keeps the value from being encoded; it goes to the caller as it is.
    func encode(_ value: Value) throws -> [UInt8]

    /// - Parameter bytes: lie where they are stored, and are valid during the call.
    /// - Throws: if they are of no such value; goes to the caller as it is.
    func decode(_ bytes: RawSpan) throws -> Value
}

/// Bytes as they are.
public struct BytesCoding: ValueCoding {
    public init() {}

    public func encode(_ value: [UInt8]) -> [UInt8] { value }

    public func decode(_ bytes: RawSpan) -> [UInt8] { bytes.copied }
}

/// Text as UTF-8.
public struct TextCoding: ValueCoding {
    public init() {}

    public func encode(_ value: String) -> [UInt8] { Array(value.utf8) }

    /// - Throws: `StoreError` of the code `invalidArgument` if the bytes are not UTF-8.
    public func decode(_ bytes: RawSpan) throws(StoreError) -> String {
        guard let text = String(validating: bytes.copied, as: UTF8.self) else {
            throw StoreError(
                .invalidArgument,
                "a value of \(bytes.byteCount) bytes is not UTF-8; read it with another coding")
        }
        return text
    }
}

/// Integers at their full width, little-endian.
public struct IntegerCoding<Value: FixedWidthInteger & BitwiseCopyable & Sendable>: ValueCoding {
    public init() {}

    public func encode(_ value: Value) -> [UInt8] {
        stride(from: 0, to: Value.bitWidth, by: 8).map {
            UInt8(truncatingIfNeeded: value >> Value($0))
        }
    }

    /// - Throws: `StoreError` of the code `invalidArgument` if there are more bytes or fewer.
    public func decode(_ bytes: RawSpan) throws(StoreError) -> Value {
        guard bytes.byteCount == Value.bitWidth / 8 else {
            throw StoreError(
                .invalidArgument,
                "a value of \(bytes.byteCount) bytes is no integer of \(Value.bitWidth) bits; "
                    + "read it with the width it was written with")
        }
        return bytes.copied.reversed().reduce(0) { $0 << 8 | Value(truncatingIfNeeded: $1) }
    }
}
