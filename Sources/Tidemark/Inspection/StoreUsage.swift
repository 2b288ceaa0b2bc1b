/// How much is where in a store, told by the tables of its segments: nothing is counted.
public struct StoreUsage: Hashable, Sendable {
    /// What one segment, or all of them together, have of one dataset.
    public struct Dataset: Hashable, Sendable {
        /// nil for entries that no dataset has any more: it was deleted, and they go at the next
        /// compaction.
        public let name: String?
        /// All versions of all records, those that newer ones have superseded included.
        public internal(set) var entryCount = 0
        /// Of these deletions, and marks of records that were dropped here alone: see
        /// ``Record/isDropped``.
        public internal(set) var tombstoneCount = 0
        /// Bytes of keys and values, before compression.
        public internal(set) var keyBytes: UInt64 = 0
        public internal(set) var valueBytes: UInt64 = 0
    }

    public struct Segment: Hashable, Sendable {
        /// The name within the store's directory.
        public let file: String
        public let isSealed: Bool
        public let fileBytes: UInt64
        public let entryCount: Int
        /// nil for a log, which has no tables.
        public let tombstoneCount: Int?
        /// Bytes of data blocks before compression, and as stored; for a log both are what has
        /// been written of it.
        public let rawBytes: UInt64
        public let storedBytes: UInt64
        /// Empty for a log. In the order of their names, at last what no dataset has any more.
        public let datasets: [Dataset]
    }

    /// A file of values that are kept apart from their keys, see
    /// ``StoreOptions/largeValueBytes``.
    public struct ValueFile: Hashable, Sendable {
        /// The name within the store's directory.
        public let file: String
        public let fileBytes: UInt64
        /// Values in it that any version of a record has.
        public let valueCount: Int
        /// Bytes of these as stored. What is not of them goes when it is more than a half.
        public let usedBytes: UInt64
    }

    /// Sums over the sealed segments, in the order of the names; at last what no dataset has any
    /// more.
    public let datasets: [Dataset]
    /// Newest first.
    public let segments: [Segment]
    /// Oldest first.
    public let valueFiles: [ValueFile]
    /// Of all segments and value files.
    public let fileBytes: UInt64
    /// Bytes of all data blocks, and of the values that lie apart, for each byte of those in the
    /// oldest run, which holds each key once or nearly so after compaction: 1.0 right after it,
    /// and more as newer runs supersede what is there. An estimate, since newer runs may hold new
    /// keys as well. 1.0 if there is no run.
    public let spaceAmplificationEstimate: Double
}

extension Store {
    /// What lies where, by the segments' own tables. O(segments, and datasets in each); reads one
    /// small block of each segment. For exact counts of what is live see ``statistics()``.
    ///
    /// - Throws: `corruption`, `inputOutput`, `closed`.
    public func usage() throws(StoreError) -> StoreUsage {
        let image = try engine.image()
        var sums: [String?: StoreUsage.Dataset] = [:]
        var segments = image.logs.reversed().map { log, byteCount in
            StoreUsage.Segment(
                file: FileName.log(log.number), isSealed: false, fileBytes: UInt64(log.reserved),
                entryCount: image.view.memtables.first { $0.log === log }?.count ?? 0,
                tombstoneCount: nil, rawBytes: UInt64(byteCount), storedBytes: UInt64(byteCount),
                datasets: [])
        }
        for segment in image.view.segments {
            let datasets = try datasets(of: segment)
            for dataset in datasets { sums[dataset.name, default: .init(dataset.name)] += dataset }
            segments.append(
                StoreUsage.Segment(
                    file: FileName.sealed(segment.number), isSealed: true,
                    fileBytes: segment.fileSize,
                    entryCount: datasets.reduce(0) { $0 + $1.entryCount },
                    tombstoneCount: datasets.reduce(0) { $0 + $1.tombstoneCount },
                    rawBytes: segment.footer.rawBytes, storedBytes: segment.footer.storedBytes,
                    datasets: datasets))
        }
        let runs = image.view.runs.map { run in
            run.segments.reduce(0) { $0 + $1.footer.rawBytes + $1.values.table.rawBytes }
        }
        let valueFiles = engine.usage(of: image.view)
        let oldest = runs.last ?? 0
        return StoreUsage(
            datasets: sums.values.sorted(by: StoreUsage.Dataset.comesBefore), segments: segments,
            valueFiles: valueFiles,
            fileBytes: valueFiles.reduce(segments.reduce(0) { $0 + $1.fileBytes }) {
                $0 + $1.fileBytes
            },
            spaceAmplificationEstimate: oldest == 0
                ? 1 : Double(runs.reduce(0, +)) / Double(oldest))
    }

    /// The store's own records are not among them.
    private func datasets(
        of segment: SealedSegment
    ) throws(StoreError) -> [StoreUsage.Dataset] {
        var rows: [String?: StoreUsage.Dataset] = [:]
        for row in try segment.parts().datasets().rows where row.dataset != 0 {
            let name = try engine.withState(numbered: row.dataset) { $1?.name }
            var dataset = StoreUsage.Dataset(name)
            dataset.entryCount = Int(clamping: row.entryCount)
            dataset.tombstoneCount = Int(clamping: row.tombstoneCount)
            dataset.keyBytes = row.keyBytes
            dataset.valueBytes = row.valueBytes
            rows[name, default: .init(name)] += dataset
        }
        return rows.values.sorted(by: StoreUsage.Dataset.comesBefore)
    }
}

extension StoreUsage.Dataset {
    fileprivate init(_ name: String?) {
        self.name = name
    }

    fileprivate static func += (left: inout Self, right: Self) {
        left.entryCount += right.entryCount
        left.tombstoneCount += right.tombstoneCount
        left.keyBytes &+= right.keyBytes
        left.valueBytes &+= right.valueBytes
    }

    fileprivate static func comesBefore(_ left: Self, _ right: Self) -> Bool {
        guard let first = left.name else { return false }
        guard let second = right.name else { return true }
        return first < second
    }
}

extension Engine {
    func usage(of view: ReadView) -> [StoreUsage.ValueFile] {
        valueTable(of: view).rows.map { row in
            StoreUsage.ValueFile(
                file: FileName.values(row.file), fileBytes: row.fileSize,
                valueCount: Int(clamping: row.valueCount), usedBytes: row.storedBytes)
        }
    }
}
