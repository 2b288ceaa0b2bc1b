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
    private var values: [[UInt8]: [UInt8]?] = [:]
    /// The keys in the order of their first writes.
    private var keys: [[UInt8]] = []
    /// The keys in their order; nil when another one has come since.
    private var sortedKeys: [[UInt8]]?

    var count: Int { keys.count }

    /// nil if the key was not written, `.some(nil)` if it was deleted.
    subscript(key: [UInt8]) -> [UInt8]?? { values[key] }

    /// - Parameter value: nil for a deletion.
    mutating func set(_ value: [UInt8]?, for key: [UInt8]) {
        if values.updateValue(value, forKey: key) == nil {
            keys.append(key)
            sortedKeys = nil
        }
    }

    func add(to batch: inout WriteBatch, in dataset: Dataset) {
        for key in keys {
            if let value = values[key] ?? nil {
                batch.put(value, for: key, in: dataset)
            } else {
                batch.delete(key, in: dataset)
            }
        }
    }

    struct Write {
        let key: [UInt8]
        let value: [UInt8]?
    }

    /// The writes within a range in the order of a walk. O(w log w) for w writes at most.
    mutating func sorted(in range: KeyRange, order: ScanOrder) -> [Write] {
        guard !keys.isEmpty else { return [] }
        let sorted = sortedKeys ?? keys.sorted { $0.lexicographicallyPrecedes($1) }
        sortedKeys = sorted
        let within = sorted.filter { range.contains($0) }
        return (order == .forward ? within : within.reversed())
            .map { Write(key: $0, value: values[$0] ?? nil) }
    }
}
