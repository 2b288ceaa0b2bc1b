/// Where the space of a store goes, told in bounded time: counts from the segments' own tables, and
/// what is live of each segment from a sample of its blocks.
///
/// A store whose segments have at most ``samplesMax`` blocks each is looked at as a whole, and then
/// every figure is exact. See ``Store/statistics()`` for a count of everything, whatever it takes.
package struct SpaceSurvey: Hashable, Sendable {
    /// What was found among the entries that were looked at.
    package struct Counts: Hashable, Sendable {
        /// Records: the newest version of their key, and no deletion. What has expired and was not
        /// swept yet is among them.
        package var live = 0
        /// Deletions that are the newest version of their key.
        package var deletions = 0
        /// Versions that newer ones have superseded.
        package var superseded = 0
        /// Versions of records of datasets that were deleted.
        package var ownerless = 0
        /// Bytes of keys and values, wherever the values lie.
        package var bytes: UInt64 = 0
        /// Of these those that are live.
        package var liveBytes: UInt64 = 0

        package init() {}

        package var all: Int { live + deletions + superseded + ownerless }

        /// nil if nothing was looked at.
        package var liveShare: Double? { all == 0 ? nil : Double(live) / Double(all) }
    }

    package struct Segment: Hashable, Sendable {
        /// The name within the store's directory.
        package let file: String
        package let isSealed: Bool
        package let fileBytes: UInt64
        /// The store's own records included.
        package let entryCount: Int
        package let tombstoneCount: Int
        /// Bytes of keys and values, wherever the values lie, before compression.
        package let contentBytes: UInt64
        /// Of all that was looked at.
        package internal(set) var found = Counts()
        /// The same for equal stretches of the segment in the order of its entries.
        package internal(set) var cells: [Counts] = []
        /// What each of ``SpaceSurvey/heaviest`` has of it, in that order, and at last what all
        /// else has, the store's own records included. Empty if that one is.
        package internal(set) var portions: [Portion] = []
        /// Whether every entry was looked at.
        package internal(set) var isExact = true

        /// Bytes of keys and values that are live.
        package var liveBytesEstimate: UInt64 {
            guard found.bytes > 0 else { return 0 }
            return UInt64(Double(contentBytes) * (Double(found.liveBytes) / Double(found.bytes)))
        }
    }

    package struct Dataset: Hashable, Sendable {
        /// nil for what is left of deleted datasets.
        package let name: String?
        /// All versions of all records.
        package internal(set) var entryCount = 0
        /// Of these deletions.
        package internal(set) var tombstoneCount = 0
        package internal(set) var keyBytes: UInt64 = 0
        package internal(set) var valueBytes: UInt64 = 0
        package internal(set) var syncCount: SyncCount = .zero
        /// Of the versions that were looked at.
        package internal(set) var found = Counts()
        /// Live records in the segments in which anything was looked at, by the share of each.
        fileprivate var liveSum = 0.0
        /// Versions in the other segments.
        fileprivate var unseenCount = 0

        /// Live records; nil if none of its versions was looked at.
        package var liveEstimate: Int? {
            guard let share = found.liveShare else { return entryCount == 0 ? 0 : nil }
            return Int((liveSum + Double(unseenCount) * share).rounded())
        }
    }

    /// Newest first: the logs, then the runs.
    package let segments: [Segment]
    /// Those of users in the order of their names, then the store's own, then what none has.
    package let datasets: [Dataset]
    /// Names of those with the most bytes of keys and values, these first; as many as were asked
    /// for.
    package let heaviest: [String]
    /// Oldest first.
    package let valueFiles: [StoreUsage.ValueFile]
    /// Of all segments and value files.
    package let fileBytes: UInt64

    /// Whether everything was looked at.
    package var isExact: Bool { segments.allSatisfy(\.isExact) }

    /// Bytes on disk for each byte of a key or value that is live; nil if nothing is.
    package var spaceAmplification: Double? {
        let live = segments.reduce(0) { $0 + $1.liveBytesEstimate }
        return live == 0 ? nil : Double(fileBytes) / Double(live)
    }

    /// Blocks of a segment that are looked at, at most.
    package static let samplesMax = 64
    /// Of all segments together: as many as take some tens of milliseconds. No segment has fewer
    /// than ``samplesMin``.
    static let samplesOfAllMax = 512
    static let samplesMin = 8
    /// Bytes of blocks that are read, before compression: one block may hold a value of 256 MiB.
    static let sampledBytesMax = 32 << 20
    /// Entries of a log that are looked up.
    static let logLookupsMax = 4_096
}

