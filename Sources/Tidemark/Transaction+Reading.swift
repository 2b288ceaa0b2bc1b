/// A record as a transaction sees it.
public struct TransactionRecord: Hashable, Sendable {
    public let key: [UInt8]
    public let value: [UInt8]
    /// nil if the transaction itself has put the value: it gets a version by the commit.
    public let version: Version?
    /// When the record counts as deleted, in milliseconds since 1970-01-01 UTC; nil if it does not
    /// expire.
    public let expiresAt: UInt64?

    /// - Parameter expiresAt: 0 for never.
    init(key: [UInt8], value: [UInt8], version: Version?, expiresAt: UInt64) {
        self.key = key
        self.value = value
        self.version = version
        self.expiresAt = expiresAt > 0 ? expiresAt : nil
    }

    /// The key as text; nil if it is not UTF-8.
    public var keyText: String? { String(validating: key, as: UTF8.self) }

    /// The value as text; nil if it is not UTF-8.
    public var valueText: String? { String(validating: value, as: UTF8.self) }
}

extension Transaction {
    /// The value of a key; nil if there is no live record.
    /// - Throws: `datasetNotFound` if there was no such dataset at the beginning, `closed`,
    ///   `corruption`, `inputOutput`.
    public func get(_ key: [UInt8], in dataset: Dataset) throws(StoreError) -> [UInt8]? {
        try read(key, in: dataset) { value, _, _ in value?.array }
    }

    public func get(_ key: String, in dataset: Dataset) throws(StoreError) -> [UInt8]? {
        try get(Array(key.utf8), in: dataset)
    }

    /// The value of a key as text; nil if there is no live record.
    /// - Throws: `invalidArgument` if the value is not UTF-8, and what ``get(_:in:)-([UInt8],_)``
    ///   throws.
    public func text(_ key: String, in dataset: Dataset) throws(StoreError) -> String? {
        guard let value = try get(key, in: dataset) else { return nil }
        guard let text = String(validating: value, as: UTF8.self) else {
            throw StoreError(
                .invalidArgument,
                "the value of \(key.debugDescription) is not UTF-8; read it with `get`")
        }
        return text
    }

    /// Whether there is a live record. The answer counts as read, not the value.
    public func contains(_ key: [UInt8], in dataset: Dataset) throws(StoreError) -> Bool {
        try read(key, in: dataset, isValueWanted: false) { value, _, _ in value != nil }
    }

    public func contains(_ key: String, in dataset: Dataset) throws(StoreError) -> Bool {
        try contains(Array(key.utf8), in: dataset)
    }

    /// Hands out the value of a key where it lies, without a copy; nil if there is no live record.
    ///
    /// - Parameter body: called once; the span is valid during the call.
    public func withValue<Result>(
        for key: [UInt8], in dataset: Dataset, _ body: (RawSpan?) -> Result
    ) throws(StoreError) -> Result {
        try read(key, in: dataset) { value, _, _ in
            guard let value else { return body(nil) }
            return body(unsafe value.buffer.bytes)
        }
    }

    /// The record of a key with its version; nil if there is no live record.
    public func record(
        for key: [UInt8], in dataset: Dataset
    ) throws(StoreError) -> TransactionRecord? {
        try read(key, in: dataset) { value, version, expiresAt in
            value.map {
                TransactionRecord(
                    key: key, value: $0.array, version: version(), expiresAt: expiresAt)
            }
        }
    }

    public func record(
        for key: String, in dataset: Dataset
    ) throws(StoreError) -> TransactionRecord? {
        try record(for: Array(key.utf8), in: dataset)
    }

    /// Records in the order of their keys: those of the moment, and over them what the transaction
    /// has written before this call. The range counts as read as far as the cursor is walked.
    ///
    /// - Parameter limit: the number of records at most; nil for no bound.
    public func records(
        of dataset: Dataset, in range: KeyRange = .all, order: ScanOrder = .forward,
        limit: Int? = nil
    ) throws(StoreError) -> TransactionCursor {
        TransactionCursor(
            try steps(of: dataset, in: range, order: order), limit: limit)
    }

    func steps(
        of dataset: Dataset, in range: KeyRange, order: ScanOrder, isKeysOnly: Bool = false
    ) throws(StoreError) -> TransactionSteps {
        let moment = try opened()
        let scope = try scope(of: dataset)
        let id = try scope.id(at: moment)
        let base = try ScanSteps(
            moment, dataset: id, range: range, order: order, includingDeleted: false,
            gapsOf: dataset.engine)
        let read = RangeRead(range, order)
        scope.rangesRead.append(read)
        return TransactionSteps(
            base, own: scope.writes.sorted(in: range, order: order, now: moment.now),
            order: order, read: read, isKeysOnly: isKeysOnly)
    }

    /// Looks a key up in the transaction's own writes, and then in its moment, and notes what was
    /// found there.
    ///
    /// - Parameter isValueWanted: false if it is enough to know whether there is one.
    private func read<Result>(
        _ key: [UInt8], in dataset: Dataset, isValueWanted: Bool = true,
        _ body: (
            _ value: ByteView?, _ version: () -> Version?, _ expiresAt: UInt64
        ) -> Result
    ) throws(StoreError) -> Result {
        let moment = try opened()
        let scope = try scope(of: dataset)
        if let own = scope.writes[key] {
            guard let value = own.liveValue(at: moment.now) else { return body(nil, { nil }, 0) }
            return try value.withBytes { (value) throws(StoreError) in
                body(value, { nil }, own.expiresAt)
            }
        }
        let id = try scope.id(at: moment)
        return try key.withBytes { (view) throws(StoreError) -> Result in
            try moment.view.withNewest(of: view, in: id, sequenceMax: moment.sequenceMax) {
                (entry, tables) throws(StoreError) -> Result in
                guard let entry, let tables, entry.isLive(at: moment.now) else {
                    scope.keysRead[key] = 0
                    return body(nil, { nil }, 0)
                }
                scope.keysRead[key] = entry.syncCount
                guard isValueWanted else { return body(.empty, { nil }, entry.expiresAt) }
                return try tables.withValue(of: entry) { (value) throws(StoreError) in
                    body(value, { tables.version(of: entry) }, entry.expiresAt)
                }
            }
        }
    }
}
