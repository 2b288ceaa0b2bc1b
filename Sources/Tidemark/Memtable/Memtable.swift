internal import Synchronization

/// The entries of one log segment, for readers: found by key at once, and in order on demand. One
/// writer at a time and any number of readers, who take no lock to find a key.
///
/// Keys and values are not copied: nodes point into the mapped log segment, which the memtable
/// holds. Thread rule: one thread at a time inserts; everything else from anywhere, but for what
/// says otherwise. Nothing is ever removed.
@safe
final class Memtable: @unchecked Sendable {
    // Unchecked: readers see nodes only through acquiring loads of addresses and counts that were
    // released after the node was complete; the mutable members belong to the writer.

    /// The log segment whose entries these are.
    let log: LogSegment
    private let keyHash: KeyHash
    let tables = VersionTables()
    /// The sequence before the first entry's.
    let sequenceBase: UInt64
    /// Held by every view of the time in which the log was the active one.
    let era = Era()
    private let keys: KeyTable
    private let nodes: NodeStore
    private let order = SortedRuns()
    private let storeOrder = StoreRuns()
    /// The node of the newest change of each dataset, but of that of the last change of all an
    /// older one, or none.
    private let tails = Mutex<[DatasetID: UInt]>([:])
    /// How many these are.
    @exclusivity(unchecked) private var tailCount = 0
    /// The dataset of the last change: mostly the next change is in the same.
    @exclusivity(unchecked) private var lastDataset: DatasetID = 0
    /// The node of the last change.
    private let lastNode = Atomic<UInt>(0)
    private let published = Atomic<Int>(0)
    @exclusivity(unchecked) private var staged: StagedEntries
    private let recycler: LogRecycler?

    /// - Parameters:
    ///   - sequenceBase: of the store when the log was begun.
    ///   - keys: an empty table.
    ///   - recycler: is given the log when nobody can read it any more.
    init(
        log: LogSegment, sequenceBase: UInt64, keys: KeyTable = KeyTable(keysExpected: 0),
        recycler: LogRecycler? = nil
    ) {
        self.log = log
        keyHash = log.identity.keyHash
        self.sequenceBase = sequenceBase
        self.recycler = recycler
        // No entry takes less than its head, one byte of key and its stamp.
        nodes = NodeStore(countMax: log.capacity / 8)
        self.keys = keys
        unsafe staged = StagedEntries()
    }

    deinit {
        recycler?.take(log)
    }

    /// The number of entries.
    var count: Int { published.load(ordering: .acquiring) }

    var isEmpty: Bool { count == 0 }

    /// How many keys there are. Only under the writer lock.
    var keyCount: Int { keys.count }

    /// See ``KeyTable/longSearches``.
    var longSearches: Int { keys.longSearches }

    /// Of memory, for the entries alone. Only under the writer lock.
    var nodeBytes: Int { unsafe nodes.count * MemoryLayout<MemtableNode>.stride }

    /// Of memory, for all that is here but the log. Only under the writer lock.
    var byteCount: Int {
        unsafe nodeBytes + keys.byteCount + tailCount * Self.bytesEachDataset
    }

    /// Whether an entry more would leave the memory that this takes within a bound: nodes, tables,
    /// and the states of datasets that the log keeps in memory. An empty one has room for any.
    /// Only under the writer lock.
    func hasRoom(within bytesMax: Int) -> Bool {
        nodeBytes <= nodeBytesMax(within: bytesMax) || nodeBytes == 0
    }

    /// What the bound leaves for nodes, beside the table for one key more and the datasets. Only
    /// under the writer lock.
    func nodeBytesMax(within bytesMax: Int) -> Int {
        let datasetBytes = unsafe tailCount * Self.bytesEachDataset
        return bytesMax - datasetBytes - keys.byteCountOfNext
    }

    /// The state of a dataset, its place in the catalog, and that of its newest change here.
    private static let bytesEachDataset = 384

    /// Adds an entry that lies in the mapped log. O(1) on average.
    ///
    /// - Parameter sequence: of its commit: not less than that of any entry before.
    func insert(_ entry: Entry, at start: UnsafeRawPointer, sequence: UInt64) {
        unsafe insert(entry.key, in: entry.dataset, at: start, sequence: sequence)
    }

    /// The same by what stands in it, for who has just written it.
    func insert(
        _ key: ByteView, in dataset: DatasetID, at start: UnsafeRawPointer, sequence: UInt64
    ) {
        unsafe insert(
            key, in: dataset, hash: keyHash.of(key, in: dataset), at: start,
            order: UInt32(sequence - sequenceBase))
    }

    /// The same for one of many: it is in the memtable when ``settle()`` returns. What it needs is
    /// fetched from memory meanwhile.
    ///
    /// - Parameter key: where it lies in the log, since it is looked at again later.
    func stage(
        _ key: ByteView, in dataset: DatasetID, at start: UnsafeRawPointer, sequence: UInt64
    ) {
        let hash = keyHash.of(key, in: dataset)
        keys.prefetch(hash: hash)
        let item = unsafe StagedEntries.Item(
            key: key, hash: hash, start: start, dataset: dataset,
            order: UInt32(sequence - sequenceBase))
        if unsafe staged.append(item) { settle() }
    }

