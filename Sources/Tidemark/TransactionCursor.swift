/// Walks over records as a transaction sees them: those of its moment, and its own writes over
/// them as they were when the cursor was made.
///
/// What the cursor has passed counts as read by the transaction; once it has given nil, the whole
/// range does. It is not for two threads at once, and not for use after the transaction's end:
/// what is read then is not checked by anyone.
public final class TransactionCursor {
    private var steps: TransactionSteps
    private var turns: CursorTurns

    init(_ steps: TransactionSteps, limit: Int?) {
        self.steps = steps
        turns = CursorTurns(limit: limit)
    }

    /// The next record, or nil at the end.
    /// - Throws: `corruption` or `inputOutput` if a block cannot be read.
    public func next() throws(StoreError) -> TransactionRecord? {
        try next { key, value, version, expiresAt in
            TransactionRecord(
                key: key.array, value: value.array, version: version(), expiresAt: expiresAt)
        }
    }

    /// Hands out the next record where it lies; nil at the end, where the body is not called.
    ///
    /// - Parameter body: called at most once; the spans are valid during the call.
    /// - Throws: as ``next()``; `invalidArgument` if it is called by the body of a call that has
    ///   not returned.
    public func withNext<Result>(
        _ body: (_ key: RawSpan, _ value: RawSpan) -> Result
    ) throws(StoreError) -> Result? {
        try next { key, value, _, _ in
            unsafe body(key.buffer.bytes, value.buffer.bytes)
        }
    }

    /// All that is left, in memory.
    public func collect() throws(StoreError) -> [TransactionRecord] {
        var records: [TransactionRecord] = []
        while let record = try next() {
            records.append(record)
        }
        return records
    }

    func next<Result>(
        _ body: TransactionSteps.Body<Result>
    ) throws(StoreError) -> Result? {
        guard try turns.begin() else { return nil }
        defer { turns.end() }
        do throws(StoreError) {
            return try steps.next(body)
        } catch {
            turns.fail(error)
            throw error
        }
    }
}
