/// What is in a store, counted.
public struct StoreStatistics: Hashable, Sendable {
    public struct Dataset: Hashable, Sendable {
        public let name: String
        /// Live records.
        public var recordCount = 0
        /// Marks of records that were dropped here alone are among them: see ``Record/isDropped``.
        public var tombstoneCount = 0
        /// Bytes of the keys and values of live records.
        public var keyBytes = 0
        public var valueBytes = 0
        public let syncCount: SyncCount
        /// Records and tombstones that no peer is known to have.
        public var dirtyCount = 0
        /// Replicas that have written to the dataset.
        public let replicaCount: Int
        /// Superseded versions that are still kept.
        public internal(set) var deadCount = 0
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
        /// Records whose newest version lies here.
        public internal(set) var liveCount = 0
        /// Entries that are neither the newest version of a record nor that of a deleted one:
        /// superseded ones, and those of deleted datasets. They go as compaction comes to them.
        public internal(set) var deadCount = 0
        /// Bytes of the keys and values of the live records, before compression; of values that lie
        /// apart none, which ``StoreStatistics/valueFiles`` tell of.
        public internal(set) var liveBytes: UInt64 = 0

        /// Bytes of the file for each byte of what is live in it, and of a log, of what has been
        /// written of it; nil if nothing is. What is above the other segments' is what compaction
        /// would win here.
        public var spaceAmplification: Double? {
            guard liveBytes > 0 else { return nil }
            return Double(isSealed ? fileBytes : storedBytes) / Double(liveBytes)
        }
    }

    public let replicaID: ReplicaID
    public let formatVersion: Int
    /// In the order of their names.
    public let datasets: [Dataset]
    /// Newest first.
    public let segments: [Segment]
    /// Oldest first.
    public let valueFiles: [StoreUsage.ValueFile]
    /// Of all segments and value files.
    public let fileBytes: UInt64

    /// Bytes of files for each byte of keys and values of live records; nil if there are none.
    /// Less than 1 where compression saves more than versions and indexes take.
    public var spaceAmplification: Double? {
        let live = datasets.reduce(0) { $0 + $1.keyBytes + $1.valueBytes }
        return live == 0 ? nil : Double(fileBytes) / Double(live)
    }
}

/// How often each segment holds the newest version of a record, and all entries of each dataset.
private struct EntryCounts {
    var live: [ObjectIdentifier: Int] = [:]
    /// Of these, bytes of keys and values that lie in the segment itself.
    var liveBytes: [ObjectIdentifier: UInt64] = [:]
    var tombstones: [ObjectIdentifier: Int] = [:]
    var all: [DatasetID: Int] = [:]
}

extension Store {
    /// Counts everything, by a pass over all keys of one moment. O(n); see ``usage()`` for what
    /// can be told without.
    /// - Throws: `corruption`, `inputOutput`, `closed`.
    public func statistics() throws(StoreError) -> StoreStatistics {
        let moment = try engine.moment()
        let view = moment.view
        var counts = EntryCounts()
        var segments: [StoreStatistics.Segment] = []
        let written = engine.withLock { held in view.memtables.map(\.log.appended) }
        var counted: [(row: StoreStatistics.Dataset, id: DatasetID)] = []
        for dataset in try datasets() {
            do throws(StoreError) {
                counted.append(try count(dataset, at: moment, &counts))
            } catch let error where error.code == .datasetNotFound {
                // Made after the moment, or deleted meanwhile.
                continue
            }
        }
        for which in SystemDataset.allCases {
            // They are no rows of their own, but what is live of them is not dead.
            guard let dataset = try existingSystemDataset(which) else { continue }
            do throws(StoreError) {
                _ = try count(dataset, at: moment, &counts)
            } catch let error where error.code == .datasetNotFound {
                continue
            }
        }
        for (memtable, bytes) in zip(view.memtables, written) {
            var row = memtable.statistics(written: UInt64(bytes), &counts.all)
            let tables = ObjectIdentifier(memtable.tables)
            row.liveCount = counts.live[tables] ?? 0
            row.liveBytes = counts.liveBytes[tables] ?? 0
            row.deadCount = max(
                0, row.entryCount - row.liveCount - (counts.tombstones[tables] ?? 0))
            segments.append(row)
        }
        for segment in view.segments {
            var row = segment.statistics
            let parts = try segment.parts()
            var ownCount = 0
            for dataset in try parts.datasets().rows {
                let entryCount = Int(clamping: dataset.entryCount)
                counts.all[dataset.dataset, default: 0] += entryCount
                if dataset.dataset == 0 { ownCount = entryCount }
            }
            let tables = ObjectIdentifier(parts.tables)
            row.liveCount = counts.live[tables] ?? 0
            row.liveBytes = counts.liveBytes[tables] ?? 0
            row.deadCount = max(
                0, row.entryCount - ownCount - row.liveCount - (counts.tombstones[tables] ?? 0))
            segments.append(row)
        }
        let valueFiles = engine.usage(of: view)
        return StoreStatistics(
            replicaID: replicaID, formatVersion: Store.formatVersion,
            datasets: counted.map { row, id in
                var row = row
                let entryCount = counts.all[id] ?? 0
                row.deadCount = max(0, entryCount - row.recordCount - row.tombstoneCount)
                return row
            }, segments: segments, valueFiles: valueFiles,
            fileBytes: valueFiles.reduce(segments.reduce(0) { $0 + $1.fileBytes }) {
                $0 + $1.fileBytes
            })
    }

    private func count(
        _ dataset: Dataset, at moment: Moment, _ counts: inout EntryCounts
    ) throws(StoreError) -> (StoreStatistics.Dataset, DatasetID) {
        let knowledge = try dataset.knowledge()
        var row = StoreStatistics.Dataset(
            name: dataset.name, syncCount: knowledge.syncCount,
            replicaCount: knowledge.vector.count)
        let (id, dirtiness) = try engine.scope(of: dataset.state, at: moment)
        let cursor = RecordCursor(
            try ScanSteps(
                moment, dataset: id, range: .all, order: .forward, includingDeleted: true),
            dirtiness)
        while let (kind, key, value, isApart, dot, tables) = try cursor.next({ entry, tables in
            (
                entry.isLive(at: cursor.now) ? EntryKind.put : .delete, entry.key.count,
                entry.valueCount, entry.isApart, tables.dot(of: entry), ObjectIdentifier(tables)
            )
        }) {
            switch kind {
            case .put:
                row.recordCount += 1
                row.keyBytes += key
                row.valueBytes += value
                counts.live[tables, default: 0] += 1
                counts.liveBytes[tables, default: 0] += UInt64(key + (isApart ? 0 : value))
            case .delete:
                row.tombstoneCount += 1
                counts.tombstones[tables, default: 0] += 1
            }
            if dirtiness.isDirty(dot) { row.dirtyCount += 1 }
        }
        return (row, id)
    }
}

extension Memtable {
    /// - Parameter counts: entries of each dataset, to which its own are added.
    fileprivate func statistics(
        written: UInt64, _ counts: inout [DatasetID: Int]
    ) -> StoreStatistics.Segment {
        var cursor = MemtableCursor(self)
        cursor.seek(to: EntryPosition(before: .empty, in: 0))
        var entryCount = 0
        var tombstoneCount = 0
        while let entry = cursor.entry {
            entryCount += 1
            counts[entry.dataset, default: 0] += 1
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

extension Store {
    /// The version of the file format that this build writes.
    package static var formatVersion: Int { Int(FileHeader.formatVersion) }
}
