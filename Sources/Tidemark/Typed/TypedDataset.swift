/// A dataset seen through types: keys in an order that their bytes keep, and values through a
/// coding.
///
///     let scores = TypedDataset(
///         try store.dataset("scores"), KeyPair<String, UInt32>.self, IntegerCoding<Int64>())
///     try scores.put(120, for: KeyPair("chess", 7))
///     for score in try scores.records(in: .having("chess"), order: .backward, limit: 10) {
///         print(score.key.second, score.value)
///     }
///
/// It stores nothing but the bytes, so the same dataset can be read as it is, synchronised, and
/// seen through other types by those who know what they do. Errors of the coding go to the caller
/// as they are; all others are `StoreError`.
public struct TypedDataset<Key: OrderedKey, Coding: ValueCoding>: Sendable {
    public typealias Value = Coding.Value

    public let dataset: Dataset
    public let coding: Coding

    public init(_ dataset: Dataset, _ key: Key.Type = Key.self, _ coding: Coding) {
        self.dataset = dataset
        self.coding = coding
    }

    /// A record with its key and value decoded.
    public struct TypedRecord {
        public let key: Key
        public let value: Value
    }

    // MARK: - Writing

    /// - Throws: what the coding throws, and as ``Dataset/put(_:for:durability:)-([UInt8],_,_)``.
    @discardableResult
    public func put(
        _ value: Value, for key: Key, durability: Durability? = nil
    ) throws -> Dot {
        try dataset.put(try coding.encode(value), for: key.keyBytes, durability: durability)
    }

    /// Compare-and-set; the dot is that of ``version(of:)``.
    /// - Throws: `versionMismatch`, and as ``put(_:for:durability:)``.
    @discardableResult
    public func put(
        _ value: Value, for key: Key, ifAt expected: Dot?, durability: Durability? = nil
    ) throws -> Dot {
        try dataset.put(
            try coding.encode(value), for: key.keyBytes, ifAt: expected, durability: durability)
    }

    @discardableResult
    public func delete(_ key: Key, durability: Durability? = nil) throws(StoreError) -> Dot {
        try dataset.delete(key.keyBytes, durability: durability)
    }

    /// As a part of a batch.
    public func put(_ value: Value, for key: Key, in batch: inout WriteBatch) throws {
        batch.put(try coding.encode(value), for: key.keyBytes, in: dataset)
    }

    /// As a part of a transaction.
    public func put(_ value: Value, for key: Key, in transaction: Transaction) throws {
        try transaction.put(try coding.encode(value), for: key.keyBytes, in: dataset)
    }

    public func delete(_ key: Key, in transaction: Transaction) throws(StoreError) {
        try transaction.delete(key.keyBytes, in: dataset)
    }

    // MARK: - Reading

    /// The value of a key, decoded where it lies; nil if there is no live record.
    public func get(_ key: Key) throws -> Value? {
        let coding = coding
        let result = try dataset.withValue(
            for: key.keyBytes
        ) { bytes -> Result<Value, any Error>? in
            guard let bytes else { return nil }
            return Result { try coding.decode(bytes) }
        }
        return try result?.get()
    }

    public func get(_ key: Key, in transaction: Transaction) throws -> Value? {
        let coding = coding
        let result = try transaction.withValue(
            for: key.keyBytes, in: dataset
        ) { bytes -> Result<Value, any Error>? in
            guard let bytes else { return nil }
            return Result { try coding.decode(bytes) }
        }
        return try result?.get()
    }

    public func contains(_ key: Key) throws(StoreError) -> Bool {
        try dataset.contains(key.keyBytes)
    }

    /// Which write made the live record, for ``put(_:for:ifAt:durability:)``.
    public func version(of key: Key) throws(StoreError) -> Dot? {
        try dataset.record(for: key.keyBytes)?.version.dot
    }

    /// Records in the order of their keys.
    ///
    /// - Throws: what the coding throws, `invalidArgument` for a key that is of another type, and
    ///   as ``Dataset/records(in:order:limit:includingDeleted:)``.
    public func records(
        in range: TypedKeyRange<Key> = .all, order: ScanOrder = .forward, limit: Int? = nil
    ) throws -> [TypedRecord] {
        let cursor = try dataset.records(in: range.range, order: order, limit: limit)
        let coding = coding
        var records: [TypedRecord] = []
        while let result = try cursor.withNext({ key, value in
            Self.decoded(key, value, coding)
        }) {
            records.append(try result.get())
        }
        return records
    }

    private static func decoded(
        _ key: RawSpan, _ value: RawSpan?, _ coding: Coding
    ) -> Result<TypedRecord, any Error> {
        // The walk gives live records only, and those have values.
        guard let value else { preconditionFailure("a tombstone among live records") }
        return Result {
            TypedRecord(key: try Key(keyBytes: key.copied), value: try coding.decode(value))
        }
    }

    /// Keys in their order; values are not touched.
    public func keys(
        in range: TypedKeyRange<Key> = .all, order: ScanOrder = .forward, limit: Int? = nil
    ) throws(StoreError) -> [Key] {
        let cursor = try dataset.keys(in: range.range, order: order, limit: limit)
        var keys: [Key] = []
        while let bytes = try cursor.next() {
            keys.append(try Key(keyBytes: bytes))
        }
        return keys
    }
}

/// A range of typed keys.
public struct TypedKeyRange<Key: OrderedKey>: Sendable {
    /// The same by its bytes, for the calls of ``Dataset``.
    public let range: KeyRange

    private init(_ range: KeyRange) {
        self.range = range
    }

    /// - Parameters:
    ///   - lowerBound: the first key that belongs to it; nil for no bound.
    ///   - upperBound: the first key that no longer belongs to it; nil for no bound.
    public init(from lowerBound: Key? = nil, upTo upperBound: Key? = nil) {
        range = KeyRange(from: lowerBound?.keyBytes, upTo: upperBound?.keyBytes)
    }

    public init(from lowerBound: Key?, through last: Key) {
        range = KeyRange(from: lowerBound?.keyBytes, through: last.keyBytes)
    }

    public static var all: TypedKeyRange { TypedKeyRange(KeyRange.all) }

    /// All pairs with that first part.
    public static func having<First, Second>(
        _ first: First
    ) -> TypedKeyRange where Key == KeyPair<First, Second> {
        var bytes = KeyBytes()
        bytes.append(first)
        return TypedKeyRange(.prefix(bytes.bytes))
    }
}

extension TypedKeyRange where Key == String {
    /// All texts that begin with that one.
    public static func prefix(_ prefix: String) -> TypedKeyRange {
        TypedKeyRange(.prefix(prefix))
    }
}
