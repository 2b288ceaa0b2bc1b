/// A named map of records inside a store: the unit of sync.
///
/// A light handle, good for as long as its store is open; make as many as you like, and use them
/// from any thread. If the dataset is deleted, calls throw `datasetNotFound` until one of the
/// same name is made again.
public final class Dataset: Sendable {
    public let store: Store
    let state: DatasetState
    /// The store's: at hand here, so that a read counts no reference to it.
    let engine: Engine

    init(_ state: DatasetState, in store: Store) {
        self.state = state
        self.store = store
        engine = store.engine
    }

    public var name: String { state.name }
}

// MARK: - Writing

extension Dataset {
    /// Puts a value.
    ///
    /// - Parameters:
    ///   - value: 0...256 MiB. An empty value is not a missing one.
    ///   - key: 1...65,535 bytes.
    ///   - durability: in place of the store's own.
    /// - Returns: the name of the write.
    /// - Throws: `invalidArgument`, `datasetNotFound`, `diskFull`, `inputOutput`; `writerStopped`
    ///   once a write or sync has failed.
    @discardableResult
    public func put(
        _ value: [UInt8], for key: [UInt8], durability: Durability? = nil
    ) throws(StoreError) -> Dot {
        try write(.put, key, value, expected: nil, durability)
    }

    /// Puts a text as UTF-8.
    @discardableResult
    public func put(
        _ value: String, for key: String, durability: Durability? = nil
    ) throws(StoreError) -> Dot {
        try put(Array(value.utf8), for: Array(key.utf8), durability: durability)
    }

    /// Compare-and-set: puts only if the live record is the one that the given write made, or,
    /// for nil, only if there is no live record.
    ///
    /// - Throws: `versionMismatch` if it is not, and what `put` throws.
    @discardableResult
    public func put(
        _ value: [UInt8], for key: [UInt8], ifAt expected: Dot?, durability: Durability? = nil
    ) throws(StoreError) -> Dot {
        try write(.put, key, value, expected: .some(expected), durability)
    }

    /// Deletes a record, leaving a tombstone, also where there was none: a peer may have one.
    @discardableResult
    public func delete(
        _ key: [UInt8], durability: Durability? = nil
    ) throws(StoreError) -> Dot {
        try write(.delete, key, [], expected: nil, durability)
    }

    @discardableResult
    public func delete(_ key: String, durability: Durability? = nil) throws(StoreError) -> Dot {
        try delete(Array(key.utf8), durability: durability)
    }

    /// Deletes only if the live record is the one that the given write made.
    /// - Throws: `versionMismatch` if it is not, and what `put` throws.
    @discardableResult
    public func delete(
        _ key: [UInt8], ifAt expected: Dot?, durability: Durability? = nil
    ) throws(StoreError) -> Dot {
        try write(.delete, key, [], expected: .some(expected), durability)
    }

    /// Deletes every live record in one atomic batch of tombstones. O(n).
    public func clear() throws(StoreError) {
        let cursor = try records()
        var batch = WriteBatch()
        while let key = try cursor.next({ entry, _ in entry.key.array }) {
            batch.delete(key, in: self)
        }
        guard !batch.isEmpty else {
            // That there is nothing is acknowledged, too: it lasts as long as what made it so.
            return try engine.acknowledgePresent()
        }
        try store.write(batch)
    }

    private func write(
        _ kind: EntryKind, _ key: [UInt8], _ value: [UInt8], expected: Dot??,
        _ durability: Durability?
    ) throws(StoreError) -> Dot {
        try key.withBytes { (key) throws(StoreError) in
            try value.withBytes { (value) throws(StoreError) in
                try write(kind, key, value, expected: expected, durability)
            }
        }
    }

    func write(
        _ kind: EntryKind, _ key: ByteView, _ value: ByteView, expected: Dot??,
        _ durability: Durability?, expiresAt: UInt64 = 0
    ) throws(StoreError) -> Dot {
        let staged = StagedWrite(
            state: state, kind: kind, key: key, value: value, expected: expected,
            expiresAt: expiresAt)
        let dot = try engine.commit(staged, durability: durability)
        engine.waiters.wakeAll(for: state.name)
        return dot
    }
}

// MARK: - Reading

