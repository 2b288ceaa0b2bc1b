/// Walks over the records of a dataset as of a past moment: of each key the newest version that
/// was there then.
struct PastSteps {
    let scope: PastScope
    private let lowerBound: [UInt8]?
    private let upperBound: [UInt8]?
    private let order: ScanOrder
    private let includingDeleted: Bool
    private var cursor: MergeCursor
    /// Backwards the versions of a key come oldest first; this one looks up the newest.
    private var finder: MergeCursor?
    private var key: [UInt8] = []

    init(
        _ scope: PastScope, range: KeyRange, order: ScanOrder, includingDeleted: Bool
    ) throws(StoreError) {
        self.scope = scope
        self.order = order
        self.includingDeleted = includingDeleted
        lowerBound = range.lowerBound
        upperBound = range.upperBound
        let view = scope.moment.view
        cursor = try MergeCursor(view, order: order)
        finder = order == .forward ? nil : try MergeCursor(view, order: .forward)
        let start = order == .forward ? (lowerBound ?? []) : upperBound
        if let start {
            try start.withBytes { (key) throws(StoreError) in
                try cursor.seek(EntryPosition(before: key, in: scope.dataset))
            }
        } else {
            try cursor.seek(EntryPosition(before: .empty, in: scope.dataset &+ 1))
        }
    }

    /// The newest version of a key that is seen, where the cursor then stands; nil if there is
    /// none. O(log n), and a step for each version in between.
    static func find(
        _ key: ByteView, in scope: PastScope, _ cursor: inout MergeCursor
    ) throws(StoreError) -> Entry? {
        try cursor.seek(scope.position(of: key))
        while let entry = cursor.entry, entry.dataset == scope.dataset, entry.key.equals(key) {
            if scope.shows(entry) { return entry }
            try cursor.advance()
        }
        return nil
    }

    /// Hands the next entry to the body; nil at the end. The entry is valid during the call.
    mutating func next<Result>(
        _ body: (Entry, VersionTables) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        order == .forward ? try nextForward(body) : try nextBackward(body)
    }

    private mutating func nextForward<Result>(
        _ body: (Entry, VersionTables) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        while let entry = cursor.entry, entry.dataset == scope.dataset {
            if let upperBound, KeyRange.compare(entry.key, upperBound) >= 0 { return nil }
            guard scope.shows(entry) else {
                try cursor.advance()
                continue
            }
            let result =
                includingDeleted || entry.isLive(at: scope.now)
                ? try body(entry, cursor.tables) : nil
            try cursor.advancePastKey()
            if let result { return result }
        }
        return nil
    }

    private mutating func nextBackward<Result>(
        _ body: (Entry, VersionTables) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        while let entry = cursor.entry, entry.dataset == scope.dataset {
            if let lowerBound, KeyRange.compare(entry.key, lowerBound) < 0 { return nil }
            key.removeAll(keepingCapacity: true)
            unsafe key.append(contentsOf: entry.key.buffer)
            while let other = cursor.entry, other.dataset == scope.dataset,
                KeyRange.compare(other.key, key) == 0
            {
                try cursor.advance()
            }
            let found = try key.withBytes { (key) throws(StoreError) -> Entry? in
                try Self.find(key, in: scope, &finder!)
            }
            if let found, includingDeleted || found.isLive(at: scope.now) {
                return try body(found, finder!.tables)
            }
        }
        return nil
    }
}
