/// One entry in a memtable: where it lies in the log, and the links to older ones.
///
/// Small, since there is one for each operation of the log and all are held in memory; key, value
/// and stamp are in the mapped log. Everything is written before the node is published and never
/// again.
@safe
struct MemtableNode {
    /// The first byte of the entry, in the log.
    let start: UnsafeRawPointer
    /// The version of the same key that this one replaced in this memtable.
    let previousVersion: NodePointer?
    /// The node of the change before this one in the same dataset and memtable.
    let previousChange: NodePointer?
    /// The lower half of the hash of dataset and key.
    let hash: UInt32
    /// The place in the order of commits, counted from the memtable's first.
    let order: UInt32
}

typealias NodePointer = UnsafeMutablePointer<MemtableNode>

/// The nodes of a memtable in the order in which they came. One writer, any number of readers.
@safe
final class NodeStore: @unchecked Sendable {
    // Unchecked: the writer fills a node, and the place of its chunk, before it publishes a count
    // that includes it; readers ask only for nodes below a count that they have seen.

    private static let chunkBits = 13
    private static let chunkCount = 1 << chunkBits
    private static let chunkBytes = chunkCount * MemoryLayout<MemtableNode>.stride

    private let chunks: UnsafeMutablePointer<NodePointer?>
    private let chunkCountMax: Int
    @exclusivity(unchecked) private(set) var count = 0

    /// - Parameter countMax: nodes there can ever be; takes a thousandth of a byte each.
    init(countMax: Int) {
        chunkCountMax = (countMax >> Self.chunkBits) + 1
        unsafe chunks = .allocate(capacity: chunkCountMax)
        unsafe chunks.initialize(repeating: nil, count: chunkCountMax)
    }

    deinit {
        for index in 0..<chunkCountMax {
            if let chunk = unsafe chunks[index] {
                unsafe Pages.giveBack(chunk, byteCount: Self.chunkBytes)
            }
        }
        unsafe chunks.deallocate()
    }

    /// For readers: the index must be below a published count.
    @inline(__always)
    subscript(index: Int) -> NodePointer {
        unsafe chunks[index >> Self.chunkBits]! + (index & (Self.chunkCount - 1))
    }

    /// For the writer.
    @inline(__always)
    func append(_ node: MemtableNode) -> NodePointer {
        let index = unsafe count
        if index & (Self.chunkCount - 1) == 0 {
            precondition(
                index >> Self.chunkBits < chunkCountMax, "more entries than a log can hold")
            unsafe chunks[index >> Self.chunkBits] = Pages.take(byteCount: Self.chunkBytes)
                .bindMemory(to: MemtableNode.self, capacity: Self.chunkCount)
        }
        let place = unsafe self[index]
        unsafe place.initialize(to: node)
        unsafe count = index + 1
        return unsafe place
    }
}
