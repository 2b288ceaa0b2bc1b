/// A place in the order of all keys of all datasets, with bytes of its own: before all versions of
/// one key.
struct KeyPosition {
    let dataset: DatasetID
    let key: [UInt8]

    init(dataset: DatasetID, key: [UInt8]) {
        self.dataset = dataset
        self.key = key
    }

    /// Behind the last key of a range.
    init(endOf range: KeyRange, in dataset: DatasetID) {
        self.dataset = range.upperBound == nil ? dataset &+ 1 : dataset
        key = range.upperBound ?? []
    }

    /// Before everything.
    static let first = KeyPosition(dataset: 0, key: [])

    /// Whether an entry stands before it.
    @inline(__always)
    func isBehind(_ entry: Entry) -> Bool {
        entry.dataset != dataset
            ? entry.dataset < dataset : KeyRange.compare(entry.key, key) < 0
    }

    /// Whether a position stands before it.
    func isBehind(_ position: EntryPosition) -> Bool {
        position.dataset != dataset
            ? position.dataset < dataset : KeyRange.compare(position.key, key) < 0
    }

    func withPosition<Result>(
        _ body: (EntryPosition) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        try key.withBytes { (key) throws(StoreError) in
            try body(EntryPosition(before: key, in: dataset))
        }
    }
}
