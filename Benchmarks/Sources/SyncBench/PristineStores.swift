import Tidemark
import TidemarkSync

/// Stores that are made once and then only copied, so that each round finds the same.
struct PristineStores {
    /// With all records, at rest: compacted, and with nothing left to do in the background.
    let hub: String
    /// Of the time when the dataset had just been made and was empty.
    let replica: String

    init(in directory: String) {
        hub = directory + "/pristine-hub"
        replica = directory + "/pristine-replica"
    }

    func make(_ workingSet: WorkingSet) async throws {
        note("filling a store with \(workingSet.recordCount) x \(workingSet.valueBytes) B")
        let options = StoreOptions(durability: .process)
        let store = try Store.open(at: hub, options: options)
        let dataset = try store.dataset(WorkingSet.datasetName)
        let early = try Store.open(at: replica, options: options)
        try await early.synchronize(with: InMemoryTransport(SyncResponder(store: store)))
        try early.close()
        try workingSet.write(
            workingSet.shuffled(0..<workingSet.recordCount), generation: 0, to: dataset)
        try store.compact()
        try store.close()
    }
}
