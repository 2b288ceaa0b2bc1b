import TestSupport
import Tidemark

/// All that is in a store, as the driver reads it while no child has it.
struct StoreContent {
    let replica: ReplicaID
    /// Of each dataset.
    let digests: [String]
    let found: [TortureKey: Found]
    /// What verification finds.
    let damages: [String]

    /// Opens, reads, verifies and closes the store.
    init(at directory: String, _ options: StoreOptions) throws {
        let store = try Store.open(at: directory, options: options)
        replica = store.replicaID
        damages = try store.verify().damages.map(\.description)
        var digests: [String] = []
        var found: [TortureKey: Found] = [:]
        for (number, name) in TortureKey.datasetNames.enumerated() {
            guard let dataset = try store.existingDataset(name) else {
                // Nobody has written to it yet.
                digests.append(String(repeating: "0", count: 32))
                continue
            }
            digests.append(try dataset.digest().description)
            for record in try dataset.records(includingDeleted: true).collect() {
                let text = record.keyText ?? ""
                guard let key = TortureKey(dataset: number, name: Substring(text)) else {
                    throw Mismatch("\(name) holds a key that nobody writes: \(text)")
                }
                found[key] = Found(stamp: Stamp(record.version), value: record.value)
            }
        }
        (self.digests, self.found) = (digests, found)
        try store.close()
    }
}
