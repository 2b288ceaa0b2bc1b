/// The deletions that came last, as far as they were in one dataset: so that a long row of them in
/// the order of keys is looked through before a reader has to. See `Engine+Scouting.swift`.
///
/// Whatever came between them does not count, unless it was a deletion in another dataset. Takes a
/// comparison for each deletion, and remembers one key. Thread rule: under the writer lock.
struct DeletionRow {
    /// Deletions after which a row is looked at, and again after about as many more.
    static let lengthMin = 1_024
    /// From so many deletions on it is remembered where the row began. What came before that is
    /// passed over by readers, as are the last ones.
    private static let rememberedFrom = 16
    /// The last deletions of a row, by which it is told whether it goes in the order of keys: those
    /// in no order seem to once in 20,000 times.
    static let orderedMin = 8
    /// Changes of the dataset among which these must be.
    static let changesMax = 256

    private var dataset: DatasetID = 0
    private var count = 0
    /// When there is something to do next.
    private var nextCount = 0
    /// The key of the first deletion that counts.
    private(set) var start: [UInt8] = []

    /// Counts a deletion. Returns whether the row is to be looked at.
    @inline(__always)
    mutating func add(_ key: ByteView, in dataset: DatasetID) -> Bool {
        guard dataset == self.dataset else {
            self.dataset = dataset
            count = 1
            nextCount = Self.rememberedFrom
            return false
        }
        count &+= 1
        guard count >= nextCount else { return false }
        return isLong(with: key)
    }

    @inline(never)
    private mutating func isLong(with key: ByteView) -> Bool {
        guard count < Self.lengthMin else { return true }
        begin(at: key)
        return false
    }

    /// Counts anew, with a deletion that was counted already as the first that counts.
    mutating func begin(at key: ByteView) {
        start = key.array
        count = Self.rememberedFrom
        nextCount = Self.lengthMin
    }

    /// Puts off the next look, since there is nothing to be seen yet.
    mutating func wait() {
        nextCount = count + Self.changesMax
    }
}

extension Memtable {
    /// Whether the last deletions of a dataset came in the order of keys, upward or downward; nil
    /// if there are too few among its last changes to tell. O(``DeletionRow/changesMax``). Only
    /// under the writer lock.
    func deletesInOrder(_ dataset: DatasetID) -> Bool? {
        var node = unsafe tail(of: dataset)
        var later: ByteView?
        var (changeCount, deletionCount) = (0, 0)
        var (upwardCount, downwardCount) = (0, 0)
        while let current = unsafe node, changeCount < DeletionRow.changesMax,
            deletionCount < DeletionRow.orderedMin
        {
            let change = unsafe entry(of: current)
            changeCount += 1
            if change.kind == .delete {
                if let later {
                    let difference = change.key.compare(later)
                    upwardCount += difference < 0 ? 1 : 0
                    downwardCount += difference > 0 ? 1 : 0
                }
                later = change.key
                deletionCount += 1
            }
            unsafe node = current.pointee.previousChange
        }
        guard deletionCount == DeletionRow.orderedMin else { return nil }
        return max(upwardCount, downwardCount) == DeletionRow.orderedMin - 1
    }
}
