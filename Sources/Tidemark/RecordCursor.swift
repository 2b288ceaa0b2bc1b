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
    private enum Steps {
        case scan(ScanSteps)
        case changes(ChangeSteps)
    }

    private var steps: Steps
    private let dirtiness: Dirtiness

    init(_ steps: ScanSteps, _ dirtiness: Dirtiness) {
        self.steps = .scan(steps)
        self.dirtiness = dirtiness
    }

    init(_ steps: ChangeSteps, _ dirtiness: Dirtiness) {
        self.steps = .changes(steps)
        self.dirtiness = dirtiness
    }

    /// The next record, or nil at the end. O(log n) at worst, usually O(1).
    ///
    /// - Throws: `corruption` or `inputOutput` if a block cannot be read.
    public func next() throws(StoreError) -> Record? {
        try next { Record($0, $1, self.dirtiness) }
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
        _ body: (Entry, VersionTables) -> Result
    ) throws(StoreError) -> Result? {
        switch steps {
        case .scan(var scan):
            let result = try scan.next(body)
            steps = .scan(scan)
            return result
        case .changes(var changes):
            let result = try changes.next(body)
            steps = .changes(changes)
            return result
        }
    }
}
