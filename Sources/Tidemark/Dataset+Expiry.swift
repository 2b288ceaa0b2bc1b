/// Records that expire: from a given time on they count as deleted, here and wherever the record
/// goes, by the clock of the store that is read. Neither a write nor a message is needed for that.
/// See the article <doc:History>.
extension Dataset {
    /// Puts a value that expires.
    ///
    /// - Parameters:
    ///   - value: 0...256 MiB.
    ///   - key: 1...65,535 bytes.
    ///   - expiresAt: milliseconds since 1970-01-01 UTC, less than 2^48. A time that has passed is
    ///     allowed: then the record counts as deleted at once. 0 stands for never.
    ///   - durability: in place of the store's own.
    /// - Returns: the name of the write.
    /// - Throws: as ``put(_:for:durability:)-([UInt8],_,_)``.
    @discardableResult
    public func put(
        _ value: [UInt8], for key: [UInt8], expiresAt: UInt64, durability: Durability? = nil
    ) throws(StoreError) -> Dot {
        try key.withBytes { (key) throws(StoreError) in
            try value.withBytes { (value) throws(StoreError) in
                try write(.put, key, value, expected: nil, durability, expiresAt: expiresAt)
            }
        }
    }

    @discardableResult
    public func put(
        _ value: String, for key: String, expiresAt: UInt64, durability: Durability? = nil
    ) throws(StoreError) -> Dot {
        try put(
            Array(value.utf8), for: Array(key.utf8), expiresAt: expiresAt, durability: durability)
    }

    /// Without arrays: key and value are borrowed from wherever they lie.
    @discardableResult
    public func put(
        _ value: RawSpan, for key: RawSpan, expiresAt: UInt64, durability: Durability? = nil
    ) throws(StoreError) -> Dot {
        try key.withBytes { (key) throws(StoreError) in
            try value.withBytes { (value) throws(StoreError) in
                try write(.put, key, value, expected: nil, durability, expiresAt: expiresAt)
            }
        }
    }

    /// Puts a value that expires after a while.
    ///
    /// - Parameter timeToLive: from now on, by whole milliseconds; not negative.
    /// - Throws: `invalidArgument` if the time is negative or too long, and what `put` throws.
    @discardableResult
    public func put(
        _ value: [UInt8], for key: [UInt8], timeToLive: Duration, durability: Durability? = nil
    ) throws(StoreError) -> Dot {
        try put(value, for: key, expiresAt: try expiry(after: timeToLive), durability: durability)
    }

    @discardableResult
    public func put(
        _ value: String, for key: String, timeToLive: Duration, durability: Durability? = nil
    ) throws(StoreError) -> Dot {
        try put(value, for: key, expiresAt: try expiry(after: timeToLive), durability: durability)
    }

    /// The time of expiry of a record that is to live so long, by the store's clock: milliseconds
    /// since 1970-01-01 UTC.
    ///
    /// - Throws: `invalidArgument` if the time is negative or too long.
    public func expiry(after timeToLive: Duration) throws(StoreError) -> UInt64 {
        let now = engine.storage.wallClockMilliseconds()
        let (sum, overflow) = now.addingReportingOverflow(timeToLive.millisecondsClamped)
        guard timeToLive >= .zero, !overflow, sum <= EntryLayout.expiryMax else {
            throw StoreError(
                .invalidArgument,
                "a time to live of \(timeToLive); it may not be negative nor reach beyond "
                    + "\(EntryLayout.expiryMax) ms since 1970. Put a record that stays without one")
        }
        return sum
    }
}

extension WriteBatch {
    /// Puts a value that expires.
    ///
    /// - Parameter expiresAt: milliseconds since 1970-01-01 UTC, less than 2^48; 0 stands for
    ///   never. ``Dataset/expiry(after:)`` gives it for a time to live.
    public mutating func put(
        _ value: [UInt8], for key: [UInt8], in dataset: Dataset, expiresAt: UInt64
    ) {
        // Bytes have no padding, which is what makes `bytes` of a span unsafe.
        unsafe put(value.span.bytes, for: key.span.bytes, in: dataset, expiresAt: expiresAt)
    }

    public mutating func put(
        _ value: String, for key: String, in dataset: Dataset, expiresAt: UInt64
    ) {
        put(Array(value.utf8), for: Array(key.utf8), in: dataset, expiresAt: expiresAt)
    }

    /// The same for a value that lies anywhere; key and value are copied into the batch.
    public mutating func put(
        _ value: RawSpan, for key: RawSpan, in dataset: Dataset, expiresAt: UInt64
    ) {
        append(.put, key, value, in: dataset, expected: nil, expiresAt: expiresAt)
    }
}

extension Store {
    /// Puts a tombstone in the place of every record that has expired, at once instead of when
    /// background work comes to it; returns how many. Their space comes back with the next
    /// compaction. Reads see no difference, but followers of changes are told of each.
    ///
    /// O(n) in each dataset that has expired records.
    ///
    /// - Throws: `closed`, `readOnly`, `writerStopped`, and what a write throws.
    @discardableResult
    public func deleteExpired() throws(StoreError) -> Int {
        try engine.deleteExpired()
    }
}
