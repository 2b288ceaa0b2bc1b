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

    init(_ segments: [SealedSegment]) {
        precondition(!segments.isEmpty, "a run without a segment")
        self.segments = segments
        isSingle = segments.count == 1
        unsafe first = .passUnretained(segments[0])
    }

    var fileSize: UInt64 { segments.reduce(0) { $0 + $1.fileSize } }

    /// The index of the segment in which a search for the position must begin. O(log n).
    func index(of position: EntryPosition) throws(StoreError) -> Int {
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

    private func newestOfMany(
        of key: ByteView, in dataset: DatasetID, hash: UInt64
    ) throws(StoreError) -> FoundEntry? {
        // The newest version may be the last entry of one segment, or the first of the next.
        let index = try index(of: EntryPosition(before: key, in: dataset))
        if let found = try segments[index].newest(of: key, in: dataset, hash: hash) {
            return found
        }
        guard index + 1 < segments.count else { return nil }
        let next = try segments[index + 1].parts().directory.position(of: 0)
        guard next.dataset == dataset, next.key.equals(key) else { return nil }
        return try segments[index + 1].newest(of: key, in: dataset, hash: hash)
    }
}

/// Walks over the entries of a run, either way.
struct RunCursor {
    private let run: SegmentRun
    private var index = 0
    private var cursor: SegmentCursor

    init(_ run: SegmentRun) throws(StoreError) {
        self.run = run
        cursor = try SegmentCursor(run.segments[0])
    }

    @inline(__always)
    var entry: Entry? { cursor.entry }

    var tables: VersionTables { cursor.parts.tables }

    private mutating func enter(_ number: Int) throws(StoreError) {
        guard index != number else { return }
        index = number
        cursor = try SegmentCursor(run.segments[number])
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
