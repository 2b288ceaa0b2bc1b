import Synchronization
import TestSupport
import Tidemark
import TidemarkSync

/// One replica of ``FixtureStore`` under way: a store that runs inline on a simulated disk.
struct FixtureReplica {
    private static let path = "/store"

    let store: Store
    let disk: FixtureDisk
    private let executor: OneThreadExecutor

    init(
        _ id: ReplicaID, author: String, _ clock: FixtureClock, _ executor: OneThreadExecutor
    ) throws {
        disk = FixtureDisk(id, clock)
        self.executor = executor
        // Blocks as they are, so that no byte depends on the version of a library; and values of
        // a few hundred bytes apart, so that there are value files.
        var options = StoreOptions(
            durability: .process, author: author, segmentBytes: 1 << 20,
            blockCacheBytes: 1 << 20, historyVersions: 4, compactsAutomatically: false,
            compression: .none, largeValueBytes: 256)
        options.runsInline = true
        store = try Store.open(at: Self.path, options: options, storage: disk)
    }

    func put(_ value: String, _ dataset: String, _ key: String) throws {
        try store.dataset(dataset).put(value, for: key)
    }

    func delete(_ dataset: String, _ key: String) throws {
        try store.dataset(dataset).delete(key)
    }

    /// Exchanges a dataset with another replica, this one asking.
    ///
    /// - Parameter code: what the exchange has to end with; nil if it has to succeed.
    func exchange(
        _ dataset: String, with other: FixtureReplica, _ policy: MergePolicy = .lastWriterWins,
        validate: (@Sendable (Record) async throws -> Void)? = nil,
        endsWith code: SyncError.Code? = nil
    ) throws {
        var options = SyncOptions(policy: policy, adoptsSegments: false)
        options.journal.scope = .everything
        options.validate = validate
        let outcome = try outcome(
            of: try store.dataset(dataset), InMemoryTransport(SyncResponder(store: other.store)),
            options)
        let ended: SyncError.Code? =
            switch outcome {
            case .success: nil
            case .failure(let error): error.code
            }
        guard ended == code else {
            throw UnexpectedOutput(description: "\(dataset) was not exchanged: \(outcome)")
        }
    }

    private func outcome(
        of dataset: Dataset, _ transport: InMemoryTransport, _ options: SyncOptions
    ) throws -> Result<SyncResult, SyncError> {
        let ended = Ended()
        Task(executorPreference: executor) {
            let outcome: Result<SyncResult, SyncError>
            do throws(SyncError) {
                outcome = .success(
                    try await dataset.synchronize(with: transport, options: options))
            } catch {
                outcome = .failure(error)
            }
            ended.outcome.withLock { $0 = outcome }
        }
        while executor.runNext() {}
        guard let outcome = ended.outcome.withLock({ $0 }) else {
            throw UnexpectedOutput(description: "the exchange of \(dataset.name) waits for ever")
        }
        return outcome
    }

    private final class Ended: Sendable {
        let outcome = Mutex<Result<SyncResult, SyncError>?>(nil)
    }

    /// The files that a process leaves behind that is killed now; then closes the store.
    func killed() throws -> [String: [UInt8]] {
        let files = try disk.files(in: Self.path)
        try store.close()
        return files
    }
}
