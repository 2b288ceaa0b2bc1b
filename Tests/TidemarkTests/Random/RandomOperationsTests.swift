import TestSupport
import Testing
import Tidemark

/// A store does what the model does: 120,000 random operations in eight stores of different make,
/// with everything compared after each of the many reopenings. The soak goes on for as long as it
/// is let.
@Suite("Random operations")
struct RandomOperationsTests {
    struct Make: Sendable, CustomStringConvertible {
        let description: String
        let options: StoreOptions
        var moreDatasetCount = 0
        var weights = OperationGenerator.Weights()
    }

    static let operationsPerMake = 15_000

    static let makes: [Make] = {
        var plain = quickOptions()
        plain.compactsAutomatically = false
        var automatic = quickOptions()
        automatic.compactsAutomatically = true
        var historic = quickOptions()
        historic.historyVersions = 3
        var uncached = quickOptions()
        uncached.blockCacheBytes = 0
        uncached.author = ""
        var divided = quickOptions()
        divided.segmentEntriesMax = 5
        divided.historyVersions = 2
        var ranges = quickOptions()
        ranges.segmentEntriesMax = 40
        ranges.compactsAutomatically = false
        var forgetful = quickOptions()
        forgetful.keptDatasetStatesMax = 2
        var apart = quickOptions()
        apart.largeValueBytes = 64
        apart.historyVersions = 1
        var often = OperationGenerator.Weights()
        often.compact = 4
        var lively = OperationGenerator.Weights()
        lively.datasetLifecycle = 60
        lively.compact = 8
        return [
            Make(description: "compacted by hand", options: plain),
            Make(description: "compacted automatically", options: automatic),
            Make(description: "with history", options: historic),
            Make(description: "without cache", options: uncached),
            Make(description: "runs of many segments", options: divided),
            Make(description: "nearly all values apart", options: apart),
            Make(
                description: "ranges of long runs, compacted often", options: ranges,
                weights: often),
            Make(
                description: "many datasets, their states soon let go", options: forgetful,
                moreDatasetCount: 60, weights: lively),
        ]
    }()

    @Test("Store and model stay the same", arguments: makes)
    func againstModel(make: Make) throws {
        withSeed(for: "againstModel(\(make))") { seed in
            let directory = try TemporaryDirectory()
            var random = SeededGenerator(seed)
            var generator = OperationGenerator(
                Seed(random.next()), weights: make.weights,
                moreDatasetCount: make.moreDatasetCount)
            let exerciser = try StoreExerciser(seed: Seed(random.next())) {
                try Store.open(at: directory["store"], options: make.options)
            }
            for number in 1...Self.operationsPerMake {
                let operation = generator.next(exerciser.model)
                do {
                    try exerciser.apply(operation)
                } catch {
                    throw Mismatch("operation \(number), \(summary(of: operation)): \(error)")
                }
            }
            try exerciser.reopenAndCompare()
            let report = try exerciser.store.verify()
            try require(report.damages.isEmpty, "damages: \(report.damages)")
            try require(exerciser.reopenCount > 5, "only \(exerciser.reopenCount) reopenings")
            try exerciser.close()
        }
    }

    /// Long keys and values make an operation unreadable.
    private func summary(of operation: StoreOperation) -> String {
        switch operation {
        case .write(let write, let durability): "write \(summary(of: write)), \(durability)"
        case .batch(let writes, let durability):
            "batch of \(writes.map(summary).joined(separator: "; ")), \(durability)"
        case .readKey(let name, let key): "read \(name)/\(Bytes.summary(key))"
        case .history(let name, let key): "history of \(name)/\(Bytes.summary(key))"
        case .scan(let name, let range, let order, let includingDeleted):
            """
            scan \(name) from \(Bytes.summary(range.lowerBound)) up to \
            \(Bytes.summary(range.upperBound)), \(order), deleted too: \(includingDeleted)
            """
        default: "\(operation)"
        }
    }

    private func summary(of write: GeneratedWrite) -> String {
        """
        \(write.dataset)/\(Bytes.summary(write.key)) = \(Bytes.summary(write.value)), \
        \(write.expectation)
        """
    }
}
