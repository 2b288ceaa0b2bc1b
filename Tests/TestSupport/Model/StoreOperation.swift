package import Tidemark

/// One write of a generated operation.
package struct GeneratedWrite: Hashable, Sendable {
    /// The condition on the record's present version.
    package enum Expectation: Hashable, Sendable {
        case none
        /// The dot the record has (none if it is not live), so the write succeeds.
        case present
        /// A dot that it does not have, so the write fails.
        case stale
    }

    package var dataset: String
    package var key: [UInt8]
    /// nil deletes.
    package var value: [UInt8]?
    package var expectation: Expectation

    package init(
        dataset: String, key: [UInt8], value: [UInt8]?, expectation: Expectation = .none
    ) {
        self.dataset = dataset
        self.key = key
        self.value = value
        self.expectation = expectation
    }
}

/// One thing done to a store and to its model.
package enum StoreOperation: Hashable, Sendable {
    /// A single write by the dataset's own functions.
    case write(GeneratedWrite, Durability)
    case batch([GeneratedWrite], Durability)
    case clear(dataset: String)
    case createDataset(String)
    case deleteDataset(String)
    case sync
    case compact
    case compactRange(dataset: String, KeyRange)
    case reopen
    case takeSnapshot
    case checkSnapshot
    case readKey(dataset: String, key: [UInt8])
    case scan(dataset: String, KeyRange, ScanOrder, includingDeleted: Bool)
    case changes(dataset: String, since: UInt64)
    case history(dataset: String, key: [UInt8])
}

extension StoreModel {
    /// Whether the conditions of all writes hold.
    package func accepts(_ writes: [GeneratedWrite]) -> Bool {
        writes.allSatisfy { $0.expectation != .stale }
    }

    /// Does to the model what a successful operation does to the store.
    package mutating func apply(_ operation: StoreOperation) {
        switch operation {
        case .write(let write, _): apply([write])
        case .batch(let writes, _): apply(writes)
        case .clear(let name): clear(name)
        case .createDataset(let name): create(name)
        case .deleteDataset(let name): _ = delete(name)
        default: break
        }
    }

    private mutating func apply(_ writes: [GeneratedWrite]) {
        guard accepts(writes) else { return }
        for each in writes { write(each.value, for: each.key, in: each.dataset) }
    }
}
