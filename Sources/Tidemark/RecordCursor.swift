/// Walks over records of one moment: neither later writes nor compaction change what it gives.
///
/// A cursor holds the segments of its moment on disk until it is let go. It is not for two
/// threads at once.
///
///     let cursor = try notes.records(in: .prefix("2026-"))
///     while let record = try cursor.next() {
///         print(record.keyText ?? "?", record.value?.count ?? 0)
///     }
public final class RecordCursor {
    // One of the three is there. They are no cases of one enum, because steps are changed where
    // they lie: taking a payload out and putting it back copies its arrays at every step.
    // The check for exclusive access at each step would cost more than the step: `turns` sees to it
    // that nobody else reaches them while one is on its way.
    @exclusivity(unchecked) private var scan: ScanSteps?
    @exclusivity(unchecked) private var changes: ChangeSteps?
    private var past: PastSteps?
    private let dirtiness: Dirtiness
    /// By which records have expired.
    let now: UInt64
    @exclusivity(unchecked) private var turns: CursorTurns
    private let isForwardScan: Bool

    init(_ steps: ScanSteps, _ dirtiness: Dirtiness, limit: Int? = nil) {
        unsafe scan = steps
        isForwardScan = steps.order == .forward
        now = steps.moment.now
        self.dirtiness = dirtiness
        unsafe turns = CursorTurns(limit: limit)
    }

    init(_ steps: ChangeSteps, _ dirtiness: Dirtiness) {
        unsafe changes = steps
        isForwardScan = false
        now = steps.moment.now
        self.dirtiness = dirtiness
        unsafe turns = CursorTurns(limit: nil)
    }

    init(_ steps: PastSteps, limit: Int? = nil) {
        past = steps
        isForwardScan = false
        now = steps.scope.now
        dirtiness = steps.scope.dirtiness
        unsafe turns = CursorTurns(limit: limit)
    }

    /// The next record, or nil at the end. O(log n) at worst, usually O(1).
    ///
    /// - Throws: `corruption` or `inputOutput` if a block cannot be read. Then the walk is over,
    ///   and every later call throws the same; behind a single value that cannot be read it goes
    ///   on.
    public func next() throws(StoreError) -> Record? {
        try next { (entry, tables) throws(StoreError) in
            try Record(entry, tables, self.dirtiness, now: self.now)
        }
    }

    /// Hands out the next record where it lies, without a copy; nil at the end, where the body is
    /// not called. As fast as the walk itself, so use it wherever keys and values are looked at
    /// and let go:
    ///
    ///     var byteCount = 0
    ///     while let count = try cursor.withNext({ _, value in value?.byteCount ?? 0 }) {
    ///         byteCount += count
    ///     }
    ///
    /// - Parameters:
    ///   - body: called at most once; the spans are valid during the call.
    ///   - key: of the record.
    ///   - value: nil for a tombstone, which only a walk that includes deleted records meets.
    /// - Throws: `corruption` or `inputOutput` if a block cannot be read; `invalidArgument` if it
    ///   is called by the body of a call that has not returned.
    public func withNext<Result>(
        _ body: (_ key: RawSpan, _ value: RawSpan?) -> Result
    ) throws(StoreError) -> Result? {
        guard isForwardScan else {
            return try next { (entry, tables) throws(StoreError) in
                try Self.withSpans(of: entry, tables, now: self.now, body)
            }
        }
        guard unsafe try turns.begin() else { return nil }
        defer { unsafe turns.end() }
        let next: Entry?
        do throws(StoreError) {
            next = unsafe try scan!.nextEntry()
        } catch {
            unsafe turns.fail(error)
            throw error
        }
        guard let entry = next else { return nil }
        guard !entry.isApart else {
            return unsafe try Self.withSpans(of: entry, scan!.tables, now: now, body)
        }
        return Self.withSpans(of: entry, now: now, body)
    }

    /// Of an entry whose value may lie apart.
    @inline(never)
    private static func withSpans<Result>(
        of entry: Entry, _ tables: VersionTables, now: UInt64,
        _ body: (_ key: RawSpan, _ value: RawSpan?) -> Result
    ) throws(StoreError) -> Result {
        guard entry.isApart, entry.isLive(at: now) else {
            return withSpans(of: entry, now: now, body)
        }
        return try tables.withValue(of: entry) { (value) throws(StoreError) in
            body(unsafe entry.key.buffer.bytes, unsafe value.buffer.bytes)
        }
    }

    @inline(__always)
    private static func withSpans<Result>(
        of entry: Entry, now: UInt64, _ body: (_ key: RawSpan, _ value: RawSpan?) -> Result
    ) -> Result {
        let key = unsafe entry.key.buffer.bytes
        guard entry.isLive(at: now) else { return body(key, nil) }
        return body(key, unsafe entry.valueField.buffer.bytes)
    }

    /// All that is left, in memory.
    public func collect() throws(StoreError) -> [Record] {
        var records: [Record] = []
        while let record = try next() {
            records.append(record)
        }
        return records
    }

    /// The next entry where it lies, for counting and hashing without copies.
    func next<Result>(
        _ body: (Entry, VersionTables) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        guard unsafe try turns.begin() else { return nil }
        defer { unsafe turns.end() }
        // A value that cannot be read does not end the walk.
        var isAtRecord = false
        func give(_ entry: Entry, _ tables: VersionTables) throws(StoreError) -> Result {
            isAtRecord = true
            return try body(entry, tables)
        }
        do throws(StoreError) {
            if let result = unsafe try scan?.next(give) { return result }
            if let result = unsafe try changes?.next(give) { return result }
            return try past?.next(give)
        } catch {
            if !isAtRecord { unsafe turns.fail(error) }
            throw error
        }
    }
}
