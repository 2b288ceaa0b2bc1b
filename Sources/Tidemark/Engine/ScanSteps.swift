/// Walks over the newest visible version of each key in a range.
struct ScanSteps {
    let moment: Moment
    private let dataset: DatasetID
    private let lowerBound: [UInt8]?
    private let upperBound: [UInt8]?
    let order: ScanOrder
    private let includingDeleted: Bool
    private var cursor: MergeCursor
    /// In place of the cursor where there is nothing to merge.
    private var runScan: RunScan?
    /// Backwards: the key that was decided last; its other versions are passed over.
    private var decidedKey: [UInt8] = []
    private var hasDecided = false
    /// Whether the entry at which the cursor stands was given out already.
    private var hasGiven = false

    init(
        _ moment: Moment, dataset: DatasetID, range: KeyRange, order: ScanOrder,
        includingDeleted: Bool
    ) throws(StoreError) {
        self.moment = moment
        self.dataset = dataset
        self.order = order
        self.includingDeleted = includingDeleted
        lowerBound = range.lowerBound
        upperBound = range.upperBound
        if order == .forward, let run = moment.view.onlyRun {
            cursor = MergeCursor(memtables: [], runs: [], order: order)
            runScan = try RunScan(
                run, dataset: dataset, from: range.lowerBound, upTo: range.upperBound,
                includingDeleted: includingDeleted, now: moment.now)
            return
        }
        cursor = try MergeCursor(moment.view, order: order)
        switch order {
        case .forward:
            try (lowerBound ?? []).withBytes { (key) throws(StoreError) in
                try cursor.seek(EntryPosition(before: key, in: dataset))
            }
        case .backward:
            if let upperBound {
                try upperBound.withBytes { (key) throws(StoreError) in
                    try cursor.seek(EntryPosition(before: key, in: dataset))
                }
            } else {
                try cursor.seek(EntryPosition(before: .empty, in: dataset &+ 1))
            }
        }
    }

    /// Hands the next entry to the body; nil at the end. The entry is valid during the call.
    @inline(__always)
    mutating func next<Result>(
        _ body: (Entry, VersionTables) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        guard order == .forward else { return try nextBackward(body) }
        guard let entry = try nextEntry() else { return nil }
        return try body(entry, tables)
    }

    /// Of the entry that a forward walk gave last.
    var tables: VersionTables { runScan?.tables ?? cursor.tables }

    /// The next entry of a forward walk, good until the next call. Not generic, so that the walk is
    /// compiled once and well, whatever the callers make of the entries.
    mutating func nextEntry() throws(StoreError) -> Entry? {
        if runScan != nil { return try runScan!.next() }
        return try nextForward()
    }

    /// The cursor stays at the entry until the next call.
    private mutating func nextForward() throws(StoreError) -> Entry? {
        if hasGiven {
            hasGiven = false
            try cursor.advancePastKey()
        }
        while let entry = cursor.entry, entry.dataset == dataset {
            if let upperBound, Self.compare(entry.key, upperBound) >= 0 { return nil }
            if entry.sequence > moment.sequenceMax {
                try cursor.advance()
            } else if includingDeleted || entry.isLive(at: moment.now) {
                hasGiven = true
                return entry
            } else {
                try cursor.advancePastKey()
            }
        }
        return nil
    }

    /// Backwards the versions of a key come oldest first, so the newest visible one is known only
    /// when the key changes: it is looked up, and the cursor passes over the rest.
    private mutating func nextBackward<Result>(
        _ body: (Entry, VersionTables) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        while let entry = cursor.entry, entry.dataset == dataset {
            if let lowerBound, Self.compare(entry.key, lowerBound) < 0 { return nil }
            guard !hasDecided || Self.compare(entry.key, decidedKey) != 0 else {
                try cursor.advance()
                continue
            }
            decide(entry.key)
            let isWanted = includingDeleted
            let result = try decidedKey.withBytes { (key) throws(StoreError) in
                try moment.view.withNewest(
                    of: key, in: dataset, sequenceMax: moment.sequenceMax
                ) { (newest, tables) throws(StoreError) -> Result? in
                    guard let newest, let tables, isWanted || newest.isLive(at: moment.now)
                    else {
                        return nil
                    }
                    return try body(newest, tables)
                }
            }
            try cursor.advance()
            if let result { return result }
        }
        return nil
    }

    private mutating func decide(_ key: ByteView) {
        hasDecided = true
        decidedKey.removeAll(keepingCapacity: true)
        unsafe decidedKey.append(contentsOf: key.buffer)
    }

    private static func compare(_ key: ByteView, _ other: [UInt8]) -> Int {
        unsafe other.withUnsafeBytes { unsafe key.compare(ByteView($0)) }
    }
}
