import ServiceLifecycle
import Synchronization
import Tidemark
import TidemarkSync

/// How many sync sessions each pool has had: one begins with each listing of records.
///
/// Counted in memory, and added to what is stored in the hub's own dataset `hub:usage` now and
/// then: whoever kills the hub loses what was counted since.
///
/// | key | value |
/// | --- | --- |
/// | id of the pool | 8 bytes, the highest first |
final class SyncSessionCounter: Sendable {
    static let datasetName = StoreNames.ownPrefix + "usage"

    /// Not stored yet. As many as the hub has pools at most: others were refused before.
    private let unsaved = Mutex<[PoolID: UInt64]>([:])
    /// Held while counts go from memory into the store, so that none is seen twice or not at all.
    private let saving = Mutex(())

    init() {}

    /// O(1).
    func note(_ pool: PoolID) {
        unsaved.withLock { $0[pool, default: 0] += 1 }
    }

    /// All sessions of a pool.
    /// - Throws: what the store throws.
    func count(of pool: PoolID, in store: Store) throws -> UInt64 {
        try saving.withLock { _ in
            let stored = try Self.stored(pool, in: try store.existingDataset(Self.datasetName))
            return stored + unsaved.withLock { $0[pool] ?? 0 }
        }
    }

    /// Stores what was counted.
    /// - Throws: what the store throws; then nothing of it is lost.
    func flush(to store: Store) throws {
        try saving.withLock { _ in
            let counts = unsaved.withLock { $0 }
            guard !counts.isEmpty else { return }
            let home = try store.dataset(Self.datasetName)
            var batch = WriteBatch()
            for (pool, count) in counts {
                let sum = try Self.stored(pool, in: home) + count
                batch.put(BigEndian.bytes(sum), for: Array(pool.text.utf8), in: home)
            }
            try store.write(batch)
            unsaved.withLock { unsaved in
                for (pool, count) in counts {
                    let rest = (unsaved[pool] ?? 0) - count
                    unsaved[pool] = rest > 0 ? rest : nil
                }
            }
        }
    }

    private static func stored(_ pool: PoolID, in home: Dataset?) throws -> UInt64 {
        var bytes = try home?.get(Array(pool.text.utf8)).map { $0[...] } ?? []
        // Far below what could overflow, so that a damaged count costs no more than itself.
        return min(BigEndian.take(&bytes) ?? 0, 1 << 62)
    }
}

/// Stores the counts of sync sessions every ten seconds, and when the hub shuts down.
struct SyncSessionFlusher: Service {
    let books: SyncBooks
    let threads: HubThreads
    let clock: any SyncEnvironment

    static let interval = Duration.seconds(10)

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do throws(CancellationError) {
                    try await clock.sleep(for: Self.interval)
                } catch {
                    return
                }
                await flush()
            }
        }
        await flush()
    }

    /// What could not be stored is counted on, and stored with the next.
    func flush() async {
        let sessions = books.sessions
        try? await threads.write { store in try sessions.flush(to: store) }
    }
}
