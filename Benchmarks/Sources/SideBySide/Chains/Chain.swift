import BenchmarkRows
import Foundation

/// What one child process does in a fresh directory, or in the one that the step before it left.
///
/// Workloads that need a filled store follow one another in a chain, so that filling is paid for
/// once; every step is a process of its own, so that memory and bytes written are its alone.
enum ChainStep: String, Codable, Sendable, CaseIterable {
    /// Ascending keys one by one.
    case sequential
    /// Random keys one by one into a fresh store, and what it comes to when it is compacted.
    case random
    /// All that is done to the full, compacted store that `random` left, or a copy of it.
    case full
    /// Opens what `full` left, then writes and is killed.
    case reopenClean = "reopen-clean"
    /// Opens what the kill left, and deletes it all.
    case reopenKilled = "reopen-killed"
    case batchSequential = "batch-sequential"
    case batchRandom = "batch-random"
    /// Synced writes, by one thread and by eight.
    case durable
    /// The first key after all keys before it were deleted.
    case firstKey = "first-key"
    /// All records overwritten several times.
    case sustained
    case datasets
    case datasetsReopen = "datasets-reopen"
    case large

    /// The workloads that it measures.
    var workloads: [String] {
        switch self {
        case .sequential: ["fillseq"]
        case .random:
            [
                Self.fillWorkload, "compact", "disk-ratio", "memory-anonymous-rest",
                "memory-resident-rest", "memory-anonymous-peak", "memory-resident-peak",
            ]
        case .full:
            [
                "readrandom", "readrandom-2t", "readmissing", "scan", "seek100", "prefixscan",
                "ycsb-b", "ycsb-a", "overwrite", "write-amplification", "readwhilewriting-get",
                "readwhilewriting-put",
            ]
        case .reopenClean: ["open-clean"]
        case .reopenKilled: ["open-killed", "deleterandom"]
        case .batchSequential: ["fillseq-batch"]
        case .batchRandom: ["fillrandom-batch"]
        case .durable: ["fillsync", "groupcommit"]
        case .firstKey:
            ["first-key-once", "first-key", "first-key-fresh", "first-key-slowdown"]
        case .sustained: ["sustained-amplification"]
        case .datasets: ["datasets-fill", "datasets-disk"]
        case .datasetsReopen: ["datasets-open", "datasets-memory", "datasets-read"]
        case .large: ["large-put", "large-get"]
        }
    }

    /// The one workload of `random` that needs no store to be left.
    static let fillWorkload = "fillrandom"

    /// Steps that leave no store to the next one stand alone.
    static let chains: [[ChainStep]] = [
        [.sequential], [.random, .full, .reopenClean, .reopenKilled], [.batchSequential],
        [.batchRandom], [.durable], [.firstKey], [.sustained], [.datasets, .datasetsReopen],
        [.large],
    ]

    var durability: DurabilityClass { self == .durable ? .power : .kill }

    /// Steps that a second value size or a second make of the engine would tell nothing new.
    var isOncePerEngine: Bool {
        switch self {
        case .firstKey, .sustained, .datasets, .datasetsReopen, .large: true
        default: false
        }
    }

    /// In how many rounds it is done at most: what is counted, not timed, hardly differs.
    var roundsMax: Int { self == .sustained ? 1 : .max }

    /// SQLite would not come round once in the time.
    func suits(_ engine: EngineName) -> Bool {
        self != .sustained || engine.engine != "sqlite"
    }

    /// The size of values where it is not the run's.
    var valueBytes: Int? {
        switch self {
        case .datasets, .datasetsReopen: 100
        // As many bytes as fill any engine's memory several times.
        case .sustained: 1024
        case .large: 1 << 20
        default: nil
        }
    }
}

/// What a child process is told.
struct ChainRequest: Codable, Sendable {
    var engine: EngineName
    var step: ChainStep
    var directory: String
    var valueBytes: Int
    var scale: Scale
    /// The workloads to measure; others run only where one of these needs what they leave.
    var workloads: Set<String>
    /// Whether `random` goes on until the store is full and compacted.
    var fillsStore: Bool
    /// Whether no other step opens the store after this one.
    var endsChain: Bool
}

/// The work of one step on one kind of engine.
struct Chain<Kind: EngineKind> {
    let kind: Kind
    let request: ChainRequest
    let values: Values
    let emit: (Sample) -> Void

    var scale: Scale { request.scale }
    var count: Int { scale.records }

    init(_ kind: Kind, _ request: ChainRequest, emit: @escaping (Sample) -> Void) {
        self.kind = kind
        self.request = request
        self.emit = emit
        values = Values(bytes: request.valueBytes)
    }

    func run() throws {
        switch request.step {
        case .sequential: try runSequential()
        case .random: try runRandom()
        case .full: try runFull()
        case .reopenClean: try runReopenClean()
        case .reopenKilled: try runReopenKilled()
        case .batchSequential: try runBatches("fillseq-batch", inOrder: true)
        case .batchRandom: try runBatches("fillrandom-batch", inOrder: false)
        case .durable: try runDurable()
        case .firstKey: try runFirstKey()
        case .sustained: try runSustained()
        case .datasets: try runDatasets()
        case .datasetsReopen: try runDatasetsReopen()
        case .large: try runLarge()
        }
    }

    func open() throws -> Kind.Opened {
        try kind.open(options)
    }

    /// Closes a store that another step opens. After the last step the process ends as it is: no
    /// row tells how long closing takes, and nothing reads the store again.
    func leave(_ engine: Kind.Opened) throws {
        guard request.endsChain else { return try engine.close() }
        _exit(0)
    }

    var options: EngineOptions {
        EngineOptions(
            directory: request.directory, durability: request.step.durability,
            capacityBytes: capacityBytes)
    }

    private var capacityBytes: Int {
        let records =
            switch request.step {
            case .datasets, .datasetsReopen: scale.datasets * scale.recordsPerDataset
            case .large: scale.largeBytes >> 20
            default: count
            }
        return records * (Keys.bytes + request.valueBytes)
    }

    func wants(_ workload: String) -> Bool {
        request.workloads.contains(workload)
    }

    func wantsAny(_ workloads: [String]) -> Bool {
        workloads.contains(where: wants)
    }

    /// Completes a sample with what the request says, and hands it out if it was asked for.
    func report(_ sample: Sample) {
        guard wants(sample.workload) else { return }
        var sample = sample
        sample.durability = request.step.durability
        sample.valueBytes = request.valueBytes
        if sample.records == 0 { sample.records = count }
        emit(sample)
    }

    func report(_ workload: String, _ value: Double, _ unit: String, more: [String: Double]? = nil)
    {
        report(
            Sample(
                workload: workload, valueBytes: 0, records: 0, value: value, unit: unit,
                more: more))
    }

    /// The bytes of keys and values of so many records.
    func logicalBytes(_ records: Int) -> Double {
        Double(records * (Keys.bytes + request.valueBytes))
    }
}
