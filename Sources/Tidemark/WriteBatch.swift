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
        /// The place in `datasets`.
        let dataset: Int
        let kind: EntryKind
        /// The key begins here in `bytes`, and the value follows it.
        let keyOffset: Int
        let keyCount: Int
        let valueCount: Int
        /// nil: unconditional. `.some(nil)`: no record may exist. Otherwise the dot it must have.
        let expected: Dot??
        /// In milliseconds since 1970; 0 for never.
        let expiresAt: UInt64
    }

    private var writes: [Write] = []
    private var bytes: [UInt8] = []
    /// The datasets in the order of their writes: one that is written to again after another
    /// stands there again.
    private(set) var datasets: [Dataset] = []

    public init() {}

    /// The number of writes.
    public var count: Int { writes.count }

    public var isEmpty: Bool { writes.isEmpty }

    /// Forgets all writes.
    ///
    /// - Parameter keepingCapacity: whether to keep the memory for those that come next.
    public mutating func removeAll(keepingCapacity: Bool = false) {
        writes.removeAll(keepingCapacity: keepingCapacity)
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
        writes.append(
            Write(
                dataset: datasets.count - 1, kind: kind, keyOffset: bytes.count,
                keyCount: key.byteCount, valueCount: value.byteCount, expected: expected,
                expiresAt: expiresAt))
        unsafe key.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
        unsafe value.withUnsafeBytes { unsafe bytes.append(contentsOf: $0) }
    }

    /// Hands a write to the body, which may borrow key and value during the call.
    func withWrite(
        at index: Int, _ body: (StagedWrite) throws(StoreError) -> Void
    ) throws(StoreError) {
        let write = writes[index]
        try bytes.withBytes { (view) throws(StoreError) in
            // Both counts were added to the buffer together with the write, so they lie within.
            let key = unsafe view.base + write.keyOffset
            try body(
                StagedWrite(
                    state: datasets[write.dataset].state, kind: write.kind,
                    key: unsafe ByteView(base: key, count: write.keyCount),
                    value: unsafe ByteView(base: key + write.keyCount, count: write.valueCount),
                    expected: write.expected, expiresAt: write.expiresAt))
        }
    }
}
