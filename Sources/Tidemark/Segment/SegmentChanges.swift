/// Walks over the changes of one dataset in one segment, from a sync count on.
struct SegmentChanges {
    let parts: SegmentParts
    private let dataset: DatasetID
    private let since: UInt64
    private var row: Int
    private var changes: [Change] = []
    /// In `changes`.
    private var place = 0
    private var isAtEnd = false

    init(_ parts: SegmentParts, of dataset: DatasetID, since: UInt64) {
        self.parts = parts
        self.dataset = dataset
        self.since = since
        row = parts.changeRow(of: dataset, after: since)
    }

    /// The next change; nil if there is none.
    mutating func peek() throws(StoreError) -> Change? {
        while !isAtEnd {
            while place < changes.count {
                let change = changes[place]
                if change.dataset == dataset, change.syncCount > since { return change }
                if change.dataset > dataset {
                    isAtEnd = true
                    return nil
                }
                place += 1
            }
            guard row < parts.changeBlockCount, parts.changeRow(row).dataset <= dataset else {
                isAtEnd = true
                return nil
            }
            changes = try parts.changes(parts.changeRow(row))
            place = 0
            row += 1
        }
        return nil
    }

    /// Passes over the change that ``peek()`` gave.
    mutating func pop() {
        place += 1
    }

    /// The change that comes so many after the next one, if it was read with that.
    @inline(__always)
    func ahead(_ count: Int) -> Change? {
        let index = place + count
        return index < changes.count ? changes[index] : nil
    }
}

extension SegmentParts {
    /// Hands out the entry that a change names.
    /// - Throws: `corruption` if there is no such entry.
    func withEntry<Result>(
        of change: Change, _ body: (Entry) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        let found = try entry(at: change.place)
        defer { found?.release() }
        guard let entry = found?.entry, entry.dataset == change.dataset,
            entry.syncCount == change.syncCount
        else {
            throw damaged(
                "the change index names an entry that is not there",
                at: directory.offset(of: min(change.place.block, directory.blockCount)))
        }
        return try body(entry)
    }
}
