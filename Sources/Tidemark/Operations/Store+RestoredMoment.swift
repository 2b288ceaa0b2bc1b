/// What there was at the moment to which a store was put back.
public struct RestoredMoment: Hashable, Sendable {
    public struct Dataset: Hashable, Sendable {
        public let name: String
        public internal(set) var recordCount = 0
        public internal(set) var tombstoneCount = 0
    }

    public let time: HybridTime
    /// In the order of their names.
    public internal(set) var datasets: [Dataset] = []
    /// Datasets that have been deleted since: of their records nothing is left.
    public internal(set) var datasetsGone: [String] = []
}

extension Store {
    /// Makes a store of what a backup, or any store that can be opened, held at a past time.
    ///
    /// Each record has the version that it had then, with dot, vector, time and author; older ones
    /// do not come along. What a time means, and how far back it may be, says the article
    /// <doc:History>. The new store has a new ``ReplicaID``. Unless nobody else ever had a part in
    /// a dataset, it does not claim to have seen what came after the time: the next exchange with a
    /// peer brings back what the peer has, so keep it from its peers where that is not wanted.
    ///
    /// What is written is durable when this returns. After a failure the destination is no more
    /// than what was written until then: throw it away.
    ///
    /// O(records); unlike ``restore(from:to:linksFiles:observer:progress:)`` it writes each anew.
    ///
    /// - Parameters:
    ///   - destination: a directory that is missing or empty.
    ///   - progress: called on the calling thread.
    /// - Throws: `historyExpired` naming the dataset of which not everything is kept that could be
    ///   read then; `invalidArgument` if the time has not come yet or the destination is not empty;
    ///   what opening the backup throws; `diskFull`, `inputOutput`.
    @discardableResult
    public static func restore(
        from backup: String, to destination: String, at time: HybridTime,
        progress: ((BackupProgress) -> Void)? = nil
    ) throws(StoreError) -> RestoredMoment {
        try restore(
            from: backup, to: destination, at: time, storage: SystemStorage(), progress: progress)
    }

    /// The same behind any make of the door to the operating system.
    @discardableResult
    package static func restore(
        from backup: String, to destination: String, at time: HybridTime, storage: any Storage,
        progress: ((BackupProgress) -> Void)? = nil
    ) throws(StoreError) -> RestoredMoment {
        let source = try Store.open(
            at: backup, options: StoreOptions(createsIfMissing: false, isReadOnly: true),
            storage: storage)
        // Before anything is made: a time that cannot be read leaves nothing behind.
        let snapshot = try source.snapshot(at: time)
        for dataset in try source.datasets() { try snapshot.check(dataset) }
        guard try storage.provideDirectory(destination).isEmpty else {
            throw .notEmpty(destination)
        }
        // Begun here and not by opening it, which refuses to begin a store where one is missing
        // that was damaged: that is where a backup is to be restored.
        let id = ReplicaID(high: storage.randomUInt64(), low: storage.randomUInt64())
        try Manifest(replicaID: id, identity: StoreIdentity(drawnFrom: storage)).write(
            in: destination, storage: storage)
        let target = try Store.open(
            at: destination,
            options: StoreOptions(
                durability: .process, createsIfMissing: false, compactsAutomatically: false),
            storage: storage)
        let writer = try MomentWriter(source, snapshot, time, target, progress)
        let restored = try writer.write()
        try target.sync()
        try target.close()
        try source.close()
        return restored
    }
}

/// Copies one moment of a store into an empty one.
private final class MomentWriter {
    private static let batchBytes = 1 << 20
    private static let batchRecordsMax = 1_024

    private let source: Store
    private let snapshot: Snapshot
    private let target: Store
    private let progress: ((BackupProgress) -> Void)?
    /// Of keys and values, superseded ones included: more than will be read.
    private let bytesTotal: UInt64
    private var bytesDone: UInt64 = 0
    private var restored: RestoredMoment

    init(
        _ source: Store, _ snapshot: Snapshot, _ time: HybridTime, _ target: Store,
        _ progress: ((BackupProgress) -> Void)?
    ) throws(StoreError) {
        self.source = source
        self.snapshot = snapshot
        self.target = target
        self.progress = progress
        restored = RestoredMoment(time: time)
        let usage = try source.usage()
        let inLogs = usage.segments.filter { !$0.isSealed }.reduce(0) { $0 + $1.storedBytes }
        bytesTotal = usage.datasets.reduce(inLogs) { $0 &+ $1.keyBytes &+ $1.valueBytes }
    }

    func write() throws(StoreError) -> RestoredMoment {
        for name in try source.datasetNamesForSync() where DatasetName.isValid(name) {
            if let dataset = try source.existingDataset(name) {
                try write(dataset)
            } else if let known = try source.datasetForSync(name, creating: false) {
                let lifecycle = try known.knowledge().lifecycle
                if lifecycle.time > restored.time { restored.datasetsGone.append(name) }
            }
        }
        progress?(BackupProgress(bytesDone: bytesTotal, bytesTotal: bytesTotal))
        return restored
    }

    private func write(_ dataset: Dataset) throws(StoreError) {
        let records = try snapshot.records(of: dataset, includingDeleted: true)
        var row = RestoredMoment.Dataset(name: dataset.name)
        var copy: Dataset?
        var batch = ReplicationBatch()
        var batchBytes = 0
        var seen = VersionVector()
        while let record = try records.next() {
            // The mark of what was let go there alone is no write of anybody's.
            guard !record.isDropped else { continue }
            if record.isDeleted { row.tombstoneCount += 1 } else { row.recordCount += 1 }
            batch.writes.append(
                ReplicatedWrite(
                    key: record.key,
                    content: .adopt(
                        value: record.value, version: record.version,
                        expiresAt: record.expiresAt),
                    expected: nil))
            seen.formUnion(record.version.vector)
            batchBytes += record.key.count + (record.value?.count ?? 0)
            guard batchBytes >= Self.batchBytes || batch.writes.count >= Self.batchRecordsMax
            else { continue }
            if copy == nil { copy = try target.dataset(dataset.name) }
            try apply(&batch, &batchBytes, to: copy)
        }
        let isBornLater = try dataset.knowledge().lifecycle.time > restored.time
        guard !isBornLater || copy != nil || !batch.writes.isEmpty else { return }
        if isSolitary(dataset), !seen.isEmpty { batch.seen = seen }
        if copy == nil { copy = try target.dataset(dataset.name) }
        try apply(&batch, &batchBytes, to: copy)
        restored.datasets.append(row)
    }

    private func apply(
        _ batch: inout ReplicationBatch, _ batchBytes: inout Int, to dataset: Dataset?
    ) throws(StoreError) {
        if let dataset, !batch.writes.isEmpty || batch.seen != nil {
            let moved = try dataset.replicate(batch)
            precondition(moved.isEmpty, "a new store has a record already")
        }
        bytesDone = min(bytesDone &+ UInt64(batchBytes), bytesTotal)
        progress?(BackupProgress(bytesDone: bytesDone, bytesTotal: bytesTotal))
        batch = ReplicationBatch()
        batchBytes = 0
    }

    /// Whether no replica but the store itself has ever had a part in a dataset, so that there is
    /// nobody who could bring anything.
    private func isSolitary(_ dataset: Dataset) -> Bool {
        let engine = source.engine
        return engine.withLock { held in
            let state = dataset.state
            let own = engine.ownIDs
            return state.peers.isEmpty && state.retired.isEmpty && state.outstanding.isEmpty
                && state.vector.dots.allSatisfy { own.contains($0.replica) }
        }
    }
}