extension Dataset {
    /// The value of a key; nil if there is no live record.
    /// - Throws: `datasetNotFound`, `closed`, `corruption`, `inputOutput`.
    public func get(_ key: [UInt8]) throws(StoreError) -> [UInt8]? {
        try key.withBytes { (key) throws(StoreError) in
            try engine.withValue(of: key, in: state) { (value) throws(StoreError) in
                value?.array
            }
        }
    }

    public func get(_ key: String) throws(StoreError) -> [UInt8]? {
        try get(Array(key.utf8))
    }

    /// The value of a key as text; nil if there is no live record.
    /// - Throws: `invalidArgument` if the value is not UTF-8, and what `get` throws.
    public func text(_ key: String) throws(StoreError) -> String? {
        guard let value = try get(key) else { return nil }
        guard let text = String(validating: value, as: UTF8.self) else {
            throw StoreError(
                .invalidArgument,
                "the value of \(key.debugDescription) is not UTF-8; read it with `get`")
        }
        return text
    }

    /// Hands out the value of a key where it lies, without a copy; nil if there is no live record.
    ///
    /// - Parameter body: called once; the span is valid during the call.
    public func withValue<Result>(
        for key: [UInt8], _ body: (RawSpan?) -> Result
    ) throws(StoreError) -> Result {
        try key.withBytes { (key) throws(StoreError) in
            try withValue(of: key, body)
        }
    }

    func withValue<Result>(
        of key: ByteView, _ body: (RawSpan?) -> Result
    ) throws(StoreError) -> Result {
        try engine.withValue(of: key, in: state) { (value) throws(StoreError) in
            guard let value else { return body(nil) }
            return body(unsafe value.buffer.bytes)
        }
    }

    public func contains(_ key: [UInt8]) throws(StoreError) -> Bool {
        try key.withBytes { (key) throws(StoreError) in try contains(key) }
    }

    func contains(_ key: ByteView) throws(StoreError) -> Bool {
        try engine.contains(key, in: state)
    }

    public func contains(_ key: String) throws(StoreError) -> Bool {
        try contains(Array(key.utf8))
    }

    /// The record of a key with its version.
    ///
    /// - Parameter includingDeleted: whether to give the tombstone of a deleted record.
    public func record(
        for key: [UInt8], includingDeleted: Bool = false
    ) throws(StoreError) -> Record? {
        let moment = try engine.moment()
        return try key.withBytes { (key) throws(StoreError) in
            try engine.record(
                of: key, in: state, at: moment, includingDeleted: includingDeleted)
        }
    }

    public func record(
        for key: String, includingDeleted: Bool = false
    ) throws(StoreError) -> Record? {
        try record(for: Array(key.utf8), includingDeleted: includingDeleted)
    }

    /// Records in the order of their keys, as of the moment of the call.
    ///
    /// - Parameter limit: the number of records at most; nil for no bound.
    public func records(
        in range: KeyRange = .all, order: ScanOrder = .forward, limit: Int? = nil,
        includingDeleted: Bool = false
    ) throws(StoreError) -> RecordCursor {
        let (steps, dirtiness) = try steps(
            in: range, order: order, includingDeleted: includingDeleted)
        return RecordCursor(steps, dirtiness, limit: limit)
    }

    /// A walk of the present moment, for which no snapshot need be made.
    func steps(
        in range: KeyRange, order: ScanOrder, includingDeleted: Bool
    ) throws(StoreError) -> (steps: ScanSteps, dirtiness: Dirtiness) {
        let (moment, scope) = try engine.momentAndScope(of: state)
        let steps = try ScanSteps(
            moment, dataset: scope.id, range: range, order: order,
            includingDeleted: includingDeleted, gapsOf: engine)
        return (steps, scope.dirtiness)
    }

    /// The number of live records. O(n).
    public func count() throws(StoreError) -> Int {
        try size().recordCount
    }

    /// How much the live records hold. O(n).
    public func size() throws(StoreError) -> DatasetSize {
        let cursor = try records()
        var size = DatasetSize()
        while let (key, value) = try cursor.next({ entry, _ in
            (entry.key.count, entry.valueCount)
        }) {
            size.recordCount += 1
            size.keyBytes += key
            size.valueBytes += value
        }
        return size
    }
}

/// How much the live records of a dataset hold.
public struct DatasetSize: Hashable, Sendable {
    public var recordCount = 0
    public var keyBytes = 0
    public var valueBytes = 0

    public init() {}
}
