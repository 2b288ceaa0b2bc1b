/// What is in a store, counted.
public struct StoreStatistics: Hashable, Sendable {
    public struct Dataset: Hashable, Sendable {
        public let name: String
        /// Live records.
        public var recordCount = 0
        public var tombstoneCount = 0
        /// Bytes of the keys and values of live records.
        public var keyBytes = 0
        public var valueBytes = 0
        public let syncCount: SyncCount
        /// Records and tombstones that no peer is known to have.
        public var dirtyCount = 0
        /// Replicas that have written to the dataset.
        public let replicaCount: Int
    }

    public struct Segment: Hashable, Sendable {
        /// The name within the store's directory.
        public let file: String
        public let isSealed: Bool
        public let fileBytes: UInt64
        public let entryCount: Int
        public let tombstoneCount: Int
        /// Bytes of data blocks before compression, and as stored; for a log both are what has
        /// been written of it.
        public let rawBytes: UInt64
        public let storedBytes: UInt64
    }

    public let replicaID: ReplicaID
    public let formatVersion: Int
    /// In the order of their names.
    public let datasets: [Dataset]
    /// Newest first.
    public let segments: [Segment]
    /// Of all segments.
    public let fileBytes: UInt64
}

extension Store {
    /// Counts everything, by a pass over all keys of one moment. O(n).
    /// - Throws: `corruption`, `inputOutput`, `closed`.
    public func statistics() throws(StoreError) -> StoreStatistics {
        let snapshot = try snapshot()
        defer { snapshot.close() }
        var counted: [StoreStatistics.Dataset] = []
        for dataset in try datasets() {
            counted.append(try Self.count(dataset, at: snapshot))
        }
        let view = engine.currentView
        let written = engine.monitor.withLock { view.memtables.map(\.log.appended) }
        let logs = zip(view.memtables, written).map { $0.statistics(written: UInt64($1)) }
        let segments = logs + view.segments.map(\.statistics)
        return StoreStatistics(
            replicaID: replicaID, formatVersion: Int(FileHeader.formatVersion),
            datasets: counted, segments: segments,
            fileBytes: segments.reduce(0) { $0 + $1.fileBytes })
    }

    private static func count(
        _ dataset: Dataset, at snapshot: Snapshot
    ) throws(StoreError) -> StoreStatistics.Dataset {
        let knowledge = try dataset.knowledge()
        var row = StoreStatistics.Dataset(
            name: dataset.name, syncCount: knowledge.syncCount,
            replicaCount: knowledge.vector.count)
        let engine = dataset.engine
        let dirtiness = engine.monitor.withLock {
            dataset.state.dirtiness(ownIDs: engine.ownIDs)
        }
        let cursor = try snapshot.records(of: dataset, includingDeleted: true)
        while let (kind, key, value, dot) = try cursor.next({ entry, tables in
            (
                entry.isLive(at: cursor.now) ? EntryKind.put : .delete, entry.key.count,
                entry.value.count, tables.dot(of: entry)
            )
        }) {
            switch kind {
            case .put:
                row.recordCount += 1
                row.keyBytes += key
                row.valueBytes += value
            case .delete:
                row.tombstoneCount += 1
            }
            if dirtiness.isDirty(dot) { row.dirtyCount += 1 }
        }
        return row
    }
}

extension Memtable {
    fileprivate func statistics(written: UInt64) -> StoreStatistics.Segment {
        var cursor = MemtableCursor(self)
        cursor.seek(to: EntryPosition(before: .empty, in: 0))
        var entryCount = 0
        var tombstoneCount = 0
        while let entry = cursor.entry {
            entryCount += 1
            tombstoneCount += entry.kind == .delete ? 1 : 0
            cursor.stepForward()
        }
        return StoreStatistics.Segment(
            file: FileName.log(log.number), isSealed: false, fileBytes: UInt64(log.reserved),
            entryCount: entryCount, tombstoneCount: tombstoneCount, rawBytes: written,
            storedBytes: written)
    }
}

extension SealedSegment {
    fileprivate var statistics: StoreStatistics.Segment {
        StoreStatistics.Segment(
            file: FileName.sealed(number), isSealed: true, fileBytes: fileSize,
            entryCount: Int(clamping: footer.entryCount),
            tombstoneCount: Int(clamping: footer.tombstoneCount), rawBytes: footer.rawBytes,
            storedBytes: footer.storedBytes)
    }
}
