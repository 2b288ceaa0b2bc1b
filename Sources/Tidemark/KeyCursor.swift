/// Walks over the keys of one moment, without making records: no value is copied, and no version
/// looked up.
///
/// It holds the segments of its moment on disk until it is let go, and is not for two threads at
/// once.
///
///     let cursor = try notes.keys(in: .prefix("2026-"), order: .backward, limit: 10)
///     while let key = try cursor.next() {
///         print(String(decoding: key, as: UTF8.self))
///     }
public final class KeyCursor {
    // One of the three is there; see `RecordCursor`, also for the exclusivity.
    @exclusivity(unchecked) private var scan: ScanSteps?
    @exclusivity(unchecked) private var transaction: TransactionSteps?
    private var past: PastSteps?
    @exclusivity(unchecked) private var turns: CursorTurns

    init(_ steps: ScanSteps, limit: Int?) {
        unsafe scan = steps
        unsafe turns = CursorTurns(limit: limit)
    }

    init(_ steps: PastSteps, limit: Int?) {
        past = steps
        unsafe turns = CursorTurns(limit: limit)
    }

    init(_ steps: TransactionSteps, limit: Int?) {
        unsafe transaction = steps
        unsafe turns = CursorTurns(limit: limit)
    }

    /// The next key, or nil at the end. O(log n) at worst, usually O(1).
    ///
    /// - Throws: `corruption` or `inputOutput` if a block cannot be read.
    public func next() throws(StoreError) -> [UInt8]? {
        try next { $0.array }
    }

    /// Hands out the next key where it lies, without a copy; nil at the end, where the body is
    /// not called.
    ///
    /// - Parameter body: called at most once; the span is valid during the call.
    /// - Throws: as ``next()``; `invalidArgument` if it is called by the body of a call that has
    ///   not returned.
    public func withNext<Result>(
        _ body: (_ key: RawSpan) -> Result
    ) throws(StoreError) -> Result? {
        try next { unsafe body($0.buffer.bytes) }
    }

    /// All that are left, in memory.
    public func collect() throws(StoreError) -> [[UInt8]] {
        var keys: [[UInt8]] = []
        while let key = try next() {
            keys.append(key)
        }
        return keys
    }

    private func next<Result>(_ body: (ByteView) -> Result) throws(StoreError) -> Result? {
        guard unsafe try turns.begin() else { return nil }
        defer { unsafe turns.end() }
        do throws(StoreError) {
            if let key = unsafe try scan?.next({ entry, _ in body(entry.key) }) { return key }
            if let key = unsafe try transaction?.next({ key, _, _, _ in body(key) }) {
                return key
            }
            return try past?.next { entry, _ in body(entry.key) }
        } catch {
            unsafe turns.fail(error)
            throw error
        }
    }
}

extension Dataset {
    /// The keys of live records in their order, as of the moment of the call.
    ///
    /// - Parameter limit: the number of keys at most; nil for no bound.
    /// - Throws: `datasetNotFound`, `closed`, `corruption`, `inputOutput`.
    public func keys(
        in range: KeyRange = .all, order: ScanOrder = .forward, limit: Int? = nil,
        includingDeleted: Bool = false
    ) throws(StoreError) -> KeyCursor {
        KeyCursor(
            try steps(in: range, order: order, includingDeleted: includingDeleted).steps,
            limit: limit)
    }
}

extension Snapshot {
    /// The keys of live records in their order.
    ///
    /// - Parameter limit: the number of keys at most; nil for no bound.
    /// - Throws: as ``get(_:in:)``.
    public func keys(
        of dataset: Dataset, in range: KeyRange = .all, order: ScanOrder = .forward,
        limit: Int? = nil, includingDeleted: Bool = false
    ) throws(StoreError) -> KeyCursor {
        if let past = try pastSteps(
            of: dataset, in: range, order: order, includingDeleted: includingDeleted)
        {
            return KeyCursor(past, limit: limit)
        }
        return KeyCursor(
            try steps(
                of: dataset, in: range, order: order, includingDeleted: includingDeleted
            ).steps, limit: limit)
    }
}

extension Transaction {
    /// The keys of live records in their order: those of the moment, and over them what the
    /// transaction has written before this call. The range counts as read as far as the cursor
    /// is walked: a change of a value in it is a conflict, too.
    ///
    /// - Parameter limit: the number of keys at most; nil for no bound.
    /// - Throws: as ``get(_:in:)-([UInt8],_)``.
    public func keys(
        of dataset: Dataset, in range: KeyRange = .all, order: ScanOrder = .forward,
        limit: Int? = nil
    ) throws(StoreError) -> KeyCursor {
        KeyCursor(
            try steps(of: dataset, in: range, order: order, isKeysOnly: true), limit: limit)
    }
}
