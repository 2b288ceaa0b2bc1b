import Foundation
import Tidemark
import TidemarkSync

/// Stores that are made once and then only copied, so that each round finds the same.
struct PristineStores {
    /// With all records, at rest: compacted, and with nothing left to do in the background.
    let hub: String
    /// Of the time when the dataset had just been made and was empty.
    let replica: String
    /// Two with all records, which a third one gave them: they share no checkpoint.
    let strangers: (hub: String, replica: String)
    private let third: String

    init(in directory: String) {
        strangers = (directory + "/stranger-hub", directory + "/stranger-replica")
        third = directory + "/third"
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

    /// Makes the strangers, unless they are there.
    func makeStrangers() async throws {
        guard !FileManager.default.fileExists(atPath: strangers.replica) else { return }
        let options = StoreOptions(durability: .process)
        // A copy, so that the hub of the other workloads meets nobody more.
        try copyFolder(hub, to: third)
        let source = try Store.open(at: third, options: options)
        for path in [strangers.hub, strangers.replica] {
            let store = try Store.open(at: path, options: options)
            try await store.synchronize(with: InMemoryTransport(SyncResponder(store: source)))
            try store.compact()
            try store.close()
        }
        try source.close()
        try removeFile(third)
    }
}
