import Tidemark

/// How far a walk over the records of stores has come.
final class ComparisonProgress {
    private let bar: ProgressBar
    private let stores: [Store]
    private let datasets: Set<String>
    /// Asked for only by a walk that takes long enough for a bar, since the tables of all segments
    /// are read for it.
    private lazy var bytesTotal: UInt64? = estimate()
    private var bytesDone: UInt64 = 0

    /// - Parameters:
    ///   - label: what is done.
    ///   - datasets: that are walked over; empty for all.
    init(of stores: [Store], _ label: String = "comparing", datasets: [String] = []) {
        bar = ProgressBar(label)
        self.stores = stores
        self.datasets = Set(datasets)
    }

    /// What is sealed and what is in the logs: superseded versions count, too. nil if damage keeps
    /// it from being told, which whoever reads the records is to find.
    private func estimate() -> UInt64? {
        var sum: UInt64 = 0
        for store in stores {
            guard let usage = try? store.usage() else { return nil }
            for segment in usage.segments where !segment.isSealed { sum += segment.storedBytes }
            for dataset in usage.datasets where isWalkedOver(dataset.name) {
                sum += dataset.keyBytes + dataset.valueBytes
            }
        }
        return sum
    }

    private func isWalkedOver(_ dataset: String?) -> Bool {
        guard !datasets.isEmpty else { return true }
        return dataset.map { datasets.contains($0) } ?? false
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
