import Tidemark

/// The keys of what is held of a dataset, for transactions that must not overwrite it unread: what
/// comes to be held before the end of one that has asked is in conflict with it.
struct HeldKeys {
    private let book: Dataset
    private let range: KeyRange
    /// By the names under which the writes were found.
    private var keys: [[UInt8]: [UInt8]] = [:]

    /// O(1).
    ///
    /// - Throws: as ``QuarantineBook/note(holding:)``: the list is made if nothing was ever held
    ///   here, since what is not there cannot be read.
    init(_ dataset: Dataset) throws(StoreError) {
        book = try dataset.store.systemDataset(.quarantine)
        range = .prefix(SystemDataset.prefix(of: dataset.name))
    }

    /// Whether any write to a key is held as the transaction sees it. All that is held of the
    /// dataset counts as read. O(held), and the value of each is read once.
    mutating func contains(
        _ key: [UInt8], _ transaction: Transaction
    ) throws(StoreError) -> Bool {
        let cursor = try transaction.keys(of: book, in: range)
        var isHeld = false
        while let name = try cursor.next() {
            if keys[name] == nil {
                let held = QuarantineBook.record(
                    decoding: try transaction.get(name, in: book) ?? [])
                // What cannot be read again is as good as lost.
                keys[name] = held?.key ?? []
            }
            isHeld = isHeld || keys[name] == key
        }
        return isHeld
    }
}
