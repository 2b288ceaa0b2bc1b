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
    /// Whether all entries are walked over, as one run: then it is known which come soon.
    private let isWhole: Bool

    /// - Parameter isWhole: whether all entries will be walked over.
    init(_ memtable: Memtable, isWhole: Bool = false) {
        self.memtable = memtable
        self.isWhole = isWhole
        heads = memtable.sortedRuns(asOne: isWhole).map { Head(run: $0, index: 0) }
    }

    /// Over the entries of a dataset alone if they are few, else over all: so who reads what little
    /// the store itself has to remember, between one write to a large dataset and the next, does
    /// not have all of these sorted.
    ///
    /// - Parameter newest: the node of its newest change. What came later is not seen.
    init(_ memtable: Memtable, changesOf dataset: DatasetID, through newest: NodePointer) {
        let countMax =
            Limits.systemDatasetNumbers.contains(dataset) ? Self.storeEntriesMax : Self.entriesMax
        let run = unsafe memtable.run(through: newest, countMax: countMax)
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
    /// The same of one of the store's own, which is mostly small.
    private static let storeEntriesMax = 1_024

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
        if unsafe heads.count > 1 || heads[current].node == nil { choose(isForward: true) }
    }

    mutating func stepBack() {
        guard current >= 0 else { return }
        heads[current].index -= 1
        if unsafe heads.count > 1 || heads[current].node == nil { choose(isForward: false) }
    }

    /// A linear look: there are few runs.
    private mutating func choose(isForward: Bool) {
        current = -1
        var best: NodePointer?
        for index in heads.indices {
            guard let node = unsafe heads[index].node else { continue }
            if let chosen = unsafe best, unsafe memtable.precedes(node, chosen) != isForward {
                continue
            }
            unsafe best = node
            current = index
        }
    }
}
