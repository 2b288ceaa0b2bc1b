/// Sealed segments that together are one sorted sequence: each entry of one stands before all of
/// the next. A run that is small is one segment; a large one is cut, so that the memory for making
/// a segment is bounded whatever the size of the store.
@safe
final class SegmentRun: @unchecked Sendable {
    // Unchecked: `first` is a reference that `segments` holds.

    /// In the order of their entries.
    let segments: [SealedSegment]
    private let isSingle: Bool
    private let first: Unmanaged<SealedSegment>
    private let bounds = LazyReference<RunBounds>()

    init(_ segments: [SealedSegment]) {
        precondition(!segments.isEmpty, "a run without a segment")
        self.segments = segments
        isSingle = segments.count == 1
        unsafe first = .passUnretained(segments[0])
    }

    var fileSize: UInt64 { segments.reduce(0) { $0 + $1.fileSize } }

    /// The index of the segment in which a search for the position must begin. O(log n).
    func index(of position: EntryPosition) throws(StoreError) -> Int {
        if try isDecidedByFirst(position) { return 0 }
        var low = 0
        var high = segments.count
        while low < high {
            let middle = (low + high) / 2
            let directory = try segments[middle].parts().directory
            if directory.blockCount > 0, directory.position(of: 0).compare(position) > 0 {
                high = middle
            } else {
                low = middle + 1
            }
        }
        return max(0, low - 1)
    }

    @inline(__always)
    func newest(
        of key: ByteView, in dataset: DatasetID, hash: UInt64
    ) throws(StoreError) -> FoundEntry? {
        guard isSingle else { return try newestOfMany(of: key, in: dataset, hash: hash) }
        return try unsafe first.withBorrowed { (segment) throws(StoreError) in
            try segment.newest(of: key, in: dataset, hash: hash)
        }
    }

    /// Has the processor fetch what a search for a key looks at first.
    @inline(__always)
    func prefetch(_ key: ByteView, in dataset: DatasetID, hash: UInt64) {
        if isSingle {
            unsafe first._withUnsafeGuaranteedRef { $0.prefetch(hash: hash) }
        } else if let known = unsafe bounds.reference {
            unsafe known._withUnsafeGuaranteedRef { $0.prefetch(key, in: dataset, hash: hash) }
        }
    }

    /// Has the processor fetch the entry that a search for a key comes to first. False if there is
    /// none, as far as that is known without touching the disk.
    @inline(__always)
    func prefetchEntry(of key: ByteView, in dataset: DatasetID, hash: UInt64) -> Bool {
        if isSingle {
            return unsafe first._withUnsafeGuaranteedRef { $0.prefetchEntry(hash: hash) }
        }
        guard let known = unsafe bounds.reference else { return false }
        return unsafe known._withUnsafeGuaranteedRef {
            $0.prefetchEntry(of: key, in: dataset, hash: hash)
        }
    }

    private func newestOfMany(
        of key: ByteView, in dataset: DatasetID, hash: UInt64
    ) throws(StoreError) -> FoundEntry? {
        guard let known = unsafe bounds.reference else {
            if try isDecidedByFirst(EntryPosition(before: key, in: dataset)) {
                return try segments[0].newest(of: key, in: dataset, hash: hash)
            }
            return try loadedBounds().newest(of: key, in: dataset, hash: hash)
        }
        return try unsafe known.withBorrowed { (bounds) throws(StoreError) in
            try bounds.newest(of: key, in: dataset, hash: hash)
        }
    }

    /// Whether the position is not behind the first segment. Asked as long as nobody had to touch
    /// all segments for their bounds: what a store looks for when it is opened stands in front, so
    /// opening takes no longer for a run of many.
    private func isDecidedByFirst(_ position: EntryPosition) throws(StoreError) -> Bool {
        guard !isSingle, unsafe bounds.reference == nil else { return isSingle }
        let directory = try segments[0].parts().directory
        return directory.position(of: directory.blockCount).compare(position) >= 0
    }

    private func loadedBounds() throws(StoreError) -> RunBounds {
        try bounds.object { () throws(StoreError) in try RunBounds(segments) }
    }
}

/// Where each segment of a run begins, at hand for readers of single records.
@safe
private final class RunBounds: @unchecked Sendable {
    // Unchecked: the bare references are to segments of the run that holds this.

    private struct Start {
        let dataset: DatasetID
        let key: [UInt8]
    }

    private let starts: [Start]
    private let segments: [Unmanaged<SealedSegment>]

