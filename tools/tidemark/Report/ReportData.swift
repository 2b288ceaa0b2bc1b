import Tidemark
import TidemarkSync

/// What a report shows, gathered in bounded time and memory.
struct ReportData {
    /// Entries that are looked at for histograms and the timeline of writes.
    static let sampledMax = 100_000
    /// Datasets of which exchanges, conflicts and vectors are looked at.
    static let datasetsMax = 1_000
    static let momentsMax = 50_000
    static let matricesMax = 4
    /// Datasets of which it is told what each segment holds of them.
    static let heaviestMax = 6

    let path: String
    let replica: ReplicaID
    let now: UInt64
    let survey: SpaceSurvey
    let sample: SampleReport
    let keySizes: SizeHistogram
    let valueSizes: SizeHistogram
    let writes: Timeline
    let exchanges: Timeline
    let conflicts: Timeline
    let waitingCount: Int
    let settledCount: Int
    let matrices: [VectorMatrix]
    let datasetCount: Int

    /// - Parameter tell: called after each of the steps that are to be done: how many are, and of
    ///   how many.
    init(
        _ store: Store, path: String, now: UInt64,
        tell: (_ stepsDone: Int, _ stepsTotal: Int) -> Void = { _, _ in }
    ) throws {
        self.path = path
        self.now = now
        replica = store.replicaID
        let names = try store.datasetNames()
        let stepsTotal = try 2 * store.segmentFiles().count + min(names.count, Self.datasetsMax)
        var stepsDone = 0
        func step() {
            stepsDone += 1
            tell(stepsDone, stepsTotal)
        }
        survey = try store.spaceSurvey(heaviestMax: Self.heaviestMax, tell: step)
        var entries = SampledEntries()
        sample = try store.sampleEntries(
            about: Self.sampledMax, { entries.add($0) }, tell: step)
        keySizes = entries.keySizes
        valueSizes = entries.valueSizes
        writes = Timeline(
            [
                (name: "puts", moments: entries.puts),
                (name: "deletions", moments: entries.deletions),
            ], now: now)
        datasetCount = names.count
        var past = DatasetPasts()
        for name in names.prefix(Self.datasetsMax) {
            defer { step() }
            guard let dataset = try store.existingDataset(name) else { continue }
            try past.add(dataset)
        }
        exchanges = Timeline(
            [(name: "pulled", moments: past.pulled), (name: "pushed here", moments: past.pushed)],
            now: now)
        conflicts = Timeline(
            [(name: "settled", moments: past.settled), (name: "waiting", moments: past.waiting)],
            now: now)
        waitingCount = past.waiting.count
        settledCount = past.settled.count
        matrices = try past.largest.compactMap { name in
            try store.existingDataset(name).map { try VectorMatrix($0) }
        }
    }
}

/// What a sample says of sizes and times.
private struct SampledEntries {
    var keySizes = SizeHistogram()
    var valueSizes = SizeHistogram()
    var puts: [(at: UInt64, weight: Double)] = []
    var deletions: [(at: UInt64, weight: Double)] = []

    mutating func add(_ entry: SampledEntry) {
        keySizes.add(entry.keyBytes, weight: entry.weight)
        if entry.isDeletion {
            deletions.append((at: entry.writtenAt, weight: entry.weight))
        } else {
            valueSizes.add(entry.valueBytes, weight: entry.weight)
            puts.append((at: entry.writtenAt, weight: entry.weight))
        }
    }
}

/// What was exchanged and settled in the datasets, of which each entry is read and let go.
private struct DatasetPasts {
    var pulled: [(at: UInt64, weight: Double)] = []
    var pushed: [(at: UInt64, weight: Double)] = []
    var settled: [(at: UInt64, weight: Double)] = []
    var waiting: [(at: UInt64, weight: Double)] = []
    private var replicaCounts: [(name: String, count: Int)] = []

    /// The names of the datasets with the most replicas.
    var largest: [String] {
        replicaCounts.sorted { ($1.count, $0.name) < ($0.count, $1.name) }
            .prefix(ReportData.matricesMax).map(\.name)
    }

    mutating func add(_ dataset: Dataset) throws {
        replicaCounts.append((name: dataset.name, count: try dataset.vector.count))
        for arrival in try dataset.arrivals()
        where pulled.count + pushed.count < ReportData.momentsMax {
            let changes = arrival.through.rawValue - arrival.after.rawValue
            let moment = (at: arrival.time.milliseconds, weight: Double(changes))
            if arrival.role == .asked { pulled.append(moment) } else { pushed.append(moment) }
        }
        try dataset.forEachSettledConflict { entry in
            settled.append((at: entry.time.milliseconds, weight: 1))
            return settled.count < ReportData.momentsMax
        }
        try dataset.forEachWaitingConflict { since in
            waiting.append((at: since.milliseconds, weight: 1))
            return waiting.count < ReportData.momentsMax
        }
    }
}
