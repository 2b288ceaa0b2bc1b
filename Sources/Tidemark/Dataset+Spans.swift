/// Reading and writing without arrays: keys and values are borrowed from wherever they lie, and
/// nothing is allocated for an operation. The array makes of the same calls serve just as well
/// wherever the bytes are in arrays already.
///
///     let key = Array("order-17".utf8)
///     let count = try orders.withValue(for: key.span.bytes) { $0?.byteCount ?? 0 }
extension Dataset {
    /// Puts a value.
    ///
    /// - Parameters:
    ///   - value: 0...256 MiB. An empty value is not a missing one.
    ///   - key: 1...65,535 bytes.
    ///   - durability: in place of the store's own.
    /// - Returns: the name of the write.
    /// - Throws: `invalidArgument`, `datasetNotFound`, `diskFull`, `inputOutput`; `writerStopped`
    ///   once a write or sync has failed.
    @discardableResult
    public func put(
        _ value: RawSpan, for key: RawSpan, durability: Durability? = nil
    ) throws(StoreError) -> Dot {
        try key.withBytes { (key) throws(StoreError) in
            try value.withBytes { (value) throws(StoreError) in
                try write(.put, key, value, expected: nil, durability)
            }
        }
    }

    /// Deletes a record, leaving a tombstone, also where there was none: a peer may have one.
    @discardableResult
    public func delete(
        _ key: RawSpan, durability: Durability? = nil
    ) throws(StoreError) -> Dot {
        try key.withBytes { (key) throws(StoreError) in
            try write(.delete, key, .empty, expected: nil, durability)
        }
    }

    /// Hands out the value of a key where it lies, without a copy; nil if there is no live record.
    ///
    /// - Parameter body: called once; the span is valid during the call.
    /// - Throws: `datasetNotFound`, `closed`, `corruption`, `inputOutput`.
    public func withValue<Result>(
        for key: RawSpan, _ body: (RawSpan?) -> Result
    ) throws(StoreError) -> Result {
        try key.withBytes { (key) throws(StoreError) in
            try withValue(of: key, body)
        }
    }

    /// Whether there is a live record.
    public func contains(_ key: RawSpan) throws(StoreError) -> Bool {
        try key.withBytes { (key) throws(StoreError) in try contains(key) }
    }
}
