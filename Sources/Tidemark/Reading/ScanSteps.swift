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
    /// Knows how to jump over dead records and notes where that can be done; nil where nothing
    /// shall be jumped over.
    private var stretch: DeadStretch?
    /// Whether nothing was given out since the start, or since a dead record was passed over.
    private var isInStretch = false
    /// Dead records since one was given out.
    private var passedCount = 0

    /// - Parameter keeper: whose memory of gaps to use; nil where dead records count, and where
    ///   the caller holds the writer lock.
    init(
        _ moment: Moment, dataset: DatasetID, range: KeyRange, order: ScanOrder,
        includingDeleted: Bool, gapsOf keeper: (any GapKeeper)? = nil
    ) throws(StoreError) {
        self.moment = moment
        self.dataset = dataset
        self.order = order
        self.includingDeleted = includingDeleted
        lowerBound = range.lowerBound
        upperBound = range.upperBound
        if !includingDeleted, let keeper {
            stretch = DeadStretch(keeper, moment, dataset: dataset, range: range, order: order)
            isInStretch = true
        }
        let start =
            stretch?.startBehindGap()
            ?? (order == .forward
                ? KeyPosition(dataset: dataset, key: range.lowerBound ?? [])
                : KeyPosition(endOf: range, in: dataset))
        if order == .forward, let run = moment.view.onlyRun {
            cursor = MergeCursor(memtables: [], runs: [], order: order)
            runScan = try RunScan(
                run, dataset: dataset, from: start, upTo: range.upperBound,
                includingDeleted: includingDeleted, now: moment.now,
                pausesInGaps: stretch != nil)
            return
        }
        cursor = try MergeCursor(moment.view, order: order, of: dataset, in: range)
        try start.withPosition { (position) throws(StoreError) in try cursor.seek(position) }
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
        guard runScan != nil else { return try nextForward() }
        guard let entry = try runScan!.next() else { return try nextBehindGap() }
        if isInStretch { endStretch(at: entry.key) }
        return entry
    }

    /// Goes on in the run after a pause, or ends.
    @inline(never)
    private mutating func nextBehindGap() throws(StoreError) -> Entry? {
        while let key = runScan!.resume() {
            isInStretch = true
            passedCount += runScan!.pausedCount
            if let position = stretch?.goOn(from: key) {
                try position.withPosition { (position) throws(StoreError) in
                    try runScan!.seek(to: position)
                }
            }
            if let entry = try runScan!.next() {
                endStretch(at: entry.key)
                return entry
            }
        }
        if isInStretch { endStretch(at: nil) }
        return nil
    }

    /// Passes over a dead record, or over a whole gap. Returns whether the cursor was moved.
    @inline(__always)
    private mutating func passOver(_ key: ByteView) throws(StoreError) -> Bool {
        isInStretch = true
        passedCount &+= 1
        guard passedCount % GapMemory.passedMin == 0 else { return false }
        return try jump(from: key)
    }

    @inline(never)
    private mutating func jump(from key: ByteView) throws(StoreError) -> Bool {
        guard let position = stretch?.goOn(from: key) else { return false }
        try position.withPosition { (position) throws(StoreError) in try cursor.seek(position) }
        return true
    }

    /// At a live record, or at the end of the walk.
    @inline(never)
    private mutating func endStretch(at key: ByteView?) {
        stretch?.end(at: key, passedCount: passedCount)
        isInStretch = false
        passedCount = 0
    }

    /// The cursor stays at the entry until the next call.
    private mutating func nextForward() throws(StoreError) -> Entry? {
        if hasGiven {
            hasGiven = false
            try cursor.advancePastKey()
        }
        while let entry = cursor.entry, entry.dataset == dataset {
            if let upperBound, Self.compare(entry.key, upperBound) >= 0 { break }
            if entry.sequence > moment.sequenceMax {
                try cursor.advance()
            } else if includingDeleted || entry.isLive(at: moment.now) {
                if isInStretch { endStretch(at: entry.key) }
                hasGiven = true
                return entry
            } else if try !passOver(entry.key) {
                try cursor.advancePastKey()
            }
        }
        if isInStretch { endStretch(at: nil) }
        return nil
    }

    /// Backwards the versions of a key come oldest first, so the newest visible one is known only
    /// when the key changes: it is looked up, and the cursor passes over the rest.
    private mutating func nextBackward<Result>(
        _ body: (Entry, VersionTables) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        while let entry = cursor.entry, entry.dataset == dataset {
            if let lowerBound, Self.compare(entry.key, lowerBound) < 0 { break }
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
            if result == nil, try passOver(entry.key) { continue }
            if result != nil, isInStretch {
                let key = decidedKey
                unsafe key.withUnsafeBytes { unsafe endStretch(at: ByteView($0)) }
            }
            // From a record that is given out the next call goes on, and fails if it cannot: the
            // record is not lost by it.
            if let result { return result }
            try cursor.advance()
        }
        if isInStretch { endStretch(at: nil) }
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
