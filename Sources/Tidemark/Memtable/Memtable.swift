internal import Synchronization

/// The entries of one log segment, sorted: a skip list (Pugh, 1990) with one writer at a time and
/// any number of readers, who take no lock (the publication order of LevelDB's skip list).
///
/// Keys and values are not copied: nodes point into the mapped log segment, which the memtable
/// holds. Thread rule: `insert` and `tail` under the store's writer lock; everything else from
/// anywhere. Nothing is ever removed.
@safe
final class Memtable: @unchecked Sendable {
    // Unchecked: readers see nodes only through acquiring loads of links that were released after
    // the node was complete; the mutable members belong to the writer, under its lock.

    /// The log segment whose entries these are.
    let log: LogSegment
    let tables = VersionTables()
    private let arena = Arena()
    private let head: NodePointer
    private var height = 1
    private var random: UInt64
    private var tails: [DatasetID: UInt] = [:]
    private let published = Atomic<Int>(0)

    init(log: LogSegment) {
        self.log = log
        random = log.number &* 0x9E37_79B9_7F4A_7C15 | 1
        let memory = unsafe arena.allocate(
            MemtableNode.byteCount(height: MemtableNode.heightMax))
        unsafe head = memory.bindMemory(to: MemtableNode.self, capacity: 1)
        unsafe head.initializeLinks(MemtableNode.heightMax)
    }

    /// The number of entries.
    var count: Int { published.load(ordering: .acquiring) }

    var isEmpty: Bool { count == 0 }

    /// Adds an entry whose key and value lie in the mapped log. O(log n).
    func insert(_ entry: Entry) {
        let prefix = entry.key.prefix
        let position = entry.position
        var previous:
            (
                NodePointer?, NodePointer?, NodePointer?, NodePointer?, NodePointer?, NodePointer?,
                NodePointer?, NodePointer?, NodePointer?, NodePointer?, NodePointer?, NodePointer?
            ) = (nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil)
        unsafe withUnsafeMutableBytes(of: &previous) { bytes in
            let path = unsafe bytes.assumingMemoryBound(to: NodePointer?.self)
            unsafe findPath(to: position, prefix: prefix, into: path.baseAddress!)
            let nodeHeight = randomHeight()
            let tail = tails[entry.dataset] ?? 0
            let memory = unsafe arena.allocate(MemtableNode.byteCount(height: nodeHeight))
            let node = unsafe memory.bindMemory(to: MemtableNode.self, capacity: 1)
            unsafe node.initialize(
                to: MemtableNode(
                    prefix: prefix, keyBase: entry.key.base, valueBase: entry.value.base,
                    syncCount: entry.syncCount, sequence: entry.sequence,
                    counter: entry.counter, time: entry.time,
                    previousChange: NodePointer(bitPattern: tail), dataset: entry.dataset,
                    valueCount: UInt32(entry.value.count), replica: entry.replica,
                    vector: entry.vector, author: entry.author,
                    keyCount: UInt16(entry.key.count), kind: entry.kind,
                    height: UInt8(nodeHeight)))
            unsafe node.initializeLinks(nodeHeight)
            if nodeHeight > height {
                for level in height..<nodeHeight {
                    unsafe path[level] = head
                }
                height = nodeHeight
            }
            for level in 0..<nodeHeight {
                let before = unsafe path[level]!
                unsafe node.setNext(level, before.next(level))
                unsafe before.setNext(level, node)
            }
            tails[entry.dataset] = UInt(bitPattern: node)
        }
        published.wrappingAdd(1, ordering: .releasing)
    }

    /// The last node before a position on each level.
    private func findPath(
        to position: EntryPosition, prefix: UInt64, into path: UnsafeMutablePointer<NodePointer?>
    ) {
        var node = unsafe head
        for level in stride(from: height - 1, through: 0, by: -1) {
            while let next = unsafe node.next(level),
                unsafe next.pointee.compare(position, prefix: prefix) < 0
            {
                unsafe node = next
            }
            unsafe path[level] = node
        }
    }

    /// The last node before a position; nil if there is none. O(log n).
    func last(before position: EntryPosition) -> NodePointer? {
        let prefix = position.key.prefix
        var node = unsafe head
        // A reader may come before the writer's growth of the list: an empty level costs nothing.
        for level in stride(from: MemtableNode.heightMax - 1, through: 0, by: -1) {
            while let next = unsafe node.next(level),
                unsafe next.pointee.compare(position, prefix: prefix) < 0
            {
                unsafe node = next
            }
        }
        return unsafe node == head ? nil : node
    }

    /// The first node at or after a position; nil if there is none. O(log n).
    func first(atOrAfter position: EntryPosition) -> NodePointer? {
        unsafe (last(before: position) ?? head).next(0)
    }

    /// The newest version of a key that a reader of that sequence may see.
    func newest(
        of key: ByteView, in dataset: DatasetID, sequenceMax: UInt64
    ) -> Entry? {
        var node = unsafe first(atOrAfter: EntryPosition(before: key, in: dataset))
        while let found = unsafe node, unsafe found.pointee.dataset == dataset,
            unsafe found.pointee.key.equals(key)
        {
            if unsafe found.pointee.sequence <= sequenceMax {
                return unsafe found.pointee.entry
            }
            unsafe node = found.next(0)
        }
        return nil
    }

    /// The node of the newest change of a dataset. Only under the writer lock.
    func tail(of dataset: DatasetID) -> NodePointer? {
        unsafe NodePointer(bitPattern: tails[dataset] ?? 0)
    }

    /// Each level holds a quarter of the nodes of the one below.
    private func randomHeight() -> Int {
        random ^= random << 13
        random ^= random >> 7
        random ^= random << 17
        return min(MemtableNode.heightMax, 1 + random.trailingZeroBitCount / 2)
    }
}

/// Walks over the entries of a memtable in their order, either way.
@safe
struct MemtableCursor {
    let memtable: Memtable
    private var node: NodePointer?

    init(_ memtable: Memtable) {
        self.memtable = memtable
        unsafe node = nil
    }

    var tables: VersionTables { memtable.tables }

    var entry: Entry? { unsafe node.map { unsafe $0.pointee.entry } }

    mutating func seek(to position: EntryPosition) {
        unsafe node = memtable.first(atOrAfter: position)
    }

    mutating func seek(before position: EntryPosition) {
        unsafe node = memtable.last(before: position)
    }

    mutating func stepForward() {
        unsafe node = node?.next(0)
    }

    /// O(log n): a skip list has no links back.
    mutating func stepBack() {
        guard let current = unsafe node else { return }
        unsafe node = memtable.last(before: current.pointee.entry.position)
    }
}
