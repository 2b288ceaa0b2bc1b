public import Tidemark

extension Dataset {
    /// The mergeable value of a key; nil if there is no live record.
    ///
    /// - Throws: ``MergeableError`` if the record is something else, and what `get` throws.
    public func value<Value: MergeableValue>(
        of key: [UInt8], as type: Value.Type
    ) throws -> Value? {
        try get(key).map { bytes in try Value(decoding: bytes) }
    }

    public func value<Value: MergeableValue>(
        of key: String, as type: Value.Type
    ) throws -> Value? {
        try value(of: Array(key.utf8), as: type)
    }

    /// Changes the mergeable value of a key, and makes it first if there is no live record.
    ///
    /// By compare-and-set: if somebody else writes the record meanwhile, the change is made again
    /// to what they wrote, so no change is lost. A record that expires goes on to expire when it
    /// did. What the change leaves as it is is not written.
    ///
    /// Costs what it costs to read, decode and write the whole value.
    ///
    /// - Parameters:
    ///   - attemptsMax: changes at most, 1...; each that fails means that somebody else's write
    ///     went through.
    ///   - change: called once for each attempt, while no lock is held. It must do nothing that
    ///     cannot be done twice.
    /// - Returns: the value as it is now.
    /// - Throws: ``MergeableError`` if the record is something else, or the value grows beyond
    ///   ``MergeableLimits/bytesMax``; `versionMismatch` if every attempt failed; what `put`
    ///   throws; whatever the change throws. Nothing was changed then.
    @discardableResult
    public func update<Value: MergeableValue>(
        _ key: [UInt8], as type: Value.Type, attemptsMax: Int = 1_000,
        durability: Durability? = nil, _ change: (inout Value, MergeTurn) throws -> Void
    ) throws -> Value {
        var attempts = 0
        while true {
            attempts += 1
            let record = try record(for: key)
            let turn = MergeTurn(opening: store.openingID, time: store.nextTime())
            let before = try record?.value.map { bytes in try Value(decoding: bytes) }
            var value = before ?? Value(turn)
            try change(&value, turn)
            guard value != before else { return value }
            let bytes = value.encoded
            guard bytes.count <= MergeableLimits.bytesMax else {
                throw MergeableError(
                    "the value would have \(bytes.count) bytes, and "
                        + "\(MergeableLimits.bytesMax) are the most")
            }
            do throws(StoreError) {
                try put(
                    bytes, for: key, ifAt: record?.version.dot, expiresAt: record?.expiresAt,
                    durability: durability)
                return value
            } catch {
                guard error.code == .versionMismatch, attempts < attemptsMax else { throw error }
            }
        }
    }

    @discardableResult
    public func update<Value: MergeableValue>(
        _ key: String, as type: Value.Type, attemptsMax: Int = 1_000,
        durability: Durability? = nil, _ change: (inout Value, MergeTurn) throws -> Void
    ) throws -> Value {
        try update(
            Array(key.utf8), as: type, attemptsMax: attemptsMax, durability: durability, change)
    }
}
