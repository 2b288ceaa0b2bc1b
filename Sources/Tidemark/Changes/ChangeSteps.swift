/// Walks over the changes of one dataset since a sync count, in the order of change: for each key
/// its newest version only. Costs in proportion to the changes, not to the dataset.
///
/// Of one dataset everything in a memtable has greater sync counts than everything in the runs and
/// in older memtables, so these are walked one after the other. Runs overlap, where a part of the
/// dataset was compacted by itself: they are merged.
struct ChangeSteps {
    private enum Source {
        case runs([SegmentRun])
        /// With the node of the newest change of the dataset, 0 if there is none.
        case memtable(Memtable, tail: UInt)
    }

    /// An entry of a memtable; the pointer is valid as long as the moment is.
    @safe
    private struct Place {
        let node: NodePointer
    }

    /// An entry is fetched from memory while so many before it are looked at: changes that follow
    /// on each other lie anywhere in the order of keys.
    private static let fetchedAhead = 6

    let moment: Moment
    let dataset: DatasetID
    /// Changes of other keys are passed over.
    private let range: KeyRange
    /// How many may be passed over in one call of ``nextOrPause(_:)``, or all in all after
    /// ``pause(afterSkips:)``.
    private var skipsLeft = Int.max
    /// The last change that was looked at.
    private(set) var through: UInt64
    private var sources: ArraySlice<Source>
    private var since: UInt64
    /// While the runs are the current source: a cursor for each segment that has more.
    private var cursors: [SegmentChanges] = []
    /// For each of them the number of its run: those before it are newer.
    private var runNumbers: [Int] = []
    /// The cursor that gave the last change, and the count before which no other has any: mostly
    /// each run has a span of counts for itself.
    private var leading: (index: Int, before: UInt64)?
    /// Changes that need not be looked at.
    private var superseded: SupersededChanges?
    /// Whether what was not superseded when that was found out is not superseded now, either.
    private var isDecided = false
    /// Of the current source, when it is a memtable.
    private var memtable: Memtable?
    private var places: ArraySlice<Place> = []

    init(_ moment: Moment, dataset: DatasetID, since: UInt64, range: KeyRange = .all) {
        self.moment = moment
        self.dataset = dataset
        self.since = since
        self.range = range
        through = since
        var sources: [Source] = [.runs(moment.view.runs)]
        for memtable in moment.view.memtables.reversed() {
            let tail = UInt(bitPattern: unsafe memtable.tail(of: dataset))
            sources.append(.memtable(memtable, tail: tail))
        }
        self.sources = sources[...]
    }

    /// The changes in a memtable, which are linked from the newest to the oldest. Not before their
    /// turn: who reads page after page may never come to them with this one.
    private func changes(in memtable: Memtable, from tail: UInt) -> [Place] {
        var found: [Place] = []
        var node = unsafe NodePointer(bitPattern: tail)
        while let current = unsafe node {
            let entry = unsafe memtable.entry(of: current)
            guard entry.syncCount > since else { break }
            if entry.sequence <= moment.sequenceMax {
                unsafe found.append(Place(node: current))
            }
            unsafe node = current.pointee.previousChange
        }
        return found.reversed()
    }

    /// Hands the next change to the body; nil at the end. The entry is valid during the call.
    mutating func next<Result>(
        _ body: (Entry, VersionTables) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        while true {
            if let result = try nextInRuns(body) { return result }
            if let result = try nextInMemtable(body) { return result }
            guard skipsLeft > 0 else { return nil }
            guard let source = sources.popFirst() else { return nil }
            switch source {
            case .runs(let runs):
                for (number, run) in runs.enumerated() {
                    for segment in run.segments {
                        cursors.append(
                            SegmentChanges(try segment.parts(), of: dataset, since: since))
                        runNumbers.append(number)
                    }
                }
            case .memtable(let next, let tail):
                memtable = next
                places = changes(in: next, from: tail)[...]
            }
        }
    }

    /// As ``next(_:)``, and nil also when so many changes have been passed over that the caller
    /// may have better to do; then `isPaused` is true, and the next call goes on.
    mutating func nextOrPause<Result>(
        skipsMax: Int, _ body: (Entry, VersionTables) throws(StoreError) -> Result
    ) throws(StoreError) -> (result: Result?, isPaused: Bool) {
        skipsLeft = skipsMax
        defer { skipsLeft = .max }
        let result = try next(body)
        return (result, result == nil && skipsLeft <= 0)
    }

