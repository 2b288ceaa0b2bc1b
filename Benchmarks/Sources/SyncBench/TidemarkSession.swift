import BenchmarkRows
import Foundation
import Tidemark
import TidemarkSync

/// A hub with all records, and a replica of it.
final class TidemarkSession {
    enum Way: String {
        case http
        case memory
    }

    let way: Way
    let workingSet: WorkingSet
    private let pristine: PristineStores
    private let directory: String
    private var hub: (any HubUnderTest)?
    private var replica: Store?
    private var generation = 0

    init(
        _ way: Way, _ workingSet: WorkingSet, _ pristine: PristineStores, in directory: String
    ) {
        self.way = way
        self.workingSet = workingSet
        self.pristine = pristine
        self.directory = "\(directory)/\(way)"
    }

    private var hubPath: String { directory + "/hub" }
    private var replicaPath: String { directory + "/replica" }

    func name(_ workload: String, _ durability: Durability = .process) -> RowName {
        RowName(
            workload: workload, engine: "tidemark", config: way.rawValue,
            durability: durability == .disk ? .power : .kill)
    }

    // MARK: - The two sides

    /// - Parameter original: nil for the hub that was there first.
    private func startHub(copyOf original: String? = nil) throws -> any HubUnderTest {
        try makeDirectory(directory)
        try removeFile(hubPath)
        try copyFolder(original ?? pristine.hub, to: hubPath)
        return try openHub()
    }

    private func startEmptyHub() throws -> any HubUnderTest {
        try makeDirectory(directory)
        try removeFile(hubPath)
        return try openHub()
    }

    private func openHub() throws -> any HubUnderTest {
        switch way {
        case .http: return try HubProcess(storeAt: hubPath, workingSet)
        case .memory: return try HubInMemory(storeAt: hubPath, workingSet)
        }
    }

    /// Starts the hub unless it runs.
    func runningHub() throws -> any HubUnderTest {
        if let hub { return hub }
        let started = try startHub()
        hub = started
        return started
    }

    /// Another store in place of the replica: a copy, or an empty one.
    private func freshReplica(copyOf original: String? = nil) throws -> Store {
        try replica?.close()
        replica = nil
        try removeFile(replicaPath)
        if let original { try copyFolder(original, to: replicaPath) }
        return try openReplica(.process)
    }

    private func openReplica(_ durability: Durability) throws -> Store {
        let store = try Store.open(
            at: replicaPath, options: StoreOptions(durability: durability))
        replica = store
        return store
    }

    /// The replica that has everything the hub had, with the durability that is asked for.
    private func sharedReplica(_ durability: Durability) throws -> Store {
        guard let replica else { throw BenchmarkFailure("the replica was not prepared") }
        guard replica.options.durability != durability else { return replica }
        try replica.close()
        self.replica = nil
        return try openReplica(durability)
    }

    /// Has a replica that has everything the hub has.
    func prepareReplica() async throws {
        if replica == nil { _ = try await bootstrap() }
    }

    func stop() async throws {
        try replica?.close()
        replica = nil
        try await hub?.stop()
        hub = nil
        try removeFile(directory)
    }

    // MARK: - Workloads

    func bootstrap() async throws -> Measurement {
        let hub = try runningHub()
        let store = try freshReplica()
        let (measurement, result) = try await exchange(store, hub)
        try require(
            result.pulled == workingSet.recordCount,
            "bootstrap brought \(result.pulled) records of \(workingSet.recordCount)")
        try checkEqual(store, hub)
        return measurement.of(result.pulled)
    }

    /// The hub has changed some records; the replica takes them.
    func pullChanges(_ count: Int, _ durability: Durability) async throws -> Measurement {
        let hub = try runningHub()
        let store = try sharedReplica(durability)
        generation += 1
        try hub.give(.change(count: count, generation: generation))
        _ = try hub.answer()
        let (measurement, result) = try await exchange(store, hub)
        try require(
            result.pulled == count && result.pushed == 0,
            "\(count) changes, but \(result.pulled) came and \(result.pushed) left")
        return measurement.of(count)
    }

    /// The replica has changed some records; the hub gets them.
    func pushChanges(_ count: Int, _ durability: Durability) async throws -> Measurement {
        let hub = try runningHub()
        let store = try sharedReplica(durability)
        generation += 1
        try workingSet.write(
            workingSet.changed(count, generation: generation), generation: generation,
            to: store.dataset(WorkingSet.datasetName))
        let (measurement, result) = try await exchange(store, hub)
        try require(
            result.pushed == count && result.pulled == 0,
            "\(count) changes, but \(result.pushed) left and \(result.pulled) came")
        return measurement.of(count)
    }

    /// A replica that has everything meets a hub that has nothing.
    func firstPush() async throws -> Measurement {
        try await hub?.stop()
        let hub = try startEmptyHub()
        self.hub = hub
        let store = try freshReplica(copyOf: pristine.hub)
        let (measurement, result) = try await exchange(store, hub)
        try require(
            result.pushed == workingSet.recordCount,
            "\(result.pushed) records left of \(workingSet.recordCount)")
        try checkEqual(store, hub)
        // The next workload is to find those that have met.
        try await hub.stop()
        self.hub = nil
        try store.close()
        replica = nil
        return measurement.of(result.pushed)
    }

