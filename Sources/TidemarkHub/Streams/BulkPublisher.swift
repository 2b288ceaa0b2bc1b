import Logging
import Synchronization
import Tidemark
import TidemarkSync

/// Publishes all that a pool has to its stream: each dataset, as it is then, in the order of the
/// identities.
///
/// It is told like what replicas push: an entry of the outbox for each dataset, which is delivered
/// in its turn. So it is in order with updates of the dataset, is tried again until it is taken,
/// and holds nothing in memory. Some identities are done at a time; a hub that is started anew goes
/// on with those that it was at, and what was taken of them comes a second time.
final class BulkPublisher: Sendable {
    /// After a success, in milliseconds: one day.
    static let pauseMilliseconds: UInt64 = 86_400_000
    /// At a time.
    private static let identitiesMax = 64

    private let book: PoolBook
    private let threads: HubThreads
    private let directory: any PoolDirectory
    private let meter: OutboxMeter
    private let clock: any SyncEnvironment
    private let logger: Logger
    /// Called with the pool and a dataset for which something waits now.
    private let wake: @Sendable (PoolID, String) -> Void
    /// One for each pool, so that none waits for another one's receiver.
    private let signals: [PoolID: AsyncStream<Void>]
    private let signal: [PoolID: AsyncStream<Void>.Continuation]

    init(
        book: PoolBook, threads: HubThreads, directory: any PoolDirectory, meter: OutboxMeter,
        clock: any SyncEnvironment, logger: Logger,
        wake: @escaping @Sendable (PoolID, String) -> Void
    ) {
        self.book = book
        self.threads = threads
        self.directory = directory
        self.meter = meter
        self.clock = clock
        self.logger = logger
        self.wake = wake
        var signals: [PoolID: AsyncStream<Void>] = [:]
        var signal: [PoolID: AsyncStream<Void>.Continuation] = [:]
        for pool in book.pools {
            let (stream, continuation) = AsyncStream.makeStream(
                of: Void.self, bufferingPolicy: .bufferingNewest(1))
            signals[pool] = stream
            signal[pool] = continuation
        }
        self.signals = signals
        self.signal = signal
    }

    /// - Throws: `invalidParameter` if the pool has no stream that is on, `duplicateRequest` while
    ///   one is on its way, `alreadyStreamed` for a day after a success.
    func begin(_ pool: PoolID) async throws(APIFailure) {
        guard book.stream(of: pool) != nil else {
            throw APIFailure(
                .invalidParameter, "the pool's stream is off; turn it on, then publish")
        }
        let now = clock.now()
        try await threads.write { store in
            let dataset = try store.dataset(PoolBook.datasetName)
            let (state, dot) = try Self.stored(pool, dataset)
            switch state.status {
            case .inProgress:
                throw APIFailure(.duplicateRequest, "the pool is being published already")
            case .succeeded where now < (state.completed ?? 0) + Self.pauseMilliseconds:
                throw APIFailure(
                    .alreadyStreamed, "the pool was published within the last 24 hours")
            case .succeeded, .failed, .notStarted: break
            }
            var next = BulkPublishState()
            next.status = .inProgress
            next.started = now
            var batch = WriteBatch()
            batch.put(next.encoded, for: BulkPublishState.key(pool), in: dataset, ifAt: dot)
            do {
                try store.write(batch)
            } catch let error as StoreError where error.code == .versionMismatch {
                throw APIFailure(.duplicateRequest, "the pool is being published already")
            }
        }
        signal[pool]?.yield()
    }

    func state(of pool: PoolID) async throws(APIFailure) -> BulkPublishState {
        try await threads.read { store in
            guard let dataset = try store.existingDataset(PoolBook.datasetName) else {
                return BulkPublishState()
            }
            return try Self.stored(pool, dataset).state
        }
    }

    /// Publishes what was asked for, also before the hub was started. Returns when the task is
    /// cancelled. To be called once.
    func run() async {
        await withDiscardingTaskGroup { group in
            for (pool, asked) in signals {
                group.addTask {
                    self.signal[pool]?.yield()
                    for await _ in asked { await self.publishIfAsked(pool) }
                }
            }
        }
    }

