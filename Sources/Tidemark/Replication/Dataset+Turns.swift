// What mergeable values need of the store.

extension Store {
    /// A number of this opening of the store: drawn at random, and of no other opening of this or
    /// any other store. So a store that was put back from a copy can be told from the one that it
    /// is a copy of.
    package var openingID: UInt64 {
        engine.withLock { held in
            let id = held.openingID ?? engine.storage.randomUInt64()
            held.openingID = id
            return id
        }
    }

    /// A time later than every one that was given out or seen here before.
    package func nextTime() -> HybridTime {
        engine.withLock { held in
            held.clock.next(wallClockMilliseconds: engine.storage.wallClockMilliseconds())
        }
    }
}

extension Dataset {
    /// Compare-and-set of a value that expires.
    ///
    /// - Parameters:
    ///   - expected: the write that the live record must have; nil if there must be none.
    ///   - expiresAt: milliseconds since 1970-01-01 UTC; nil for never.
    /// - Throws: `versionMismatch`, and what `put` throws.
    package func put(
        _ value: [UInt8], for key: [UInt8], ifAt expected: Dot?, expiresAt: UInt64?,
        durability: Durability?
    ) throws(StoreError) {
        try key.withBytes { (key) throws(StoreError) in
            try value.withBytes { (value) throws(StoreError) in
                _ = try write(
                    .put, key, value, expected: .some(expected), durability,
                    expiresAt: expiresAt ?? 0)
            }
        }
    }
}
