import BenchmarkRows
import Foundation
import Tidemark
import TidemarkSync

/// A store of many small datasets whose replica has them all: what it costs to find out that
/// there is nothing to do.
final class ManyDatasets {
    static let datasetCounts = [1_000, 10_000, 100_000]

    let datasetCount: Int
    /// So that no row takes longer to prepare than the others, but for the most datasets.
    private var recordsEach: Int { max(1, 20_000 / datasetCount) }
    private let way: TidemarkSession.Way
    private let workingSet: WorkingSet
    private let directory: String
    private var hub: (any HubUnderTest)?
    private var replica: Store?

    init(
        _ datasetCount: Int, _ way: TidemarkSession.Way, _ workingSet: WorkingSet,
        in directory: String
    ) {
        self.datasetCount = datasetCount
        self.way = way
        self.workingSet = workingSet
        self.directory = "\(directory)/datasets-\(datasetCount)-\(way)"
    }

    static func workloads(_ datasetCount: Int) -> [String] {
        ["sync-idle-\(datasetCount)-datasets", "sync-idle-restarted-\(datasetCount)-datasets"]
    }

    func name(isRestarted: Bool = false) -> RowName {
        RowName(
            workload: Self.workloads(datasetCount)[isRestarted ? 1 : 0], engine: "tidemark",
            config: way.rawValue, durability: .kill)
    }

    func prepare() async throws {
        guard replica == nil else { return }
        try makeDirectory(directory)
        let path = directory + "/hub"
        let source = try Store.open(at: path, options: StoreOptions(durability: .process))
        for number in 0..<datasetCount {
            let dataset = try source.dataset("dataset-\(number)")
            try workingSet.write(0..<recordsEach, generation: number, to: dataset)
        }
        try source.close()
        let (store, hub) = try open()
        let results = try await store.synchronize(with: hub.transport)
        let pulled = results.reduce(0) { $0 + $1.pulled }
        try require(
            pulled == datasetCount * recordsEach,
            "the first exchange brought \(pulled) records")
        // The next one learns that what the first one wrote is what the other side has.
        try await store.synchronize(with: hub.transport)
    }

    private func open() throws -> (replica: Store, hub: any HubUnderTest) {
        let path = directory + "/hub"
        let hub: any HubUnderTest
        switch way {
        case .http: hub = try HubProcess(storeAt: path, workingSet)
        case .memory: hub = try HubInMemory(storeAt: path, workingSet)
        }
        self.hub = hub
        let store = try Store.open(
            at: directory + "/replica", options: StoreOptions(durability: .process))
        replica = store
        return (store, hub)
    }

    /// The first exchange after both sides were closed and opened again.
    func idleAfterRestart() async throws -> Measurement {
        try replica?.close()
        try await hub?.stop()
        let (store, hub) = try open()
        let start = ContinuousClock.now
        let results = try await store.synchronize(with: hub.transport)
        var measurement = Measurement(seconds: (ContinuousClock.now - start).seconds)
        try require(results.isEmpty, "\(results.count) datasets were looked at after a restart")
        measurement.more["datasets"] = Double(datasetCount)
        measurement.recordCount = datasetCount * recordsEach
        try await checkChangesAreSeen(store, hub)
        return measurement
    }

    func idle(exchanges: Int) async throws -> Measurement {
        guard let store = replica, let hub else {
            throw BenchmarkFailure("the datasets were not prepared")
        }
        let bytesBefore = hub.wireBytes()
        let messagesBefore = hub.transport.messageBytes
        var sum = Measurement(seconds: 0)
        for _ in 0..<exchanges {
            let start = ContinuousClock.now
            let results = try await store.synchronize(with: hub.transport)
            sum.seconds += (ContinuousClock.now - start).seconds
            try require(
                results.allSatisfy { $0.pulled + $0.pushed == 0 },
                "an idle exchange brought records")
        }
        sum.messageBytes = hub.transport.messageBytes - messagesBefore
        if let bytesBefore, let bytesAfter = hub.wireBytes() {
            sum.wireBytes = max(0, bytesAfter - bytesBefore)
        }
        var mean = sum.divided(by: exchanges)
        mean.more["datasets"] = Double(datasetCount)
        mean.recordCount = datasetCount * recordsEach
        try await checkChangesAreSeen(store, hub)
        return mean
    }

    /// Off the clock: what an idle exchange does not look at is looked at once it changes.
    private func checkChangesAreSeen(_ store: Store, _ hub: any HubUnderTest) async throws {
        let dataset = try store.dataset("dataset-\(datasetCount / 2)")
        try dataset.put(workingSet.value(0, generation: datasetCount), for: WorkingSet.key(0))
        let results = try await store.synchronize(with: hub.transport)
        try require(
            results.reduce(0) { $0 + $1.pushed } == 1, "a change of one dataset did not leave")
        try await store.synchronize(with: hub.transport)
    }

    func stop() async throws {
        try replica?.close()
        replica = nil
        try await hub?.stop()
        hub = nil
        try removeFile(directory)
    }
}