    private func publishIfAsked(_ pool: PoolID) async {
        var failures = 0
        while !Task.isCancelled {
            do {
                let state = try await state(of: pool)
                guard state.status == .inProgress else { return }
                try await publishPart(of: pool, state)
                failures = 0
            } catch {
                guard !Task.isCancelled else { return }
                failures += 1
                logger.warning(
                    "a pool cannot be published; it is tried again",
                    metadata: ["pool": "\(pool)", "error": "\(error)"])
                let delay = BackOff(first: .seconds(1)).delay(
                    after: failures, random: clock.random())
                guard (try? await clock.sleep(for: delay)) != nil else { return }
            }
        }
    }

    /// The identities that come next; the end if there are none.
    private func publishPart(of pool: PoolID, _ state: BulkPublishState) async throws {
        var next = state
        guard book.stream(of: pool) != nil else {
            next.status = .failed
            next.failure = "the stream was turned off"
            next.completed = clock.now()
            return try await save(next, pool)
        }
        let directory = directory
        let identities = try await threads.read { store in
            try directory.identityIDs(
                of: pool, after: state.lastIdentity, limit: Self.identitiesMax, in: store)
        }
        guard let last = identities.last else {
            next.status = .succeeded
            next.completed = clock.now()
            return try await save(next, pool)
        }
        let keys = try await threads.write { store in
            try Self.noteDatasets(of: identities, pool, in: store)
        }
        for key in keys {
            meter.add(key.bytes.count, of: pool)
            wake(pool, key.dataset)
        }
        // Whoever turns the stream off while its receiver is dead need not wait for it.
        guard try await areTaken(keys, of: pool) else { return }
        next.lastIdentity = last
        try await save(next, pool)
    }

    /// Has all datasets of some identities told from their beginning.
    private static func noteDatasets(
        of identities: [IdentityID], _ pool: PoolID, in store: Store
    ) throws(StoreError) -> [Outbox.Key] {
        let outbox = try store.dataset(Outbox.datasetName)
        var batch = WriteBatch()
        var keys: [Outbox.Key] = []
        for identity in identities {
            for name in try store.datasetNames(prefix: StoreNames.prefix(of: identity)) {
                let key = Outbox.Key(pool, name, position: 0, .span)
                batch.put([], for: key.bytes, in: outbox)
                keys.append(key)
            }
        }
        try store.write(batch)
        return keys
    }

    /// Waits until all of these entries have been taken. Their rest may still wait: it is told
    /// from where they ended, before anything that comes later.
    ///
    /// - Returns: false if the stream is turned off before.
    private func areTaken(_ keys: [Outbox.Key], of pool: PoolID) async throws -> Bool {
        let pauses = BackOff(first: .milliseconds(10), longest: .seconds(1), jitter: 0)
        var rest = keys
        var attempts = 0
        while true {
            let asked = rest
            rest = try await threads.read { store -> [Outbox.Key] in
                guard let outbox = try store.existingDataset(Outbox.datasetName) else { return [] }
                return try asked.filter { try outbox.contains($0.bytes) }
            }
            guard !rest.isEmpty else { return true }
            guard book.stream(of: pool) != nil else { return false }
            attempts += 1
            try await clock.sleep(for: pauses.delay(after: attempts, random: 0))
        }
    }

    private func save(_ state: BulkPublishState, _ pool: PoolID) async throws(APIFailure) {
        try await threads.write { store in
            _ = try store.dataset(PoolBook.datasetName)
                .put(state.encoded, for: BulkPublishState.key(pool))
        }
    }

    private static func stored(
        _ pool: PoolID, _ dataset: Dataset
    ) throws(StoreError) -> (state: BulkPublishState, dot: Dot?) {
        guard let record = try dataset.record(for: BulkPublishState.key(pool)),
            let value = record.value
        else { return (BulkPublishState(), nil) }
        guard let state = BulkPublishState(encoded: value) else {
            throw StoreError(
                .corruption,
                "how far pool \(pool) is published is not in its form in \(PoolBook.datasetName); "
                    + "remove the record")
        }
        return (state, record.version.dot)
    }
}
