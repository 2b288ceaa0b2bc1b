/// A type whose values can be keys, in an order that is that of their bytes: a walk over a
/// ``TypedDataset`` gives them as they sort.
///
/// Strings, byte arrays, integers of fixed width, arrays of these and ``KeyPair``s of these are
/// such keys. A type of one's own becomes one by way of others:
///
///     struct OrderKey: OrderedKey {
///         var customer: String
///         var number: UInt32
///
///         func append(to bytes: inout KeyBytes) {
///             bytes.append(customer)
///             bytes.append(number)
///         }
///         init(from reader: inout KeyBytesReader) throws(StoreError) {
///             customer = try reader.next()
///             number = try reader.next()
///         }
///     }
///
/// What is told apart is the bytes: two texts that Swift calls equal, because they differ only in
/// how an accent is written, are two keys. Bytes may never change their meaning once
/// records are stored under them.
public protocol OrderedKey: Sendable {
    /// Appends the value in such a form that nothing which follows can change its place in the
    /// order: no value's bytes begin with all the bytes of another.
    func append(to bytes: inout KeyBytes)

    /// Takes back what ``append(to:)`` has written.
    /// - Throws: `invalidArgument` if these bytes are of no such value.
    init(from reader: inout KeyBytesReader) throws(StoreError)

    /// The whole key, when it is nothing but this value.
    var keyBytes: [UInt8] { get }

    /// A value from a whole key.
    /// - Throws: `invalidArgument` if these bytes are of no such value.
    init(keyBytes: [UInt8]) throws(StoreError)
}

extension OrderedKey {
    public var keyBytes: [UInt8] {
        var bytes = KeyBytes()
        append(to: &bytes)
        return bytes.bytes
    }

    public init(keyBytes: [UInt8]) throws(StoreError) {
        var reader = KeyBytesReader(keyBytes)
        self = try Self(from: &reader)
        guard reader.isAtEnd else { throw .malformedKey(keyBytes, "bytes are left over") }
    }
}

/// The bytes of a key as it is put together.
public struct KeyBytes: Sendable {
    public private(set) var bytes: [UInt8] = []

    public init() {}

    public mutating func append(_ key: some OrderedKey) {
        key.append(to: &self)
    }

    /// As it is. Whoever calls sees to the order.
    public mutating func append(raw more: some Sequence<UInt8>) {
        bytes.append(contentsOf: more)
    }

    /// Ends with 00 00, and writes each 00 within as 00 FF: so that what is shorter comes first,
    /// and nothing that follows is taken for a part of it.
    mutating func append(escaped more: some Sequence<UInt8>) {
        for byte in more {
            bytes.append(byte)
            if byte == 0 { bytes.append(0xFF) }
        }
        bytes.append(contentsOf: [0, 0])
    }
}

/// Takes the bytes of a key apart.
public struct KeyBytesReader: Sendable {
    private let bytes: [UInt8]
    private var offset = 0

    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    public var isAtEnd: Bool { offset == bytes.count }

    /// - Throws: `invalidArgument` if what comes next is of no such value.
    public mutating func next<Key: OrderedKey>(
        _ type: Key.Type = Key.self
    ) throws(StoreError) -> Key {
        try Key(from: &self)
    }

    /// The next so many bytes as they are.
    public mutating func raw(_ count: Int) throws(StoreError) -> ArraySlice<UInt8> {
        guard count >= 0, count <= bytes.count - offset else {
            throw .malformedKey(bytes, "it ends too early")
        }
        defer { offset += count }
        return bytes[offset..<offset + count]
    }

    mutating func nextByte() throws(StoreError) -> UInt8 {
        guard offset < bytes.count else { throw malformed("it ends too early") }
        defer { offset += 1 }
        return bytes[offset]
    }

    mutating func escaped() throws(StoreError) -> [UInt8] {
        var result: [UInt8] = []
        while true {
            let byte = try nextByte()
            guard byte == 0 else {
                result.append(byte)
                continue
            }
            switch try nextByte() {
            case 0: return result
            case 0xFF: result.append(0)
            default: throw malformed("a zero in it is neither escaped nor an end")
            }
        }
    }

    func malformed(_ reason: String) -> StoreError { .malformedKey(bytes, reason) }
}

extension StoreError {
    static func malformedKey(_ bytes: [UInt8], _ reason: String) -> StoreError {
        StoreError(
            .invalidArgument,
            "a key of \(bytes.count) bytes is not of the type it is read as: \(reason). Read it "
                + "with the type it was written with")
    }
}
