import Synchronization
import Tidemark

/// The pools of the settings with what their configuration says: kept in memory, since every update
/// asks for it, and in the dataset `hub:pools`.
///
/// Pools are few, and read when the hub starts. Changes are written first, and only what is
/// durable is seen here: so what an update goes by is never taken back by a crash.
final class PoolBook: Sendable {
    /// Of the hub's own datasets.
    static let datasetName = StoreNames.ownPrefix + "pools"

    private struct Entry: Sendable {
        var record: PoolRecord
        /// The version that was read; nil if the pool was never configured.
        var dot: Dot?
    }

    private let entries: Mutex<[PoolID: Entry]>
    private let behaviors: [PoolID: PoolBehavior]

    /// - Parameter behaviors: of all pools that there are.
    /// - Throws: as the store does; `corruption` for a record that nothing here has written.
    init(_ store: Store, behaviors: [PoolID: PoolBehavior]) throws(StoreError) {
        self.behaviors = behaviors
        var entries: [PoolID: Entry] = [:]
        let dataset = try store.existingDataset(Self.datasetName)
        for pool in behaviors.keys {
            entries[pool] = try Self.entry(of: pool, in: dataset)
        }
        self.entries = Mutex(entries)
    }

    var pools: [PoolID] {
        behaviors.keys.sorted { $0.text < $1.text }
    }

    /// nil if there is no such pool.
    func record(of pool: PoolID) -> PoolRecord? {
        entries.withLock { $0[pool]?.record }
    }

    /// What the settings have it do; of a pool that there is not, nothing.
    func behavior(of pool: PoolID) -> PoolBehavior {
        behaviors[pool] ?? PoolBehavior()
    }

    /// Where a pool's changes go; nil unless it is configured to have them go anywhere.
    func stream(of pool: PoolID) -> (any StreamTarget)? {
        guard record(of: pool)?.isStreaming ?? false else { return nil }
        return behaviors[pool]?.stream
    }

    /// Where notices go besides the devices that are connected; nil also if the pool is not
    /// configured to have push.
    func gateway(of pool: PoolID) -> (any PushGateway)? {
        guard record(of: pool)?.hasPush ?? false else { return nil }
        return behaviors[pool]?.gateway
    }

    /// Changes a pool's configuration, durably. On a writer thread.
    ///
    /// - Returns: what it is then.
    /// - Throws: `versionMismatch` if it was changed by somebody else at the same time; whatever
    ///   the change throws.
    func update(
        _ pool: PoolID, in store: Store, _ change: (inout PoolRecord) throws -> Void
    ) throws -> PoolRecord {
        guard let known = entries.withLock({ $0[pool] }) else {
            throw APIFailure(.resourceNotFound, "there is no such identity pool")
        }
        var record = known.record
        try change(&record)
        guard record != known.record else { return record }
        let dataset = try store.dataset(Self.datasetName)
        var batch = WriteBatch()
        batch.put(record.encoded, for: Array(pool.text.utf8), in: dataset, ifAt: known.dot)
        do {
            try store.write(batch)
        } catch {
            // Somebody else's may be there: the next attempt is to go by it.
            try? reload(pool, dataset)
            throw error
        }
        try reload(pool, dataset)
        return record
    }

    private func reload(_ pool: PoolID, _ dataset: Dataset) throws(StoreError) {
        let entry = try Self.entry(of: pool, in: dataset)
        entries.withLock { $0[pool] = entry }
    }

    private static func entry(
        of pool: PoolID, in dataset: Dataset?
    ) throws(StoreError) -> Entry {
        guard let found = try dataset?.record(for: pool.text), let value = found.value else {
            return Entry(record: PoolRecord(), dot: nil)
        }
        guard let record = PoolRecord(encoded: value) else {
            throw StoreError(
                .corruption,
                "the configuration of pool \(pool) in \(datasetName) is not of its form; put it "
                    + "back from a backup, or remove the record")
        }
        return Entry(record: record, dot: found.version.dot)
    }
}