    /// Adds what is staged.
    func settle() {
        for index in 0..<(unsafe staged.count) {
            let item = unsafe staged[index]
            unsafe insert(
                item.key, in: item.dataset, hash: item.hash, at: item.start, order: item.order)
        }
        unsafe staged.count = 0
    }

    /// Says that an entry of that key will be added soon.
    @inline(__always)
    func expect(_ key: ByteView, in dataset: DatasetID) {
        keys.prefetch(hash: keyHash.of(key, in: dataset))
    }

    @inline(__always)
    private func insert(
        _ key: ByteView, in dataset: DatasetID, hash: UInt64, at start: UnsafeRawPointer,
        order: UInt32
    ) {
        let isOfLast = unsafe lastDataset == dataset
        let previous = isOfLast ? lastNode.load(ordering: .relaxed) : tailBefore(dataset)
        let place = keys.place(of: key, in: dataset, hash: hash, self)
        let node = unsafe nodes.append(
            MemtableNode(
                start: start, previousVersion: place.node,
                previousChange: NodePointer(bitPattern: previous),
                hash: UInt32(truncatingIfNeeded: hash), order: order))
        lastNode.store(UInt(bitPattern: node), ordering: .releasing)
        unsafe keys.put(node, hash: hash, at: place)
        unsafe published.store(nodes.count, ordering: .releasing)
    }

    /// Where another dataset than that of the last change stands, whose node is filed for it.
    @inline(never)
    private func tailBefore(_ dataset: DatasetID) -> UInt {
        let last = lastNode.load(ordering: .relaxed)
        let (before, count) = tails.withLock { tails in
            if last != 0 { unsafe tails[lastDataset] = last }
            return (tails[dataset] ?? 0, tails.count)
        }
        unsafe lastDataset = dataset
        unsafe tailCount = count
        return before
    }

    @inline(__always)
    func entry(of node: NodePointer) -> Entry {
        let found = unsafe EntryLayout.entry(
            at: node.pointee.start, end: log.limit, timeBase: log.timeBase,
            sequence: sequenceBase + UInt64(node.pointee.order))
        guard let found else { preconditionFailure("a log changed after it was checked") }
        return found
    }

    /// Has the processor fetch what a search for a key looks at first.
    @inline(__always)
    func prefetch(hash: UInt64) {
        keys.prefetchForReaders(hash: hash)
    }

    /// The same for what it looks at after that.
    @inline(__always)
    func prefetchNode(hash: UInt64) {
        keys.prefetchNode(hash: hash)
    }

    /// The same for what it looks at last. False if it finds nothing.
    @inline(__always)
    func prefetchEntry(hash: UInt64) -> Bool {
        keys.prefetchEntry(hash: hash)
    }

    /// The newest version of a key that a reader of that sequence may see. O(1) on average, and
    /// one step for each version that is newer than that.
    @inline(__always)
    func newest(
        of key: ByteView, in dataset: DatasetID, hash: UInt64, sequenceMax: UInt64
    ) -> Entry? {
        var node = unsafe keys.node(of: key, in: dataset, hash: hash, self)
        while let found = unsafe node {
            if unsafe sequenceBase + UInt64(found.pointee.order) <= sequenceMax {
                return unsafe entry(of: found)
            }
            unsafe node = found.pointee.previousVersion
        }
        return nil
    }

    /// The node of the newest change of a dataset: not older than what the caller knows of.
    func tail(of dataset: DatasetID) -> NodePointer? {
        // What is not the last of all was filed before the last was stored.
        if let last = unsafe NodePointer(bitPattern: lastNode.load(ordering: .acquiring)),
            unsafe entry(of: last).dataset == dataset
        {
            return unsafe last
        }
        return unsafe NodePointer(bitPattern: tails.withLock { $0[dataset] ?? 0 })
    }

    /// All entries so far in sorted runs. O(n log n) for n entries since the last call.
    ///
    /// - Parameter asOne: whether to merge them all.
    func sortedRuns(asOne: Bool) -> [SortedRuns.Run] {
        order.runs(of: self, nodes, through: count, asOne: asOne)
    }

    /// The entries of one of the store's own datasets in sorted runs: all up to a change, whose
    /// node has that address, and maybe some that came later. O(log n) for each that came since the
    /// last call.
    func sortedRuns(of dataset: DatasetID, through newest: UInt) -> [SortedRuns.Run] {
        storeOrder.runs(of: dataset, through: newest, in: self)
    }
}

/// Entries that a memtable was given and has not added yet. For the writer.
@safe
struct StagedEntries: ~Copyable {
    @safe
    struct Item {
        let key: ByteView
        let hash: UInt64
        let start: UnsafeRawPointer
        let dataset: DatasetID
        let order: UInt32
    }

    /// So many that what the first needs is there when the last has come, and so few that it is
    /// not gone again.
    private static let countMax = 16

    private let items = UnsafeMutablePointer<Item>.allocate(capacity: countMax)
    fileprivate(set) var count = 0

    deinit { unsafe items.deallocate() }

    /// Returns whether no other would fit.
    @inline(__always)
    mutating func append(_ item: Item) -> Bool {
        unsafe (items + count).initialize(to: item)
        count += 1
        return count == Self.countMax
    }

    @inline(__always)
    subscript(index: Int) -> Item { unsafe items[index] }
}
