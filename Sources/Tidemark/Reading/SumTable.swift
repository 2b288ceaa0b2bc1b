// Sums over the records of a dataset in leaves of neighbouring keys: what
// makes it cheap to sum over any range of keys, and to keep the sums up while records change.
//
// A table holds for one moment. To bring it to a later one, the leaves in which a key has changed
// since are walked over anew; what a record was before need not be known. So nothing is asked of
// writers, and nothing is stored: after a crash, a restore or a reopening there is no table, and
// the first one who asks walks over all records once.
//
// What changes the records without counting as a change of the dataset:
// - time, in which records expire: each leaf says from when and until when it holds;
// - compaction that forgets tombstones: a table in which tombstones count does not outlive the
//   segments that it was made over, and one without any only if nothing was collected since;
// - that more deletions count as forgotten, or others: then the leaves are walked over in which
//   tombstones count, or were passed over;
// - that the dataset was deleted or wiped: its records have another number then, and a table is
//   one of a number.

/// See above. A value: whoever has one has it for good.
struct SumTable: Sendable {
    /// Leaves that a table has at most when it is made: about 2 MB. Those of larger datasets, and
    /// of such with long keys, hold more records.
    static let leavesMax = 16_384
    /// Records in a leaf of a dataset that is small enough.
    static let leafRecordsMin = 64

    let dataset: DatasetID
    let kind: SumKind
    /// Tombstones that had seen no more than this do not count.
    let forgotten: VersionVector
    /// All changes up to here are in it.
    let syncCount: SyncCount
    /// The numbers of the segments of its moment.
    let segments: [UInt64]
    /// Records in a leaf at most.
    let leafRecordsMax: Int
    /// In the order of their keys, without gaps.
    let leaves: [SumLeaf]
    /// For each leaf, and for the end, the sum of all leaves before.
    private let sumsBefore: [RecordsSum]
    /// Tombstones that count.
    let deletedCount: Int
    /// Tombstones that do not because they are forgotten.
    let forgottenCount: Int
    /// When all leaves hold: see ``SumLeaf``.
    private let holdsFrom: UInt64
    private let holdsBefore: UInt64

    init(
        _ scan: SumScan, syncCount: SyncCount, segments: [UInt64], leafRecordsMax: Int,
        leaves: [SumLeaf]
    ) {
        dataset = scan.dataset
        kind = scan.kind
        forgotten = scan.forgotten
        self.syncCount = syncCount
        self.segments = segments
        self.leafRecordsMax = leafRecordsMax
        self.leaves = leaves
        var sums: [RecordsSum] = []
        sums.reserveCapacity(leaves.count + 1)
        var sum = RecordsSum()
        var (deleted, passedOver) = (0, 0)
        for leaf in leaves {
            sums.append(sum)
            sum.add(leaf.sum)
            deleted += leaf.deletedCount
            passedOver += leaf.forgottenCount
        }
        sums.append(sum)
        sumsBefore = sums
        deletedCount = deleted
        forgottenCount = passedOver
        holdsFrom = leaves.reduce(0) { max($0, $1.holdsFrom) }
        holdsBefore = leaves.reduce(.max) { min($0, $1.holdsBefore) }
    }

    /// The same of a later moment at which all leaves hold.
    ///
    /// - Parameter forgotten: has the same tombstones pass as before.
    init(
        _ other: SumTable, forgotten: VersionVector, syncCount: SyncCount, segments: [UInt64]
    ) {
        dataset = other.dataset
        kind = other.kind
        self.forgotten = forgotten
        self.syncCount = syncCount
        self.segments = segments
        leafRecordsMax = other.leafRecordsMax
        leaves = other.leaves
        sumsBefore = other.sumsBefore
        deletedCount = other.deletedCount
        forgottenCount = other.forgottenCount
        holdsFrom = other.holdsFrom
        holdsBefore = other.holdsBefore
    }

    /// Whether no record expires between the moment of the table and that time.
    func holds(at now: UInt64) -> Bool {
        now >= holdsFrom && now < holdsBefore
    }

    /// Of all records.
    var total: RecordsSum { sumBefore(leaves.count) }

    /// Of all leaves before that one.
    func sumBefore(_ index: Int) -> RecordsSum { sumsBefore[index] }

    /// Of all leaves from one to another, that one excluded.
    func sum(_ indices: Range<Int>) -> RecordsSum {
        var sum = sumBefore(indices.upperBound)
        sum.subtract(sumBefore(indices.lowerBound))
        return sum
    }

    /// The leaf to which a key belongs. O(log leaves).
    func leaf(of key: ByteView) -> Int {
        var low = 0
        var high = leaves.count
        while low < high {
            let middle = (low + high) / 2
            if KeyRange.compare(key, leaves[middle].lowerBound) < 0 {
                high = middle
            } else {
                low = middle + 1
            }
        }
        // The first one begins before every key.
        return max(0, low - 1)
    }

