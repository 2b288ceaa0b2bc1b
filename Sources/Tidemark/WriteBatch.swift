/// Writes that take effect together: all of them or, after a crash, none.
///
/// The writes of a batch may go to any datasets of one store. If a key is written twice, both
/// writes are in the log and the later one stands.
public struct WriteBatch: Sendable {
    package enum Change: Sendable {
        case put([UInt8])
        case delete
    }

    package struct Write: Sendable {
        package let dataset: Dataset
        package let key: [UInt8]
        package let change: Change
        /// nil: unconditional. `.some(nil)`: no record may exist. Otherwise the dot it must have.
        package let expected: Dot??
    }

    package private(set) var writes: [Write] = []

    public init() {}

    /// The number of writes.
    public var count: Int { writes.count }

    public var isEmpty: Bool { writes.isEmpty }

    public mutating func put(_ value: [UInt8], for key: [UInt8], in dataset: Dataset) {
        writes.append(Write(dataset: dataset, key: key, change: .put(value), expected: nil))
    }

    public mutating func put(_ value: String, for key: String, in dataset: Dataset) {
        put(Array(value.utf8), for: Array(key.utf8), in: dataset)
    }

    public mutating func delete(_ key: [UInt8], in dataset: Dataset) {
        writes.append(Write(dataset: dataset, key: key, change: .delete, expected: nil))
    }

    public mutating func delete(_ key: String, in dataset: Dataset) {
        delete(Array(key.utf8), in: dataset)
    }

    /// Puts only if the record is still at the version with the given dot, or, for nil, only if
    /// there is no live record. Otherwise the whole batch fails with `versionMismatch`.
    public mutating func put(
        _ value: [UInt8], for key: [UInt8], in dataset: Dataset, ifAt expected: Dot?
    ) {
        writes.append(
            Write(dataset: dataset, key: key, change: .put(value), expected: .some(expected)))
    }

    /// Deletes only if the record is still at the version with the given dot. Otherwise the whole
    /// batch fails with `versionMismatch`.
    public mutating func delete(_ key: [UInt8], in dataset: Dataset, ifAt expected: Dot?) {
        writes.append(
            Write(dataset: dataset, key: key, change: .delete, expected: .some(expected)))
    }
}
