/// Walks over the entries of several sources as if they were one, in one direction.
///
/// A linear look at the heads: there are few sources, and a heap costs more than it saves. Mostly
/// not even that: as long as the source that was stepped stays in front of the one that came
/// second, no other is looked at.
struct MergeCursor {
    private var memtables: [MemtableCursor]
    private var runs: [RunCursor]
    private let order: ScanOrder
    private let count: Int
    private var current = -1
    /// The source that comes next after the current one; -1 if there is none.
    private var second = -1
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
        var runs: [RunCursor] = []
        for run in view.runs {
            runs.append(try RunCursor(run))
        }
        let memtables = view.memtables.lazy.filter { !$0.isEmpty }.map { MemtableCursor($0) }
        self.init(memtables: Array(memtables), runs: runs, order: order)
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
        if second >= 0, let other = head(second), other.dataset == passed.dataset,
            other.key.equals(passed.key)
        {
            try stepOthers(past: passed)
        }
        if current >= memtables.count {
            let index = current - memtables.count
            // In a segment an entry says itself that it has the key of the one before.
            repeat {
                try runs[index].stepForward()
            } while runs[index].entry?.isSuperseded ?? false
        } else {
            try stepMemtable(past: passed)
        }
        settle()
    }

    private mutating func stepMemtable(past passed: Entry) throws(StoreError) {
        // Its key lies in the log and stays there.
        repeat {
            memtables[current].stepForward()
        } while memtables[current].entry.map {
            $0.dataset == passed.dataset && $0.key.equals(passed.key)
        } ?? false
    }

    private mutating func stepOthers(past passed: Entry) throws(StoreError) {
        for index in 0..<count where index != current {
            while let other = head(index), other.dataset == passed.dataset,
                other.key.equals(passed.key)
            {
                try step(index)
            }
        }
        second = -2
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
        if second == -1 {
            entry = head(current)
            if entry == nil { current = -1 }
            return
        }
        if second >= 0, let stepped = head(current), let other = head(second),
            comesFirst(stepped, other)
        {
            entry = stepped
            return
        }
        choose()
    }

    @inline(__always)
    private func comesFirst(_ entry: Entry, _ other: Entry) -> Bool {
        let difference = entry.position.compare(other.position)
        return order == .forward ? difference < 0 : difference > 0
    }

    private mutating func choose() {
        current = -1
        second = -1
        var first: Entry?
        var next: Entry?
        for index in 0..<count {
            guard let candidate = head(index) else { continue }
            if let best = first, !comesFirst(candidate, best) {
                if let known = next, !comesFirst(candidate, known) { continue }
                next = candidate
                second = index
            } else {
                next = first
                second = current
                first = candidate
                current = index
            }
        }
        entry = first
    }
}
