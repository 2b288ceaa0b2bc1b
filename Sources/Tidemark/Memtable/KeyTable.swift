internal import CTidemark
internal import Synchronization

/// The newest node of each key: a hash table with open addressing and linear probing (Knuth, The
/// Art of Computer Programming, volume 3, 6.4), one writer and any number of readers, who take no
/// lock.
///
/// A slot is 16 bits of the hash and 48 bits of a node's address, so a key that is not there costs
/// one cache line, nearly always, and one that is there two more. The table is at most half full.
/// A slot once taken stays with its key; only the node in it changes. A full table is replaced by
/// one of twice the size: readers in the old one still find all that was published when they
/// began.
@safe
final class KeyTable: @unchecked Sendable {
    // Unchecked: readers use `current` alone; all else belongs to the writer, under its lock.

    private static let addressBits: UInt64 = 48
    private static let addressMask: UInt64 = 1 << addressBits - 1
    private static let bitsFirst: UInt64 = 10
    /// A table of 128 MiB: what is expected is a guess.
    private static let bitsFirstMax: UInt64 = 24

    /// A place in the table; good until the next one is asked for.
    @safe
    struct Place {
        fileprivate let index: Int
        /// The node there, of the same key; nil in an empty place.
        let node: NodePointer?
    }

    /// What readers load: the address of the slots, which lie on a page's boundary, and in its
    /// lowest bits how many bits of a hash are an index.
    private let current = Atomic<UInt>(0)
    private static let bitsMask: UInt = 63
    /// All that were made before the current one, and their masks.
    @exclusivity(unchecked)
    private var former: [(memory: UnsafeMutablePointer<Atomic<UInt64>>, mask: UInt64)] = unsafe []
    @exclusivity(unchecked) private var memory: UnsafeMutablePointer<Atomic<UInt64>>
    @exclusivity(unchecked) private var mask: UInt64
    @exclusivity(unchecked) private var used: UInt64 = 0

    /// In a table that is half full one step and a half are usual, and so many have less than one
    /// chance in a thousand million.
    static let longSteps: UInt64 = 128
    private let longSearchCount = Atomic<Int>(0)
    /// How many searches for a place took at least ``longSteps`` steps: 0, or somebody knows the
    /// seed of the hashes. From any thread.
    var longSearches: Int { longSearchCount.load(ordering: .relaxed) }

    /// Of all tables together.
    @exclusivity(unchecked) private(set) var byteCount: Int

    /// - Parameter keysExpected: for so many it need not grow, which would take some milliseconds
    ///   for each hundred thousand keys, and leave the smaller tables behind.
    init(keysExpected: Int) {
        var bits = Self.bitsFirst
        while bits < Self.bitsFirstMax, (keysExpected + 1) * 2 >= 1 << bits { bits += 1 }
        unsafe mask = 1 << bits - 1
        unsafe byteCount = Self.byteCount(mask: mask)
        unsafe memory = Self.allocate(mask: mask)
        publish()
    }

    /// Gives readers the table that the writer has.
    private func publish() {
        let bits = unsafe UInt((mask + 1).trailingZeroBitCount)
        unsafe current.store(UInt(bitPattern: memory) | bits, ordering: .releasing)
    }

    deinit {
        unsafe former.append((memory, mask))
        for index in unsafe former.indices {
            let (memory, mask) = unsafe former[index]
            unsafe Pages.giveBack(memory, byteCount: Self.byteCount(mask: mask))
        }
    }

    private static func byteCount(mask: UInt64) -> Int {
        (Int(mask) + 1) * MemoryLayout<Atomic<UInt64>>.stride
    }

    /// All slots are empty, which is what the zeros of fresh pages stand for. Hashes come in no
    /// order, so soon there is a key on each page.
    private static func allocate(mask: UInt64) -> UnsafeMutablePointer<Atomic<UInt64>> {
        unsafe Pages.takeWhole(byteCount: byteCount(mask: mask))
            .bindMemory(to: Atomic<UInt64>.self, capacity: Int(mask) + 1)
    }

    /// Of memory, once there is a key more. For the writer.
    var byteCountOfNext: Int {
        unsafe (used + 1) * 2 > mask ? byteCount + 2 * Self.byteCount(mask: mask) : byteCount
    }

    /// How many keys there are. For the writer.
    var count: Int { unsafe Int(used) }

    /// The newest node of a key; nil if there is none. For readers.
    @inline(__always)
    func node(
        of key: ByteView, in dataset: DatasetID, hash: UInt64, _ memtable: Memtable
    ) -> NodePointer? {
        let word = current.load(ordering: .acquiring)
        let memory = unsafe UnsafeMutablePointer<Atomic<UInt64>>(
            bitPattern: word & ~Self.bitsMask)!
        let mask = UInt64(1) << UInt64(word & Self.bitsMask) - 1
        return unsafe Self.find(key, in: dataset, hash: hash, memory, mask: mask, memtable).node
    }