extension Store {
    /// Where the space goes. O(segments, datasets in each, and what the logs hold), with a bounded
    /// number of blocks read.
    ///
    /// - Parameters:
    ///   - cellsMax: stretches that a segment's map has at most: 1...
    ///   - heaviestMax: datasets of which it is told what each segment holds of them: 0...
    ///   - tell: called after each segment.
    /// - Throws: `corruption`, `inputOutput`, `closed`.
    package func spaceSurvey(
        cellsMax: Int = 32, heaviestMax: Int = 0, tell: () -> Void = {}
    ) throws(StoreError) -> SpaceSurvey {
        let view = try engine.moment().view
        let heaviest = try HeaviestDatasets(heaviestMax, of: view, in: engine)
        var work = SurveyWork(engine, view, cellsMax: max(1, cellsMax), heaviest)
        return try work.survey(tell)
    }
}

/// A survey under way.
private struct SurveyWork {
    private let engine: Engine
    private let view: ReadView
    private let cellsMax: Int
    private let heaviest: HeaviestDatasets
    private let buffer = BlockBuffer()
    private var bytesLeft = SpaceSurvey.sampledBytesMax
    private var rows: [DatasetID: SpaceSurvey.Dataset] = [:]
    /// Of the segment that is looked at.
    private var shares: [DatasetID: Share] = [:]

    private struct Share {
        var entryCount = 0
        var portion = SpaceSurvey.Portion()
    }

    init(_ engine: Engine, _ view: ReadView, cellsMax: Int, _ heaviest: HeaviestDatasets) {
        self.engine = engine
        self.view = view
        self.cellsMax = cellsMax
        self.heaviest = heaviest
    }

    mutating func survey(_ tell: () -> Void) throws(StoreError) -> SpaceSurvey {
        var segments: [SpaceSurvey.Segment] = []
        for memtable in view.memtables {
            segments.append(try segment(memtable))
            tell()
        }
        let sealedCount = max(1, view.segments.count)
        let samples = min(
            SpaceSurvey.samplesMax,
            max(SpaceSurvey.samplesMin, SpaceSurvey.samplesOfAllMax / sealedCount))
        for (run, content) in view.runs.enumerated() {
            for sealed in content.segments {
                segments.append(try segment(sealed, run: run, samples: samples))
                tell()
            }
        }
        let valueFiles = engine.usage(of: view)
        let values = valueFiles.reduce(0) { $0 + $1.fileBytes }
        return SpaceSurvey(
            segments: segments, datasets: try datasets(), heaviest: heaviest.names,
            valueFiles: valueFiles,
            fileBytes: segments.reduce(values) { $0 + $1.fileBytes })
    }

    // MARK: - Logs

    /// A log is scanned, which takes less than what opening the store took; of its entries as many
    /// are looked up as there is time for.
    private mutating func segment(_ memtable: Memtable) throws(StoreError) -> SpaceSurvey.Segment {
        let log = memtable.log
        let byteCount = engine.withLock { held in log.appended }
        let stride = max(1, memtable.count / SpaceSurvey.logLookupsMax)
        var cells = [SpaceSurvey.Counts](
            repeating: .init(), count: min(cellsMax, max(1, memtable.count)))
        var (entryCount, tombstoneCount) = (0, 0)
        var contentBytes: UInt64 = 0
        var scanner = LogScanner(
            log.bytes(through: byteCount), segment: log.number, log.identity)
        while let block = scanner.next() {
            let cell = min(cells.count - 1, block.offset * cells.count / max(1, byteCount))
            var reader = LogItemReader(block.payload, of: log)
            while let item = try reader.next(
                originCount: memtable.tables.originCount, at: block.offset, of: log)
            {
                guard case .entry(let entry, _) = item else { continue }
                entryCount += 1
                tombstoneCount += entry.kind == .delete ? 1 : 0
                contentBytes += UInt64(entry.key.count + entry.valueCount)
                try note(
                    entry.dataset, entryCount: 1, tombstoneCount: entry.kind == .delete ? 1 : 0,
                    keyBytes: UInt64(entry.key.count), valueBytes: UInt64(entry.valueCount))
                guard entryCount % stride == 0 else { continue }
                try count(entry, isNewest: try isNewest(entry), in: &cells[cell])
            }
        }
        return finished(
            SpaceSurvey.Segment(
                file: FileName.log(log.number), isSealed: false, fileBytes: UInt64(log.reserved),
                entryCount: entryCount, tombstoneCount: tombstoneCount,
                contentBytes: contentBytes), cells, isExact: stride == 1)
    }