    /// Nothing has changed.
    func idle(exchanges: Int) async throws -> Measurement {
        let hub = try runningHub()
        let store = try sharedReplica(.process)
        var sum = Measurement(seconds: 0)
        for _ in 0..<exchanges {
            let (measurement, result) = try await exchange(store, hub)
            try require(result.pulled + result.pushed == 0, "an idle exchange brought records")
            sum.add(measurement)
        }
        return sum.divided(by: exchanges)
    }

    /// A replica that was apart since the dataset was made, and has half as many records of its
    /// own, meets a hub that has all. Half of its keys are the hub's with other values; of these,
    /// half are newer here and half there.
    func merge() async throws -> Measurement {
        // A hub of its own, because it must be the same one in each round.
        try await hub?.stop()
        hub = nil
        let hub = try runningHub()
        let store = try freshReplica(copyOf: pristine.replica)
        let n = workingSet.recordCount
        let own = (n - n / 4)..<(n + n / 4)
        try workingSet.write(
            workingSet.shuffled(own), generation: 1, to: store.dataset(WorkingSet.datasetName))
        try hub.give(.rewrite(lower: n - n / 8, upper: n, generation: 2))
        _ = try hub.answer()
        let (measurement, result) = try await exchange(store, hub)
        try require(
            result.conflicts == n / 4,
            "\(result.conflicts) conflicts instead of \(n / 4)")
        try checkEqual(store, hub)
        try require(
            store.dataset(WorkingSet.datasetName).count() == own.upperBound,
            "the merge did not end with \(own.upperBound) records")
        var merged = measurement.of(n + own.count)
        // The rate is that of the records of both sides, as found before.
        merged.more["conflicts"] = Double(result.conflicts)
        merged.more["pulled"] = Double(result.pulled)
        merged.more["pushed"] = Double(result.pushed)
        return merged
    }

    /// A replica that was apart since the dataset was made, and has written each of its records
    /// itself, meets the hub: all are in conflict, and half of them are newer there.
    func mergeHalfNewer() async throws -> Measurement {
        try await hub?.stop()
        hub = nil
        let hub = try runningHub()
        let store = try freshReplica()
        let n = workingSet.recordCount
        try workingSet.write(
            workingSet.shuffled(0..<n), generation: 1, to: store.dataset(WorkingSet.datasetName))
        try hub.give(.rewrite(lower: n / 2, upper: n, generation: 2))
        _ = try hub.answer()
        let (measurement, result) = try await exchange(store, hub)
        try require(
            result.conflicts == n && result.pushed == n,
            "\(result.conflicts) conflicts and \(result.pushed) sent instead of \(n)")
        try checkEqual(store, hub)
        // As in `merge`, the records of both sides.
        return measurement.of(2 * n)
    }

    /// Both have all records and have never met: as much as if they had lost their checkpoints.
    /// Each has changed half of some records, and they find out which.
    func reconcile(_ count: Int) async throws -> Measurement {
        try await hub?.stop()
        hub = nil
        let hub = try startHub(copyOf: pristine.strangers.hub)
        self.hub = hub
        let store = try freshReplica(copyOf: pristine.strangers.replica)
        try workingSet.write(
            workingSet.changed(count / 2, generation: 2), generation: 2,
            to: store.dataset(WorkingSet.datasetName))
        try hub.give(.change(count: count / 2, generation: 1))
        _ = try hub.answer()
        let (measurement, result) = try await exchange(store, hub)
        try require(
            result.pulled == count / 2 && result.pushed == count / 2,
            "\(result.pulled) came and \(result.pushed) left of \(count)")
        try checkEqual(store, hub)
        // The next workload is to find those that have met.
        try await hub.stop()
        self.hub = nil
        try store.close()
        replica = nil
        return measurement.of(count)
    }

    /// The hub and the replica that it shares a checkpoint with are equal, after whatever they
    /// exchanged.
    func checkSides() throws {
        guard let replica else { throw BenchmarkFailure("there is no replica to look at") }
        try checkEqual(replica, runningHub())
    }

    // MARK: - Parts

    private func exchange(
        _ store: Store, _ hub: any HubUnderTest
    ) async throws -> (Measurement, SyncResult) {
        let bytesBefore = hub.wireBytes()
        let messagesBefore = hub.transport.messageBytes
        let start = ContinuousClock.now
        let results = try await store.synchronize(
            with: hub.transport, datasets: [WorkingSet.datasetName])
        var measurement = Measurement(seconds: (ContinuousClock.now - start).seconds)
        guard let result = results.first else {
            throw BenchmarkFailure("nothing was exchanged")
        }
        if let bytesBefore, let bytesAfter = hub.wireBytes() {
            measurement.wireBytes = max(0, bytesAfter - bytesBefore)
        }
        measurement.messageBytes = hub.transport.messageBytes - messagesBefore
        return (measurement, result)
    }

    private func checkEqual(_ store: Store, _ hub: any HubUnderTest) throws {
        try hub.give(.digest)
        let ours = try store.dataset(WorkingSet.datasetName).digest().description
        let theirs = try hub.answer()
        try require(ours == theirs, "the sides differ: digest \(ours) here, \(theirs) there")
    }
}
