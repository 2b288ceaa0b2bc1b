import ArgumentParser
import Tidemark

/// Which datasets a command looks at.
struct DatasetSelection: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Only this dataset; may be given several times. Default: all.", valueName: "name"))
    var dataset: [String] = []

    /// Hands out the datasets one by one, so that not all need be in memory at once.
    func forEach(
        of target: StoreArgument, in store: Store, _ body: (Dataset) throws -> Void
    ) throws {
        guard dataset.isEmpty else {
            for name in dataset { try body(try target.dataset(name, in: store)) }
            return
        }
        for name in try store.datasetNames() {
            guard let dataset = try store.existingDataset(name) else { continue }
            do {
                try body(dataset)
            } catch let error as StoreError where error.code == .datasetNotFound {
                // Deleted meanwhile.
                continue
            }
        }
    }

    /// Whether tables have to say which dataset a row is of.
    var isOne: Bool { dataset.count == 1 }
}