    private func isNewest(_ entry: Entry) throws(StoreError) -> Bool {
        try view.withNewest(of: entry.key, in: entry.dataset, sequenceMax: .max) {
            (newest, _) throws(StoreError) in
            newest?.syncCount == entry.syncCount
        }
    }

    // MARK: - Sealed segments

    private mutating func segment(
        _ sealed: SealedSegment, run: Int, samples: Int
    ) throws(StoreError) -> SpaceSurvey.Segment {
        let parts = try sealed.parts()
        var contentBytes: UInt64 = 0
        for row in try parts.datasets().rows {
            contentBytes &+= row.keyBytes &+ row.valueBytes
            try note(
                row.dataset, entryCount: Int(clamping: row.entryCount),
                tombstoneCount: Int(clamping: row.tombstoneCount), keyBytes: row.keyBytes,
                valueBytes: row.valueBytes)
        }
        let blockCount = parts.directory.blockCount
        let cellCount = min(cellsMax, blockCount, samples)
        var cells = [SpaceSurvey.Counts](repeating: .init(), count: cellCount)
        var sampledCount = 0
        for cell in 0..<cellCount {
            let first = cell * blockCount / cellCount
            let count = (cell + 1) * blockCount / cellCount - first
            let wanted = min(count, max(1, samples / cellCount))
            for sample in 0..<wanted {
                // From the middle of as many equal stretches.
                let block = first + (2 * sample + 1) * count / (2 * wanted)
                if try look(at: block, of: parts, run: run, &cells[cell]) { sampledCount += 1 }
            }
        }
        return finished(
            SpaceSurvey.Segment(
                file: FileName.sealed(sealed.number), isSealed: true, fileBytes: sealed.fileSize,
                entryCount: Int(clamping: sealed.footer.entryCount),
                tombstoneCount: Int(clamping: sealed.footer.tombstoneCount),
                contentBytes: contentBytes), cells, isExact: sampledCount == blockCount)
    }

    /// False if the block is larger than what may still be read.
    private mutating func look(
        at block: Int, of parts: SegmentParts, run: Int, _ counts: inout SpaceSurvey.Counts
    ) throws(StoreError) -> Bool {
        let rawCount = try parts.rawCount(of: block)
        guard rawCount <= bytesLeft else { return false }
        bytesLeft -= rawCount
        let entries = try parts.view(of: block, in: buffer)
        for slot in 0..<entries.count {
            guard let entry = entries.entry(at: slot) else { continue }
            var isNewest = !entry.isSuperseded
            if isNewest {
                isNewest = try !view.hasNewer(
                    than: run, of: entry.key, in: entry.dataset, sequenceMax: .max)
            }
            try count(entry, isNewest: isNewest, in: &counts)
        }
        return true
    }

    // MARK: - Counting

    private mutating func count(
        _ entry: Entry, isNewest: Bool, in counts: inout SpaceSurvey.Counts
    ) throws(StoreError) {
        let bytes = UInt64(entry.key.count + entry.valueCount)
        let owner = try entry.dataset == 0 ? "" : name(of: entry.dataset)
        let isOwned = owner != nil
        func add(to counts: inout SpaceSurvey.Counts) {
            counts.bytes += bytes
            switch (isOwned, isNewest, entry.kind) {
            case (false, _, _): counts.ownerless += 1
            case (true, false, _): counts.superseded += 1
            case (true, true, .delete): counts.deletions += 1
            case (true, true, .put):
                counts.live += 1
                counts.liveBytes += bytes
            }
        }
        add(to: &counts)
        guard entry.dataset != 0 else { return }
        add(to: &shares[entry.dataset, default: Share()].portion.found)
    }

