/// What a transaction has read of one dataset and means to write to it.
final class TransactionScope {
    let dataset: Dataset
    var writes = TransactionWrites()
    /// The sync count of the live record that was found; 0 if there was none.
    var keysRead: [[UInt8]: UInt64] = [:]
    var rangesRead: [RangeRead] = []
    /// Of the dataset's records at the moment; known once something was read.
    private(set) var readID: DatasetID?

    init(_ dataset: Dataset) {
        self.dataset = dataset
    }

    /// - Throws: `datasetNotFound` if there was no such dataset at the moment.
    func id(at moment: Moment) throws(StoreError) -> DatasetID {
        if let readID { return readID }
        let id = try dataset.engine.scope(of: dataset.state, at: moment).id
        readID = id
        return id
    }
}

/// How far a walk over a range has come.
final class RangeRead {
    private let range: KeyRange
    private let order: ScanOrder
    private var reachedKey: [UInt8] = []
    private var hasReached = false
    /// Whether the walk has come to its end, so that it has seen that nothing else is there.
    var isComplete = false

    init(_ range: KeyRange, _ order: ScanOrder) {
        self.range = range
        self.order = order
    }

    func reach(_ key: ByteView) {
        hasReached = true
        reachedKey.removeAll(keepingCapacity: true)
        unsafe reachedKey.append(contentsOf: key.buffer)
    }

    /// What the walk has told about; nil if it has told nothing.
    var covered: KeyRange? {
        if isComplete { return range }
        guard hasReached else { return nil }
        switch order {
        case .forward: return KeyRange(from: range.lowerBound, through: reachedKey)
        case .backward: return KeyRange(from: reachedKey, upTo: range.upperBound)
        }
    }
}

/// The writes of a transaction to one dataset: the last one of each key.
struct TransactionWrites {
    struct Write {
        /// nil for a deletion.
        let value: [UInt8]?
        /// In milliseconds since 1970; 0 for a record that does not expire.
        let expiresAt: UInt64

        /// What a reader of that time finds; nil if there is nothing.
        func liveValue(at now: UInt64) -> [UInt8]? {
            expiresAt == 0 || expiresAt > now ? value : nil
        }
    }

    private var writes: [[UInt8]: Write] = [:]
    /// The keys in the order of their first writes.
    private var keys: [[UInt8]] = []
    /// The keys in their order; nil when another one has come since.
    private var sortedKeys: [[UInt8]]?

    var count: Int { keys.count }

    /// nil if the key was not written.
    subscript(key: [UInt8]) -> Write? { writes[key] }

    /// - Parameter value: nil for a deletion.
    mutating func set(_ value: [UInt8]?, for key: [UInt8], expiresAt: UInt64 = 0) {
        let write = Write(value: value, expiresAt: expiresAt)
        if writes.updateValue(write, forKey: key) == nil {
            keys.append(key)
            sortedKeys = nil
        }
    }

    func add(to batch: inout WriteBatch, in dataset: Dataset) {
        for key in keys {
            guard let write = writes[key] else { continue }
            if let value = write.value {
                batch.put(value, for: key, in: dataset, expiresAt: write.expiresAt)
            } else {
                batch.delete(key, in: dataset)
            }
        }
    }

    /// A write as a walk meets it.
    struct Step {
        let key: [UInt8]
        /// nil if there is nothing.
        let value: [UInt8]?
        let expiresAt: UInt64
    }

    /// The writes within a range in the order of a walk, as of a time in milliseconds since 1970.
    /// O(w log w) for w writes at most.
    mutating func sorted(in range: KeyRange, order: ScanOrder, now: UInt64) -> [Step] {
        guard !keys.isEmpty else { return [] }
        let sorted = sortedKeys ?? keys.sorted { $0.lexicographicallyPrecedes($1) }
        sortedKeys = sorted
        let within = sorted.filter { range.contains($0) }
        return (order == .forward ? within : within.reversed()).map { key in
            Step(
                key: key, value: writes[key]?.liveValue(at: now),
                expiresAt: writes[key]?.expiresAt ?? 0)
        }
    }
}
