import Tidemark

/// How far a walk over whole stores has come.
final class ComparisonProgress {
    private let bar = ProgressBar("comparing")
    private let bytesTotal: UInt64
    private var bytesDone: UInt64 = 0

    init(of stores: [Store]) throws {
        // What is sealed and what is in the logs: an estimate, since superseded versions count.
        bytesTotal = try stores.reduce(0) { sum, store in
            let usage = try store.usage()
            return usage.segments.reduce(sum) { $0 + ($1.isSealed ? 0 : $1.storedBytes) }
                + usage.datasets.reduce(0) { $0 + $1.keyBytes + $1.valueBytes }
        }
    }

    var label: String {
        get { bar.label }
        set { bar.label = newValue }
    }

    func add(_ byteCount: UInt64) {
        bytesDone += byteCount
        bar.update(bytes: bytesDone, of: bytesTotal)
    }

    /// Wipes the bar, so that something else can be printed.
    func finish() {
        bar.finish()
    }
}
