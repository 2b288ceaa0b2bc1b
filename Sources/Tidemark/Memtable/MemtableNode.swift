internal import Synchronization

/// One entry in a memtable: the fields of ``Entry``, and the links of a skip list behind them.
///
/// Everything but the links is written before the node is linked and never again.
@safe
struct MemtableNode {
    static let heightMax = 12

    /// The first eight bytes of the key, which decide most comparisons without another miss.
    let prefix: UInt64
    let keyBase: UnsafeRawPointer
    let valueBase: UnsafeRawPointer
    let syncCount: UInt64
    let sequence: UInt64
    let counter: UInt64
    let time: UInt64
    /// The node of the change before this one in the same dataset and memtable.
    let previousChange: UnsafeMutablePointer<MemtableNode>?
    let dataset: DatasetID
    let valueCount: UInt32
    let replica: UInt32
    let vector: UInt32
    let author: UInt32
    let keyCount: UInt16
    let kind: EntryKind
    let height: UInt8

    /// Bytes of a node with its links.
    static func byteCount(height: Int) -> Int {
        MemoryLayout<MemtableNode>.stride + height * MemoryLayout<Atomic<UInt>>.stride
    }

    var key: ByteView { unsafe ByteView(base: keyBase, count: Int(keyCount)) }

    var entry: Entry {
        Entry(
            dataset: dataset, kind: kind, key: key,
            value: unsafe ByteView(base: valueBase, count: Int(valueCount)),
            syncCount: syncCount, sequence: sequence, replica: replica, vector: vector,
            author: author, counter: counter, time: time)
    }

    /// Where this stands to a position: negative, 0 or positive.
    @inline(__always)
    func compare(_ position: EntryPosition, prefix wanted: UInt64) -> Int {
        if dataset != position.dataset { return dataset < position.dataset ? -1 : 1 }
        if prefix != wanted { return prefix < wanted ? -1 : 1 }
        let order = key.compare(position.key)
        if order != 0 { return order }
        return syncCount == position.syncCount
            ? 0 : (syncCount > position.syncCount ? -1 : 1)
    }
}

typealias NodePointer = UnsafeMutablePointer<MemtableNode>

extension UnsafeMutablePointer<MemtableNode> {
    /// The link of a level. The memory behind each node was made for it by `Memtable`, which
    /// knows the node's height and asks for no higher level.
    @inline(__always)
    private func link(_ level: Int) -> UnsafeMutablePointer<Atomic<UInt>> {
        unsafe (UnsafeMutableRawPointer(self) + MemoryLayout<MemtableNode>.stride)
            .assumingMemoryBound(to: Atomic<UInt>.self) + level
    }

    func initializeLinks(_ height: Int) {
        for level in 0..<height {
            unsafe link(level).initialize(to: Atomic(0))
        }
    }

    /// Acquiring: whoever sees the next node sees all of it.
    @inline(__always)
    func next(_ level: Int) -> NodePointer? {
        unsafe NodePointer(bitPattern: link(level).pointee.load(ordering: .acquiring))
    }

    @inline(__always)
    func setNext(_ level: Int, _ node: NodePointer?) {
        unsafe link(level).pointee.store(UInt(bitPattern: node), ordering: .releasing)
    }
}