    /// Has the processor fetch what ``place(of:in:hash:_:)`` will look at first: a table of some
    /// megabytes is in no cache that is near. For the writer.
    @inline(__always)
    func prefetch(hash: UInt64) {
        unsafe tidemark_prefetch(memory + Int(hash & mask))
    }

    /// The same for what readers look at.
    @inline(__always)
    func prefetchForReaders(hash: UInt64) {
        let word = current.load(ordering: .acquiring)
        let memory = unsafe UnsafeMutablePointer<Atomic<UInt64>>(
            bitPattern: word & ~Self.bitsMask)!
        let mask = UInt64(1) << UInt64(word & Self.bitsMask) - 1
        unsafe tidemark_prefetch(memory + Int(hash & mask))
    }

    /// Has the processor fetch the node that a search for that hash comes to first. For readers.
    @inline(__always)
    func prefetchNode(hash: UInt64) {
        if let node = unsafe likelyNode(hash: hash) { unsafe tidemark_prefetch(node) }
    }

    /// Has the processor fetch the entry of that node, as much of it as one of some hundred bytes
    /// takes. False if there is none. For readers.
    @inline(__always)
    func prefetchEntry(hash: UInt64) -> Bool {
        guard let node = unsafe likelyNode(hash: hash) else { return false }
        let start = unsafe node.pointee.start
        unsafe tidemark_prefetch(start)
        unsafe tidemark_prefetch(start + 64)
        unsafe tidemark_prefetch(start + 128)
        return true
    }

    /// The first node whose place says that it may be of a key with that hash. Nobody looks into
    /// its entry, so that it may be of another.
    @inline(__always)
    private func likelyNode(hash: UInt64) -> NodePointer? {
        let word = current.load(ordering: .acquiring)
        let memory = unsafe UnsafeMutablePointer<Atomic<UInt64>>(
            bitPattern: word & ~Self.bitsMask)!
        let mask = UInt64(1) << UInt64(word & Self.bitsMask) - 1
        var index = hash & mask
        while true {
            let slot = unsafe memory[Int(index)].load(ordering: .acquiring)
            if slot == 0 { return nil }
            if slot >> Self.addressBits == hash >> Self.addressBits {
                return unsafe Self.node(in: slot)
            }
            index = (index + 1) & mask
        }
    }

    /// The place of a key, or an empty one that it can have. For the writer.
    @inline(__always)
    func place(
        of key: ByteView, in dataset: DatasetID, hash: UInt64, _ memtable: Memtable
    ) -> Place {
        if unsafe (used + 1) * 2 > mask { grow() }
        let place = unsafe Self.find(
            key, in: dataset, hash: hash, memory, mask: mask, memtable)
        let steps = unsafe (UInt64(place.index) &- hash) & mask
        if steps >= Self.longSteps { longSearchCount.wrappingAdd(1, ordering: .relaxed) }
        return place
    }

    @inline(__always)
    private static func find(
        _ key: ByteView, in dataset: DatasetID, hash: UInt64,
        _ memory: UnsafeMutablePointer<Atomic<UInt64>>, mask: UInt64, _ memtable: Memtable
    ) -> Place {
        var index = hash & mask
        while true {
            let slot = unsafe memory[Int(index)].load(ordering: .acquiring)
            if slot == 0 { return unsafe Place(index: Int(index), node: nil) }
            if slot >> addressBits == hash >> addressBits {
                let node = unsafe node(in: slot)
                let entry = unsafe memtable.entry(of: node)
                if entry.dataset == dataset, entry.key.equals(key) {
                    return unsafe Place(index: Int(index), node: node)
                }
            }
            index = (index + 1) & mask
        }
    }

    /// Puts a complete node into the place of its key.
    @inline(__always)
    func put(_ node: NodePointer, hash: UInt64, at place: Place) {
        if unsafe place.node == nil { unsafe used += 1 }
        let address = UInt64(UInt(bitPattern: node))
        // Neither x86-64 nor arm64 gives a process addresses beyond 2^48 unless it asks for them.
        precondition(address <= Self.addressMask, "an address of more than 48 bits")
        let word = hash & ~Self.addressMask | address
        unsafe memory[place.index].store(word, ordering: .releasing)
    }

    private func grow() {
        let old = unsafe memory
        let oldMask = unsafe mask
        unsafe former.append((old, oldMask))
        unsafe mask = mask << 1 | 1
        unsafe byteCount += Self.byteCount(mask: mask)
        unsafe memory = Self.allocate(mask: mask)
        for oldIndex in 0...Int(oldMask) {
            let slot = unsafe old[oldIndex].load(ordering: .relaxed)
            guard slot != 0 else { continue }
            var index = unsafe UInt64(Self.node(in: slot).pointee.hash) & mask
            while unsafe memory[Int(index)].load(ordering: .relaxed) != 0 {
                index = unsafe (index + 1) & mask
            }
            unsafe memory[Int(index)].store(slot, ordering: .relaxed)
        }
        publish()
    }

    @inline(__always)
    private static func node(in slot: UInt64) -> NodePointer {
        unsafe NodePointer(bitPattern: UInt(slot & addressMask))!
    }
}