    init(_ segments: [SealedSegment]) throws(StoreError) {
        var starts: [Start] = []
        for segment in segments {
            let first = try segment.parts().directory.position(of: 0)
            starts.append(Start(dataset: first.dataset, key: first.key.array))
        }
        self.starts = starts
        unsafe self.segments = segments.map { unsafe .passUnretained($0) }
    }

    /// Negative if the segment begins before every version of the key, 0 if with one.
    @inline(__always)
    private func compare(_ index: Int, _ key: ByteView, _ dataset: DatasetID) -> Int {
        let start = starts[index].dataset
        if start != dataset { return start < dataset ? -1 : 1 }
        return unsafe starts[index].key.withUnsafeBytes { unsafe ByteView($0).compare(key) }
    }

    /// The first segment that begins with a version of the key, or behind all of them.
    private func lowerBound(_ key: ByteView, in dataset: DatasetID) -> Int {
        var low = 0
        var high = starts.count
        while low < high {
            let middle = (low + high) / 2
            if compare(middle, key, dataset) < 0 { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Of the segment that is searched first.
    func prefetch(_ key: ByteView, in dataset: DatasetID, hash: UInt64) {
        let first = max(0, lowerBound(key, in: dataset) - 1)
        unsafe segments[first]._withUnsafeGuaranteedRef { $0.prefetch(hash: hash) }
    }

    func prefetchEntry(of key: ByteView, in dataset: DatasetID, hash: UInt64) -> Bool {
        let first = max(0, lowerBound(key, in: dataset) - 1)
        return unsafe segments[first]._withUnsafeGuaranteedRef { $0.prefetchEntry(hash: hash) }
    }

    func newest(
        of key: ByteView, in dataset: DatasetID, hash: UInt64
    ) throws(StoreError) -> FoundEntry? {
        let low = lowerBound(key, in: dataset)
        // The newest version may be the last entry of one segment, or the first of the next.
        if low > 0, let found = try find(low - 1, key, dataset, hash) { return found }
        guard low < starts.count, compare(low, key, dataset) == 0 else { return nil }
        return try find(low, key, dataset, hash)
    }

    private func find(
        _ index: Int, _ key: ByteView, _ dataset: DatasetID, _ hash: UInt64
    ) throws(StoreError) -> FoundEntry? {
        try unsafe segments[index].withBorrowed { (segment) throws(StoreError) in
            try segment.newest(of: key, in: dataset, hash: hash)
        }
    }
}

/// Walks over the entries of a run, either way.
struct RunCursor {
    private let run: SegmentRun
    private let skipped: SkippedBlocks
    private var index = 0
    private var cursor: SegmentCursor

    /// - Parameter skipped: blocks of which nothing is read; see ``SegmentCursor``.
    init(_ run: SegmentRun, skipping skipped: SkippedBlocks = [:]) throws(StoreError) {
        self.run = run
        self.skipped = skipped
        let first = run.segments[0]
        cursor = try SegmentCursor(first, skipping: skipped[first.number] ?? [])
    }

    @inline(__always)
    var entry: Entry? { cursor.entry }

    var tables: VersionTables { cursor.parts.tables }

    private mutating func enter(_ number: Int) throws(StoreError) {
        guard index != number else { return }
        let segment = run.segments[number]
        cursor = try SegmentCursor(segment, skipping: skipped[segment.number] ?? [])
        index = number
    }

    mutating func seek(to position: EntryPosition) throws(StoreError) {
        if run.segments.count > 1 { try enter(try run.index(of: position)) }
        try cursor.seek(to: position)
        try goOnForward()
    }

    mutating func seek(before position: EntryPosition) throws(StoreError) {
        if run.segments.count > 1 { try enter(try run.index(of: position)) }
        try cursor.seek(before: position)
        try goOnBack()
    }

    @inline(__always)
    mutating func stepForward() throws(StoreError) {
        try cursor.stepForward()
        if cursor.entry == nil { try goOnForward() }
    }

    mutating func stepBack() throws(StoreError) {
        try cursor.stepBack()
        try goOnBack()
    }

    private mutating func goOnForward() throws(StoreError) {
        while cursor.entry == nil, index + 1 < run.segments.count {
            try enter(index + 1)
            try cursor.seek(to: EntryPosition(before: .empty, in: 0))
        }
    }

    private mutating func goOnBack() throws(StoreError) {
        while cursor.entry == nil, index > 0 {
            try enter(index - 1)
            try cursor.seekToEnd()
        }
    }
}
