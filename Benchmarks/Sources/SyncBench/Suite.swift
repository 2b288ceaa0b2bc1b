import Foundation
import Tidemark

/// All workloads with records of one size.
final class Suite {
    private static let changeCounts = [1, 100, 1_000, 10_000, 100_000]
    /// Of values of a second size. A few changes take as long as round trips do, whatever they
    /// hold: these two say what a change costs by its bytes, and how it is with many.
    private static let laterChangeCounts = [1_000, 100_000]
    private static let idleExchanges = 20
    private static let differences = 1_000

    /// In the order in which they run, with values of the first size.
    static let workloads =
        exchanges(changeCounts)
        + ["sync-idle"] + ManyDatasets.datasetCounts.flatMap(ManyDatasets.workloads)
        + ["sync-first-push", "sync-reconcile", "sync-merge", "sync-merge-half-newer"]
        + [BootstrapMemory.workload]

    /// With values of further sizes. No value is moved by an idle exchange, and a thousand by a
    /// search for as many differences; and nobody stands beside a merge, which takes a minute.
    static let laterWorkloads = exchanges(laterChangeCounts)

    private static func exchanges(_ counts: [Int]) -> [String] {
        ["sync-bootstrap"] + counts.flatMap { ["sync-delta-\($0)", "sync-push-\($0)"] }
    }

    private let workingSet: WorkingSet
    private let isFirstSize: Bool
    private let directory: String
    private let pristine: PristineStores
    private let sessions: [TidemarkSession]
    private let manyDatasets: [ManyDatasets]
    private let bootstrapMemory: BootstrapMemory
    private let files: FilePeers
    private let redis: RedisPeer?

    /// - Parameter ways: how Tidemark's two sides are joined, each with rows of its own.
    /// - Parameter isFirstSize: whether values of this size get all workloads.
    init(
        _ workingSet: WorkingSet, _ ways: [TidemarkSession.Way], isFirstSize: Bool,
        in directory: String
    ) {
        self.workingSet = workingSet
        self.isFirstSize = isFirstSize
        self.directory = directory
        pristine = PristineStores(in: directory)
        sessions = ways.map { [pristine] way in
            TidemarkSession(way, workingSet, pristine, in: directory)
        }
        manyDatasets = ManyDatasets.datasetCounts.flatMap { count in
            ways.map { ManyDatasets(count, $0, workingSet, in: directory) }
        }
        bootstrapMemory = BootstrapMemory(workingSet, pristine, in: directory)
        files = FilePeers(workingSet, pristine, in: directory)
        redis = RedisPeer(workingSet, in: directory)
    }

    func run(_ runner: inout Runner) async throws {
        try makeDirectory(directory)
        try await pristine.make(workingSet)
        try await runner.run(bootstraps())
        let counts = isFirstSize ? Self.changeCounts : Self.laterChangeCounts
        for count in counts where count <= workingSet.recordCount / 2 {
            try await runner.run(deltas(count))
            try await runner.run(pushes(count))
        }
        guard isFirstSize else { return }
        try await runner.run(idles())
        // With few records, as --quick has them, the larger number would take most of the time.
        for count in ManyDatasets.datasetCounts where count <= workingSet.recordCount / 10 {
            try await runner.run(idles(datasetCount: count))
            try await runner.run(restarts(datasetCount: count))
        }
        try await runner.run(firstPushes())
        if Self.differences <= workingSet.recordCount / 10 {
            try await runner.run(reconciliations())
        }
        try await runner.run(merges("sync-merge") { try await $0.merge() })
        try await runner.run(merges("sync-merge-half-newer") { try await $0.mergeHalfNewer() })
        try await runner.run([bootstrapMemory.contender])
    }

    func stop() async throws {
        redis?.stop()
        for session in sessions { try await session.stop() }
        for session in manyDatasets { try await session.stop() }
        try files.stop()
        try removeFile(directory)
    }

    // MARK: - Contenders of each workload

    private func bootstraps() -> [Contender] {
        let ours = sessions.map { session in
            Contender(
                session.name("sync-bootstrap"), prepare: { _ = try session.runningHub() },
                round: { _ in try await session.bootstrap() })
        }
        return ours + files.bootstrap() + (redis.map { [$0.bootstrap()] } ?? [])
    }

    private func deltas(_ count: Int) -> [Contender] {
        let ours = changes("sync-delta-\(count)") { session, durability in
            try await session.pullChanges(count, durability)
        }
        return ours + files.delta(count, inBothWays: isFirstSize)
            + (redis.map { [$0.delta(count)] } ?? [])
    }

    private func pushes(_ count: Int) -> [Contender] {
        changes("sync-push-\(count)") { session, durability in
            try await session.pushChanges(count, durability)
        }
    }

    private func changes(
        _ workload: String,
        round: @escaping (TidemarkSession, Durability) async throws -> Measurement
    ) -> [Contender] {
        // At a second size the row that survives the loss of power would tell nothing new.
        let durabilities: [Durability] = isFirstSize ? [.process, .disk] : [.process]
        return sessions.flatMap { session in
            durabilities.map { durability in
                shared(session, session.name(workload, durability)) {
                    try await round(session, durability)
                }
            }
        }
    }

    private func idles() -> [Contender] {
        let ours = sessions.map { session in
            shared(session, session.name("sync-idle")) {
                try await session.idle(exchanges: Self.idleExchanges)
            }
        }
        let theirs = files.idle(exchanges: Self.idleExchanges)
        return ours + theirs + (redis.map { [$0.idle()] } ?? [])
    }

    private func idles(datasetCount: Int) -> [Contender] {
        manyDatasets.filter { $0.datasetCount == datasetCount }.map { session in
            Contender(
                session.name(), prepare: { try await session.prepare() },
                round: { _ in try await session.idle(exchanges: Self.idleExchanges) })
        }
    }

    private func restarts(datasetCount: Int) -> [Contender] {
        manyDatasets.filter { $0.datasetCount == datasetCount }.map { session in
            Contender(
                session.name(isRestarted: true), prepare: { try await session.prepare() },
                round: { _ in try await session.idleAfterRestart() })
        }
    }

    private func firstPushes() -> [Contender] {
        sessions.map { session in
            Contender(
                session.name("sync-first-push"), round: { _ in try await session.firstPush() })
        }
    }

    private func reconciliations() -> [Contender] {
        sessions.map { [pristine] session in
            Contender(
                session.name("sync-reconcile"), prepare: { try await pristine.makeStrangers() },
                round: { _ in try await session.reconcile(Self.differences) })
        }
    }

    private func merges(
        _ workload: String, round: @escaping (TidemarkSession) async throws -> Measurement
    ) -> [Contender] {
        sessions.map { session in
            Contender(session.name(workload), round: { _ in try await round(session) })
        }
    }

    private func shared(
        _ session: TidemarkSession, _ name: RowName,
        round: @escaping () async throws -> Measurement
    ) -> Contender {
        Contender(
            name, prepare: { try await session.prepareReplica() },
            check: { try session.checkSides() }, round: { _ in try await round() })
    }
}
