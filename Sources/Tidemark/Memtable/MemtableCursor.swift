/// Walks over the entries of a memtable in their order: forward after a seek to a position,
/// backward after a seek to before one. Sees what was there when it was made, at least.
@safe
struct MemtableCursor {
    private struct Head {
        let run: SortedRuns.Run
        /// Of the run's node at which it stands; `run.count` or -1 at the end.
        var index: Int

        var node: NodePointer? {
            index >= 0 && index < run.count ? unsafe run[index] : nil
        }
    }

    let memtable: Memtable
    private var heads: [Head]
    private var current = -1
    /// Of the heads but the current one, the node that comes first in the direction of the walk.
    private var runnerUp: NodePointer?
    /// Whether all entries are walked over, as one run: then it is known which come soon.
    private let isWhole: Bool

    /// - Parameter isWhole: whether all entries will be walked over.
    init(_ memtable: Memtable, isWhole: Bool = false) {
        self.memtable = memtable
        self.isWhole = isWhole
        heads = memtable.sortedRuns(asOne: isWhole).map { Head(run: $0, index: 0) }
    }

    /// Over the entries of a dataset alone if it is one of the store's own, over those in a range
    /// if it has few, else over all: so who reads what little the store itself has to remember,
    /// between one write to a large dataset and the next, does not have all of these sorted.
    ///
    /// - Parameter newest: the node of its newest change. What came later may be passed by.
    init(
        _ memtable: Memtable, changesOf dataset: DatasetID, in range: KeyRange,
        through newest: NodePointer
    ) {
        guard !Limits.systemDatasetNumbers.contains(dataset) else {
            self.init(
                memtable, memtable.sortedRuns(of: dataset, through: UInt(bitPattern: newest)))
            return
        }
        let run = unsafe memtable.run(through: newest, in: range, countMax: Self.entriesMax)
        self.init(memtable, run.map { [$0] } ?? memtable.sortedRuns(asOne: false))
    }

    private init(_ memtable: Memtable, _ runs: [SortedRuns.Run]) {
        self.memtable = memtable
        isWhole = false
        heads = runs.map { Head(run: $0, index: 0) }
    }

    /// Entries of a dataset that are looked for one by one: as many as take no longer than to
    /// search a run for the start of a walk.
    private static let entriesMax = 32

    var tables: VersionTables { memtable.tables }

    var entry: Entry? {
        guard current >= 0, let node = unsafe heads[current].node else { return nil }
        return unsafe memtable.entry(of: node)
    }

    mutating func seek(to position: EntryPosition) {
        for index in heads.indices {
            heads[index].index = heads[index].run.count(before: position, memtable)
        }
        choose(isForward: true)
    }

    mutating func seek(before position: EntryPosition) {
        for index in heads.indices {
            heads[index].index = heads[index].run.count(before: position, memtable) - 1
        }
        choose(isForward: false)
    }

    mutating func stepForward() {
        guard current >= 0 else { return }
        heads[current].index += 1
        if isWhole { heads[current].run.prefetch(after: heads[current].index) }
        settle(isForward: true)
    }

    mutating func stepBack() {
        guard current >= 0 else { return }
        heads[current].index -= 1
        settle(isForward: false)
    }

    /// After the current head was moved: mostly it still comes first.
    @inline(__always)
    private mutating func settle(isForward: Bool) {
        if let node = unsafe heads[current].node {
            guard let other = unsafe runnerUp,
                unsafe memtable.precedes(node, other) != isForward
            else { return }
        }
        choose(isForward: isForward)
    }

    /// A linear look: there are few runs.
    private mutating func choose(isForward: Bool) {
        current = -1
        var best: NodePointer?
        var second: NodePointer?
        for index in heads.indices {
            guard let node = unsafe heads[index].node else { continue }
            if let chosen = unsafe best, unsafe memtable.precedes(node, chosen) != isForward {
                if let other = unsafe second, unsafe memtable.precedes(node, other) != isForward {
                    continue
                }
                unsafe second = node
                continue
            }
            unsafe second = best
            unsafe best = node
            current = index
        }
        unsafe runnerUp = second
    }
}