    /// Segments are sampled with different densities, so each counts by itself.
    private mutating func finished(
        _ segment: SpaceSurvey.Segment, _ cells: [SpaceSurvey.Counts], isExact: Bool
    ) -> SpaceSurvey.Segment {
        var segment = segment
        segment.cells = cells
        segment.isExact = isExact
        for cell in cells { segment.found += cell }
        segment.portions = portions(of: segment)
        for (dataset, share) in shares {
            guard var row = rows[dataset] else { continue }
            row.found += share.portion.found
            if let live = share.portion.found.liveShare {
                row.liveSum += live * Double(share.entryCount)
            } else {
                row.unseenCount += share.entryCount
            }
            rows[dataset] = row
        }
        shares = [:]
        return segment
    }

    private func portions(of segment: SpaceSurvey.Segment) -> [SpaceSurvey.Portion] {
        guard !heaviest.datasets.isEmpty else { return [] }
        var rest = SpaceSurvey.Portion(contentBytes: segment.contentBytes, found: segment.found)
        var portions: [SpaceSurvey.Portion] = []
        for dataset in heaviest.datasets {
            let portion = shares[dataset]?.portion ?? SpaceSurvey.Portion()
            portions.append(portion)
            rest.subtract(portion)
        }
        return portions + [rest]
    }

    private mutating func note(
        _ dataset: DatasetID, entryCount: Int, tombstoneCount: Int, keyBytes: UInt64,
        valueBytes: UInt64
    ) throws(StoreError) {
        guard dataset != 0 else { return }
        _ = try name(of: dataset)
        guard var row = rows[dataset] else { return }
        row.entryCount += entryCount
        row.tombstoneCount += tombstoneCount
        row.keyBytes &+= keyBytes
        row.valueBytes &+= valueBytes
        rows[dataset] = row
        var share = shares[dataset] ?? Share()
        share.entryCount += entryCount
        share.portion.contentBytes &+= keyBytes &+ valueBytes
        shares[dataset] = share
    }

    /// nil if no dataset has the number any more. Asked once for each.
    private mutating func name(of dataset: DatasetID) throws(StoreError) -> String? {
        if let known = rows[dataset] { return known.name }
        let (name, syncCount) = try engine.withState(numbered: dataset) {
            _, state -> (String?, UInt64) in
            guard let state, state.recordsID == dataset else { return (nil, 0) }
            return (state.name, state.syncCount)
        }
        var row = SpaceSurvey.Dataset(name: name)
        row.syncCount = SyncCount(rawValue: syncCount)
        rows[dataset] = row
        return name
    }

    /// Also those datasets that have no entry.
    private func datasets() throws(StoreError) -> [SpaceSurvey.Dataset] {
        var ownerless = SpaceSurvey.Dataset(name: nil)
        var named: [SpaceSurvey.Dataset] = []
        var seen: Set<String> = []
        for row in rows.values {
            guard let name = row.name else {
                ownerless += row
                continue
            }
            named.append(row)
            seen.insert(name)
        }
        for name in try engine.datasetNames(where: .visible) where !seen.contains(name) {
            named.append(SpaceSurvey.Dataset(name: name))
        }
        // The names of the store's own begin with a character behind all others.
        named.sort { ($0.name ?? "") < ($1.name ?? "") }
        return ownerless.entryCount == 0 ? named : named + [ownerless]
    }
}

extension SpaceSurvey.Counts {
    fileprivate static func += (left: inout Self, right: Self) {
        left.live += right.live
        left.deletions += right.deletions
        left.superseded += right.superseded
        left.ownerless += right.ownerless
        left.bytes += right.bytes
        left.liveBytes += right.liveBytes
    }

    /// - Parameter right: a part of the left.
    static func -= (left: inout Self, right: Self) {
        left.live -= right.live
        left.deletions -= right.deletions
        left.superseded -= right.superseded
        left.ownerless -= right.ownerless
        left.bytes -= right.bytes
        left.liveBytes -= right.liveBytes
    }
}

extension SpaceSurvey.Dataset {
    fileprivate static func += (left: inout Self, right: Self) {
        left.entryCount += right.entryCount
        left.tombstoneCount += right.tombstoneCount
        left.keyBytes &+= right.keyBytes
        left.valueBytes &+= right.valueBytes
        left.found += right.found
        left.liveSum += right.liveSum
        left.unseenCount += right.unseenCount
    }
}
