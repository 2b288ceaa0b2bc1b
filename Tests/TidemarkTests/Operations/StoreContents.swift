import TestSupport
import Tidemark

/// Everything that can be read of a store: of each dataset all records with their versions, its
/// sync count and its vector.
struct StoreContents: Equatable {
    struct Content: Equatable {
        let records: [Record]
        let syncCount: SyncCount
        let vector: VersionVector
    }

    private(set) var datasets: [String: Content] = [:]

    init(_ store: Store) throws {
        for dataset in try store.datasets() {
            datasets[dataset.name] = Content(
                records: try dataset.records(includingDeleted: true).collect(),
                syncCount: try dataset.syncCount, vector: try dataset.vector)
        }
    }

    /// Of a store that is opened for this alone.
    static func read(
        at path: String, storage: any Storage = SystemStorage()
    ) throws -> StoreContents {
        var options = quickOptions()
        options.isReadOnly = true
        let store = try Store.open(at: path, options: options, storage: storage)
        let report = try store.verify()
        try require(report.damages.isEmpty, "damages: \(report.damages)")
        let contents = try StoreContents(store)
        try store.close()
        return contents
    }

    /// The same without what is deleted.
    var live: StoreContents {
        var live = self
        live.datasets = datasets.mapValues { content in
            Content(
                records: content.records.filter { !$0.isDeleted }, syncCount: content.syncCount,
                vector: content.vector)
        }
        return live
    }

    var summary: String {
        datasets.sorted { $0.key < $1.key }
            .map { "\($0.key): \($0.value.records.count) at \($0.value.syncCount)" }
            .joined(separator: ", ")
    }
}
