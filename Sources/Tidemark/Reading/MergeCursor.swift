/// Walks over the entries of several sources as if they were one, in one direction.
///
/// The sources stand in the order of their heads. As long as the one that was stepped stays in
/// front of the one that comes second, no other is looked at; else a binary search finds its new
/// place, which takes log(n) comparisons as the tree of a tournament would; there are few sources.
struct MergeCursor {
    private var memtables: [MemtableCursor]
    private var runs: [RunCursor]
    private let order: ScanOrder
    private let count: Int
    private var current = -1
    /// The sources after the current one that are not at their ends, in the order of their heads
    /// from the last to the first: so the one that comes next is taken off the end.
    private var others: [Int] = []
    /// nil at the end. Valid until the cursor moves.
    private(set) var entry: Entry?

    init(memtables: [MemtableCursor], runs: [RunCursor], order: ScanOrder) {
        self.memtables = memtables
        self.runs = runs
        self.order = order
        count = memtables.count + runs.count
    }

    /// Everything a view shows, memtables first.
    init(_ view: ReadView, order: ScanOrder) throws(StoreError) {
        let memtables = view.memtables.lazy.filter { !$0.isEmpty }.map { MemtableCursor($0) }
        self.init(memtables: Array(memtables), runs: try Self.runs(of: view), order: order)
    }

    /// All of one dataset in a range, and some of others. What it has few entries in is not sorted
    /// for it.
    init(
        _ view: ReadView, order: ScanOrder, of dataset: DatasetID, in range: KeyRange
    ) throws(StoreError) {
        var memtables: [MemtableCursor] = []
        for memtable in view.memtables {
            guard let newest = unsafe memtable.tail(of: dataset) else { continue }
            memtables.append(
                unsafe MemtableCursor(
                    memtable, changesOf: dataset, in: range, through: newest))
        }
        self.init(memtables: memtables, runs: try Self.runs(of: view), order: order)
    }

    private static func runs(of view: ReadView) throws(StoreError) -> [RunCursor] {
        var runs: [RunCursor] = []
        for run in view.runs {
            runs.append(try RunCursor(run))
        }
        return runs
    }

    @inline(__always)
    private func head(_ index: Int) -> Entry? {
        index < memtables.count
            ? memtables[index].entry : runs[index - memtables.count].entry
    }

    /// Forward: to the first entry at or after the position. Backward: to the last before it.
    mutating func seek(_ position: EntryPosition) throws(StoreError) {
        for index in memtables.indices {
            if order == .forward {
                memtables[index].seek(to: position)
            } else {
                memtables[index].seek(before: position)
            }
        }
        for index in runs.indices {
            if order == .forward {
                try runs[index].seek(to: position)
            } else {
                try runs[index].seek(before: position)
            }
        }
        choose()
    }

    /// Whether all sources are memtables. Their entries stay where they are as long as the cursor
    /// is there.
    var isOfMemtables: Bool { runs.isEmpty }

    /// The tables of the source of the current entry.
    var tables: VersionTables {
        current < memtables.count
            ? memtables[current].tables : runs[current - memtables.count].tables
    }

    @inline(__always)
    mutating func advance() throws(StoreError) {
        guard current >= 0 else { return }
        try step(current)
        settle()
    }

    /// Past all versions of the current entry's key. Forward only.
    @inline(__always)
    mutating func advancePastKey() throws(StoreError) {
        guard let passed = entry else { return }
        if isNextAt(passed) { try stepOthers(past: passed) }
        if current >= memtables.count {
            let index = current - memtables.count
            // In a segment an entry says itself that it has the key of the one before.
            repeat {
                try runs[index].stepForward()
            } while runs[index].entry?.isSuperseded ?? false
        } else {
            stepMemtable(past: passed)
        }
        settle()
    }

    private mutating func stepMemtable(past passed: Entry) {
        // Its key lies in the log and stays there.
        repeat {
            memtables[current].stepForward()
        } while memtables[current].entry.map { isSameKey($0, passed) } ?? false
    }

    /// Whether the source that comes second stands at the key of an entry.
    @inline(__always)
    private func isNextAt(_ passed: Entry) -> Bool {
        guard let next = others.last, let other = head(next) else { return false }
        return isSameKey(other, passed)
    }

    /// Those that stand at the same key come next, one after the other: each takes its new place
    /// among those that do not, so that nobody looks at the rest. A walk over what was deleted one
    /// after the other does this at each key.
    private mutating func stepOthers(past passed: Entry) throws(StoreError) {
        while isNextAt(passed) {
            let stepped = others[others.count - 1]
            repeat { try step(stepped) } while head(stepped).map { isSameKey($0, passed) } ?? false
            others.removeLast()
            if let entry = head(stepped) { others.insert(stepped, at: place(of: entry)) }
        }
    }

    @inline(__always)
    private func isSameKey(_ entry: Entry, _ other: Entry) -> Bool {
        entry.dataset == other.dataset && entry.key.equals(other.key)
    }

    @inline(__always)
    private mutating func step(_ index: Int) throws(StoreError) {
        if index < memtables.count {
            order == .forward
                ? memtables[index].stepForward() : memtables[index].stepBack()
        } else if order == .forward {
            try runs[index - memtables.count].stepForward()
        } else {
            try runs[index - memtables.count].stepBack()
        }
    }

    /// After the current source was stepped.
    @inline(__always)
    private mutating func settle() {
        entry = head(current)
        guard let next = others.last else {
            if entry == nil { current = -1 }
            return
        }
        if let stepped = entry, let other = head(next), comesFirst(stepped, other) { return }
        changePlaces()
    }

    /// The one that comes second becomes the current source, and that takes its place among the
    /// others.
    private mutating func changePlaces() {
        let stepped = current
        current = others.removeLast()
        if let entry { others.insert(stepped, at: place(of: entry)) }
        entry = head(current)
    }

    /// Where among the others a source with that head belongs. Mostly it stays in front of all of
    /// them, so that is looked at first.
    private func place(of entry: Entry) -> Int {
        guard let next = others.last, let second = head(next), !comesFirst(entry, second) else {
            return others.count
        }
        var low = 0
        var high = others.count - 1
        while low < high {
            let middle = (low + high) / 2
            if let other = head(others[middle]), comesFirst(entry, other) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }

    /// The sync counts, which are to be decoded first, are compared only where all else is equal.
    @inline(__always)
    private func comesFirst(_ entry: Entry, _ other: Entry) -> Bool {
        let isForward = order == .forward
        guard entry.dataset == other.dataset else {
            return (entry.dataset < other.dataset) == isForward
        }
        let difference = entry.key.compare(other.key)
        if difference != 0 { return (difference < 0) == isForward }
        let (count, otherCount) = (entry.syncCount, other.syncCount)
        return count != otherCount && (count > otherCount) == isForward
    }

    private mutating func choose() {
        others.removeAll(keepingCapacity: true)
        for index in 0..<count {
            if let entry = head(index) { others.insert(index, at: place(of: entry)) }
        }
        current = others.popLast() ?? -1
        entry = current < 0 ? nil : head(current)
    }
}