    /// The first leaf that begins at or after a bound; the number of leaves if none does.
    func firstLeaf(from bound: [UInt8]) -> Int {
        var low = 0
        var high = leaves.count
        while low < high {
            let middle = (low + high) / 2
            if leaves[middle].lowerBound.lexicographicallyPrecedes(bound) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }

    /// The keys of neighbouring leaves.
    func range(of indices: Range<Int>) -> KeyRange {
        let start = leaves[indices.lowerBound].lowerBound
        return KeyRange(
            from: start.isEmpty ? nil : start,
            upTo: indices.upperBound < leaves.count ? leaves[indices.upperBound].lowerBound : nil)
    }
}

/// Walks over the records of one moment and hashes them.
struct SumScan: Sendable {
    let moment: Moment
    /// 0 if there are no records.
    let dataset: DatasetID
    let kind: SumKind
    /// Tombstones that had seen no more than this do not count.
    var forgotten = VersionVector()

    /// Records between two words on how far a walk has come.
    private static let recordsUntoldMax = 4_096

    /// By which a hash is made; nil if the time does not matter.
    var now: UInt64? { kind == .contents ? moment.now : nil }

    /// Whether a record is summed over.
    private func counts(_ entry: Entry, _ tables: VersionTables) -> Bool {
        switch kind {
        case .contents:
            entry.isLive(at: moment.now)
        case .versions:
            entry.kind == .put || forgotten.isEmpty
                || !forgotten.covers(tables.version(of: entry).vector)
        }
    }

    /// O(records in the range).
    ///
    /// - Parameter body: is given no hash for a record that does not count.
    func forEach(
        in range: KeyRange, _ body: (Entry, RecordHash?) throws(StoreError) -> Void
    ) throws(StoreError) {
        guard dataset != 0, !range.isEmpty else { return }
        var hasher = RecordHasher(kind)
        var steps = try ScanSteps(
            moment, dataset: dataset, range: range, order: .forward, includingDeleted: true)
        while let entry = try steps.nextEntry() {
            // Marks of dropped records stand for nothing that is here.
            guard entry.stamp.counter > 0 else { continue }
            let tables = steps.tables
            try body(entry, counts(entry, tables) ? hasher.hash(entry, tables) : nil)
        }
    }

    func sum(of range: KeyRange) throws(StoreError) -> RecordsSum {
        var sum = RecordsSum()
        try forEach(in: range) { _, hash in
            if let hash { sum.add(hash) }
        }
        return sum
    }

    /// The records of a range in leaves. Where the range begins, so does the first leaf.
    func leaves(
        of range: KeyRange, recordsMax: Int
    ) throws(StoreError) -> [SumLeaf] {
        var maker = SumLeafMaker(
            from: range.lowerBound ?? [], recordsMax: recordsMax, now: now)
        try forEach(in: range) { entry, hash in maker.add(entry, hash) }
        return maker.finish()
    }

    /// A table made anew.
    ///
    /// - Parameter tell: called now and then with the bytes of keys and values since the last call.
    func table(
        syncCount: SyncCount, segments: [UInt64], tell: ((UInt64) -> Void)? = nil
    ) throws(StoreError) -> SumTable {
        var (untoldCount, untoldBytes) = (0, 0 as UInt64)
        var maker = SumLeafMaker(
            from: [], recordsMax: SumTable.leafRecordsMin, leavesMax: SumTable.leavesMax, now: now)
        try forEach(in: .all) { entry, hash in
            maker.add(entry, hash)
            untoldBytes &+= UInt64(entry.key.count + entry.valueCount)
            untoldCount += 1
            guard untoldCount >= Self.recordsUntoldMax else { return }
            tell?(untoldBytes)
            (untoldCount, untoldBytes) = (0, 0)
        }
        tell?(untoldBytes)
        let leafRecordsMax = maker.recordsMax
        return SumTable(
            self, syncCount: syncCount, segments: segments, leafRecordsMax: leafRecordsMax,
            leaves: maker.finish())
    }

    /// A table in which the marked leaves are walked over anew; nil if it would become too large.
    ///
    /// - Parameter isStale: for each leaf of the table.
    func renewed(
        _ table: SumTable, where isStale: [Bool], syncCount: SyncCount, segments: [UInt64]
    ) throws(StoreError) -> SumTable? {
        var leaves: [SumLeaf] = []
        leaves.reserveCapacity(table.leaves.count)
        var index = 0
        while index < table.leaves.count {
            guard isStale[index] else {
                leaves.append(table.leaves[index])
                index += 1
                continue
            }
            var end = index + 1
            while end < table.leaves.count, isStale[end] { end += 1 }
            leaves += try self.leaves(
                of: table.range(of: index..<end), recordsMax: table.leafRecordsMax)
            guard leaves.count <= 2 * SumTable.leavesMax else { return nil }
            index = end
        }
        return SumTable(
            self, syncCount: syncCount, segments: segments, leafRecordsMax: table.leafRecordsMax,
            leaves: leaves)
    }
}
