import TestSupport
import Tidemark

/// Where a store lies on a simulated disk.
let simulatedPath = "/store"

func openSimulated(_ storage: SimulatedStorage, _ options: StoreOptions) throws -> Store {
    try Store.open(at: simulatedPath, options: options, storage: storage)
}

/// A sequence of operations with the model after each, and how far each promise reaches.
///
/// The store at any moment must be `states[k]` for one k from `durableIndex` to the last.
struct Workload: Sendable {
    /// `states[k]`: after k operations. Behind the acknowledged one come those in doubt: of an
    /// operation still under way, or of each that failed since, at most one of which took effect.
    private(set) var states: [StoreModel] = [StoreModel()]
    /// As many operations were acknowledged.
    private(set) var acknowledgedIndex = 0
    /// As many operations were acknowledged as durable on disk.
    private(set) var durableIndex = 0
    /// The operations of the states in doubt.
    private var failed: [StoreOperation] = []
    /// Creations that failed and then went well: either they found what the failed one had made,
    /// and the store accepts no write any more, or they made it themselves.
    private var repeated: [StoreOperation] = []

    /// The state that was acknowledged last.
    var present: StoreModel { states[acknowledgedIndex] }

    /// The state of a store that still accepts writes.
    private var writable: StoreModel {
        var model = present
        for creation in repeated { model.apply(creation) }
        return model
    }

    /// Foretells an operation that is about to be tried.
    mutating func begin(_ operation: StoreOperation) {
        var next = writable
        next.apply(operation)
        states.append(next)
    }

    /// The operation under way took effect. One that failed before it therefore did not: a store
    /// that is in doubt about a write accepts no other. What changes nothing takes no doubt away,
    /// nor does opening a dataset whose creation is in doubt, which may be to read; but the next
    /// write that is accepted tells that it was there from then on.
    mutating func acknowledge(_ operation: StoreOperation, default durability: Durability) {
        let last = states.removeLast()
        let hasChanged = last.liveCounts != writable.liveCounts
        if hasChanged {
            if case .createDataset = operation, failed.contains(operation) {
                repeated.append(operation)
                return
            }
            failed = []
            repeated = []
            states.removeSubrange((acknowledgedIndex + 1)...)
            states.append(last)
            acknowledgedIndex = states.count - 1
        }
        if isDurable(operation, default: durability, hasChanged: hasChanged) {
            durableIndex = acknowledgedIndex
        }
    }

    /// The operation under way threw an error. Its state stays as one of those in doubt: it may
    /// have failed before it did anything, or as the one write that stopped the writer.
    mutating func fail(_ operation: StoreOperation) {
        failed.append(operation)
    }

    private func isDurable(
        _ operation: StoreOperation, default durability: Durability, hasChanged: Bool
    ) -> Bool {
        switch operation {
        case .write(_, let own), .batch(_, let own): own == .disk
        case .sync: true
        // The records of a deleted dataset may be dropped at once, so its deletion is durable.
        case .deleteDataset: hasChanged
        // They have no durability of their own, and without a change nothing is promised.
        case .clear, .createDataset: hasChanged && durability == .disk
        default: false
        }
    }

    /// Finds which state the store is in and compares everything; returns the index.
    func check(
        _ store: Store, from lowest: Int, using random: inout SeededGenerator
    ) throws -> Int {
        var counts: [String: UInt64] = [:]
        for dataset in try store.datasets() {
            counts[dataset.name] = try dataset.syncCount.rawValue
        }
        let candidates = (lowest..<states.count).filter { index in
            let state = states[index]
            return state.liveNames == counts.keys.sorted()
                && counts.allSatisfy { state[$0.key].syncCount == $0.value }
        }
        var last = Mismatch(
            """
            sync counts \(counts) are those of none of the states \(lowest)...\
            \(states.count - 1); the last is \(states[states.count - 1].liveCounts)
            """)
        for index in candidates.reversed() {
            do {
                var check = ModelCheck(states[index], of: store)
                try check.checkAll(store, using: &random)
                return index
            } catch let mismatch as Mismatch {
                last = mismatch
            }
        }
        throw last
    }
}

extension StoreModel {
    fileprivate var liveCounts: [String: UInt64] {
        var counts: [String: UInt64] = [:]
        for name in liveNames { counts[name] = self[name].syncCount }
        return counts
    }
}

extension StoreOperation {
    /// Does it to a store, without looking at what comes of it. Only operations that change a
    /// store; the model decides which dataset must exist.
    func perform(on store: Store) throws {
        switch self {
        case .write(let write, let durability):
            let dataset = try store.dataset(write.dataset)
            if let value = write.value {
                try dataset.put(value, for: write.key, durability: durability)
            } else {
                try dataset.delete(write.key, durability: durability)
            }
        case .batch(let writes, let durability):
            var batch = WriteBatch()
            for write in writes {
                let dataset = try store.dataset(write.dataset)
                if let value = write.value {
                    batch.put(value, for: write.key, in: dataset)
                } else {
                    batch.delete(write.key, in: dataset)
                }
            }
            try store.write(batch, durability: durability)
        case .clear(let name): try store.dataset(name).clear()
        case .createDataset(let name): _ = try store.dataset(name)
        case .deleteDataset(let name): try store.deleteDataset(name)
        case .sync: try store.sync()
        case .compact: try store.compact()
        case .compactRange(let name, let range): try store.dataset(name).compact(range)
        default: throw Mismatch("\(self) changes nothing")
        }
    }
}

/// A generator for tests on simulated disks: small values, few keys, only changes.
func simulatedGenerator(
    _ seed: Seed, _ durabilities: [Durability], moreDatasetCount: Int = 0
) -> OperationGenerator {
    var weights = OperationGenerator.Weights.changesOnly
    if moreDatasetCount > 0 {
        weights.datasetLifecycle = 200
        weights.compact = 40
    }
    var generator = OperationGenerator(
        seed, weights: weights, ordinaryKeyCount: 30, moreDatasetCount: moreDatasetCount)
    generator.durabilities = durabilities
    generator.valueBytesMax = 3_000
    return generator
}