    /// From now on ``next(_:)`` gives nil also when so many changes have been passed over.
    mutating func pause(afterSkips skipsMax: Int) {
        skipsLeft = skipsMax
    }

    /// From now on changes that are known to be superseded are passed over without a look.
    ///
    /// - Parameter count: the dataset's at the moment. If it is what it was when they were looked
    ///   for, the others are known to be the newest versions of their keys.
    mutating func leaveOut(_ superseded: SupersededChanges?, at count: UInt64 = .max) {
        self.superseded = superseded
        isDecided = superseded.map { $0.end == count } ?? false
    }

    /// Whether ``next(_:)`` gave nil because as many were passed over as may be. There may be more.
    var isPaused: Bool { skipsLeft <= 0 }

    private mutating func nextInMemtable<Result>(
        _ body: (Entry, VersionTables) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        guard let memtable else { return nil }
        while skipsLeft > 0, let place = places.popFirst() {
            let entry = unsafe memtable.entry(of: place.node)
            through = entry.syncCount
            let standing = superseded?.standing(of: through)
            if standing == true { continue }
            let isNewest = isDecided && standing == false
            let isTaken = try isNewest ? range.contains(entry.key) : isWanted(entry)
            if isTaken { return try body(entry, memtable.tables) }
            skipsLeft -= 1
        }
        return nil
    }

    /// Each segment holds its changes in their order: the least sync count comes next.
    private mutating func nextInRuns<Result>(
        _ body: (Entry, VersionTables) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
        while skipsLeft > 0 {
            guard let least = try leastOfRuns() else { return nil }
            cursors[least.index].pop()
            prefetch(after: least.index)
            through = least.change.syncCount
            let standing = superseded?.standing(of: through)
            if standing == true { continue }
            let isNewest = isDecided && standing == false
            let parts = cursors[least.index].parts
            let run = runNumbers[least.index]
            let result = try parts.withEntry(of: least.change) {
                (entry) throws(StoreError) -> Result? in
                let isTaken =
                    try isNewest
                    ? range.contains(entry.key)
                    : isWanted(entry, at: least.change.place, inRun: run)
                return isTaken ? try body(entry, parts.tables) : nil
            }
            if let result { return result }
            skipsLeft -= 1
        }
        return nil
    }

    @inline(__always)
    private func prefetch(after index: Int) {
        guard let ahead = cursors[index].ahead(Self.fetchedAhead) else { return }
        if superseded?.contains(ahead.syncCount) ?? false { return }
        cursors[index].parts.prefetch(ahead.place)
    }

    /// The next change of all runs, and whose it is.
    private mutating func leastOfRuns() throws(StoreError) -> (index: Int, change: Change)? {
        if let leading, let change = try cursors[leading.index].peek(),
            change.syncCount < leading.before
        {
            return (leading.index, change)
        }
        var least: (index: Int, change: Change)?
        var second = UInt64.max
        var index = 0
        while index < cursors.count {
            guard let change = try cursors[index].peek() else {
                // The least so far stands before it, and stays where it is.
                cursors.remove(at: index)
                runNumbers.remove(at: index)
                continue
            }
            if change.syncCount < least?.change.syncCount ?? .max {
                second = least?.change.syncCount ?? .max
                least = (index, change)
            } else {
                second = min(second, change.syncCount)
            }
            index += 1
        }
        leading = least.map { (index: $0.index, before: second) }
        return least
    }

    /// The same of an entry of a run, which mostly says itself whether it is the newest there.
    private func isWanted(
        _ entry: Entry, at place: EntryPlace, inRun run: Int
    ) throws(StoreError) -> Bool {
        // What comes before the first one of a block, only the block before could tell.
        guard place.offset > DataBlock.entriesOffset else { return try isWanted(entry) }
        guard !entry.isSuperseded, range.contains(entry.key) else { return false }
        return try !moment.view.hasNewer(
            than: run, of: entry.key, in: dataset, sequenceMax: moment.sequenceMax)
    }

    /// Whether the entry is of the range, and the newest version of its key at the moment.
    private func isWanted(_ entry: Entry) throws(StoreError) -> Bool {
        guard range.contains(entry.key) else { return false }
        let syncCount = entry.syncCount
        return try moment.view.withNewest(
            of: entry.key, in: dataset, sequenceMax: moment.sequenceMax
        ) { (newest, _) throws(StoreError) in
            newest?.syncCount == syncCount
        }
    }
}
