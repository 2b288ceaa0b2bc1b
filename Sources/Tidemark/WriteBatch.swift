/// Writes that take effect together: all of them or, after a crash, none.
///
/// The writes of a batch may go to any datasets of one store. If a key is written twice, both
/// writes are in the log and the later one stands.
///
/// A batch keeps all keys and values in one buffer. Whoever writes batch after batch empties one
/// with ``removeAll(keepingCapacity:)`` and fills it again, and then nothing is allocated.
public struct WriteBatch: Sendable {
    /// One write: where its bytes lie, and what it does.
    private struct Write: Sendable {
        /// The key begins here in `bytes`, and the value follows it.
        let keyOffset: Int
        /// In milliseconds since 1970; 0 for never.
        let expiresAt: UInt64
        // Counts that do not fit are beyond all bounds as the greatest number, too.
        let keyCount: UInt32
        let valueCount: UInt32
        /// The place in `datasets`.
        let dataset: UInt32
        /// The place in `conditions`, counted from 1; 0: unconditional.
        let condition: UInt32
        let kind: EntryKind
    }

    private var writes: [Write] = []
    /// The dot that a record must have; nil: no record may exist.
    private var conditions: [Dot?] = []
    private var bytes: [UInt8] = []
    /// The datasets in the order of their writes: one that is written to again after another
    /// stands there again.
    private(set) var datasets: [Dataset] = []
    /// Whether all writes are within their bounds, and none has a condition.
    private(set) var isPlain = true

    public init() {}

    /// The number of writes.
    public var count: Int { writes.count }

    public var isEmpty: Bool { writes.isEmpty }

    /// Forgets all writes.
    ///
    /// - Parameter keepingCapacity: whether to keep the memory for those that come next.
    public mutating func removeAll(keepingCapacity: Bool = false) {
        writes.removeAll(keepingCapacity: keepingCapacity)
        conditions.removeAll(keepingCapacity: keepingCapacity)
        isPlain = true
        bytes.removeAll(keepingCapacity: keepingCapacity)
        datasets.removeAll(keepingCapacity: keepingCapacity)
    }

    public mutating func put(_ value: [UInt8], for key: [UInt8], in dataset: Dataset) {
        // Bytes have no padding, which is what makes `bytes` of a span unsafe; so also below.
        unsafe put(value.span.bytes, for: key.span.bytes, in: dataset)
    }

    public mutating func put(_ value: String, for key: String, in dataset: Dataset) {
        put(Array(value.utf8), for: Array(key.utf8), in: dataset)
    }

    /// Puts a value that lies anywhere; key and value are copied into the batch.
    public mutating func put(_ value: RawSpan, for key: RawSpan, in dataset: Dataset) {
        append(.put, key, value, in: dataset, expected: nil)
    }

    public mutating func delete(_ key: [UInt8], in dataset: Dataset) {
        unsafe delete(key.span.bytes, in: dataset)
    }

    public mutating func delete(_ key: String, in dataset: Dataset) {
        delete(Array(key.utf8), in: dataset)
    }

    public mutating func delete(_ key: RawSpan, in dataset: Dataset) {
        append(.delete, key, RawSpan(), in: dataset, expected: nil)
    }

    /// Puts only if the record is still at the version with the given dot, or, for nil, only if
    /// there is no live record. Otherwise the whole batch fails with `versionMismatch`. What
    /// counts is the record before the batch, whatever the batch itself writes to the same key.
    public mutating func put(
        _ value: [UInt8], for key: [UInt8], in dataset: Dataset, ifAt expected: Dot?
    ) {
        unsafe append(
            .put, key.span.bytes, value.span.bytes, in: dataset, expected: .some(expected))
    }

    public mutating func put(
        _ value: String, for key: String, in dataset: Dataset, ifAt expected: Dot?
    ) {
        put(Array(value.utf8), for: Array(key.utf8), in: dataset, ifAt: expected)
    }

    /// The same with key and value from anywhere; both are copied into the batch.
    public mutating func put(
        _ value: RawSpan, for key: RawSpan, in dataset: Dataset, ifAt expected: Dot?
    ) {
        append(.put, key, value, in: dataset, expected: .some(expected))
    }

    /// Deletes only if the record is still at the version with the given dot. Otherwise the whole
    /// batch fails with `versionMismatch`.
    public mutating func delete(_ key: [UInt8], in dataset: Dataset, ifAt expected: Dot?) {
        unsafe append(.delete, key.span.bytes, RawSpan(), in: dataset, expected: .some(expected))
    }

    public mutating func delete(_ key: String, in dataset: Dataset, ifAt expected: Dot?) {
        delete(Array(key.utf8), in: dataset, ifAt: expected)
    }

    public mutating func delete(_ key: RawSpan, in dataset: Dataset, ifAt expected: Dot?) {
        append(.delete, key, RawSpan(), in: dataset, expected: .some(expected))
    }

    mutating func append(
        _ kind: EntryKind, _ key: RawSpan, _ value: RawSpan, in dataset: Dataset,
        expected: Dot??, expiresAt: UInt64 = 0
    ) {
        if datasets.last !== dataset { datasets.append(dataset) }
        var condition: UInt32 = 0
        if let expected {
            conditions.append(expected)
            condition = UInt32(conditions.count)
        }
        isPlain =
            isPlain && condition == 0 && (1...Limits.keyBytesMax).contains(key.byteCount)
            && value.byteCount <= Limits.valueBytesMax && expiresAt <= EntryLayout.expiryMax
        writes.append(
            Write(
                keyOffset: bytes.count, expiresAt: expiresAt,
                keyCount: UInt32(clamping: key.byteCount),
                valueCount: UInt32(clamping: value.byteCount),
                dataset: UInt32(datasets.count - 1), condition: condition, kind: kind))
        unsafe key.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
        unsafe value.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
    }

    /// Hands a write to the body, which may borrow key and value during the call.
    func withWrite(
        at index: Int, _ body: (StagedWrite) throws(StoreError) -> Void
    ) throws(StoreError) {
        let write = writes[index]
        var expected: Dot??
        if write.condition > 0 { expected = .some(conditions[Int(write.condition) - 1]) }
        try bytes.withBytes { (view) throws(StoreError) in
            // Both counts were added to the buffer together with the write, so they lie within.
            let key = unsafe view.base + write.keyOffset
            let keyCount = Int(write.keyCount)
            try body(
                StagedWrite(
                    state: datasets[Int(write.dataset)].state, kind: write.kind,
                    key: unsafe ByteView(base: key, count: keyCount),
                    value: unsafe ByteView(base: key + keyCount, count: Int(write.valueCount)),
                    expected: expected, expiresAt: write.expiresAt))
        }
    }

    /// Hands all writes to the body, one after the other: the place of the dataset in `datasets`,
    /// what is done, key and value, which may be borrowed during the call, and when the record
    /// expires.
    @inline(__always)
    func forEach(_ body: (Int, EntryKind, ByteView, ByteView, UInt64) -> Void) {
        unsafe bytes.withUnsafeBytes { buffer in
            let base = unsafe ByteView(buffer).base
            for write in writes {
                // As above.
                let key = unsafe base + write.keyOffset
                let keyCount = Int(write.keyCount)
                unsafe body(
                    Int(write.dataset), write.kind, ByteView(base: key, count: keyCount),
                    ByteView(base: key + keyCount, count: Int(write.valueCount)),
                    write.expiresAt)
            }
        }
    }

    /// Upper bound of what the entries take in a log.
    var entryBytesMax: Int {
        bytes.count + writes.count * LogBlockWriter.byteCountMax(key: 0, value: 0)
    }
}
