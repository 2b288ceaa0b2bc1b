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

    /// Those that were named, whether they are there or not; else all of the store.
    func names(in store: Store) throws -> [String] {
        try dataset.isEmpty ? store.datasetNames() : dataset
    }

    /// Those that were named, whether they are there or not; else all that either store has, in
    /// the order of their names.
    func names(in first: Store, or second: Store) throws -> [String] {
        guard dataset.isEmpty else { return dataset }
        return Set(try first.datasetNames()).union(try second.datasetNames()).sorted()
    }

    /// Of a name that was given where two stores are compared.
    static func missing(_ name: String) -> CommandFailure {
        CommandFailure(
            .negative,
            "no dataset \"\(name)\" in either store; see 'tidemark datasets' for those there are")
    }

    /// Whether tables have to say which dataset a row is of.
    var isOne: Bool { dataset.count == 1 }
}
