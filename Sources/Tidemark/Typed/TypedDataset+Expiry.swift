/// Typed records that expire; see the same calls of ``Dataset``.
extension TypedDataset {
    /// Puts a value that expires.
    ///
    /// - Parameter expiresAt: milliseconds since 1970-01-01 UTC, less than 2^48; 0 stands for
    ///   never.
    /// - Throws: what the coding throws, and what the same call of ``Dataset`` throws.
    @discardableResult
    public func put(
        _ value: Value, for key: Key, expiresAt: UInt64, durability: Durability? = nil
    ) throws -> Dot {
        try dataset.put(
            try coding.encode(value), for: key.keyBytes, expiresAt: expiresAt,
            durability: durability)
    }

    /// Puts a value that expires after a while.
    ///
    /// - Parameter timeToLive: from now on, by whole milliseconds; not negative.
    /// - Throws: `invalidArgument` if the time is negative or too long, and as the one above.
    @discardableResult
    public func put(
        _ value: Value, for key: Key, timeToLive: Duration, durability: Durability? = nil
    ) throws -> Dot {
        try put(
            value, for: key, expiresAt: try dataset.expiry(after: timeToLive),
            durability: durability)
    }

    /// As a part of a batch.
    public func put(
        _ value: Value, for key: Key, in batch: inout WriteBatch, expiresAt: UInt64
    ) throws {
        batch.put(
            try coding.encode(value), for: key.keyBytes, in: dataset, expiresAt: expiresAt)
    }

    /// As a part of a transaction.
    public func put(
        _ value: Value, for key: Key, in transaction: Transaction, expiresAt: UInt64
    ) throws {
        try transaction.put(
            try coding.encode(value), for: key.keyBytes, in: dataset, expiresAt: expiresAt)
    }

    /// When the live record of a key expires, in milliseconds since 1970-01-01 UTC; nil if it does
    /// not, or if there is none.
    public func expiry(of key: Key) throws(StoreError) -> UInt64? {
        try dataset.record(for: key.keyBytes)?.expiresAt
    }
}
