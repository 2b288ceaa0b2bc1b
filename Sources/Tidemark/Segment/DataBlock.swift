internal import CTidemark

/// A block of kind `data`: entries in their order, and where each begins, so that a binary search
/// needs no decoding on the way.
///
///     8 bytes: milliseconds from which the times of the entries count
///     entries, one after the other, see ``EntryLayout``
///     2 bytes each: offset of each entry in the block
///     2 bytes: number of entries
///
/// A block has at most ``bytesMax`` bytes unless it holds one entry alone.
enum DataBlock {
    /// Before compression. Larger blocks compress better and cost more to read one record from. A
    /// little more than 4,096, so that four values of 1 KiB share one, with their keys and stamps.
    static let bytesMax = EntryPlace.offsetEnd + 256
    static let entriesOffset = 8
}

/// The entries of a block, without owning its memory.
@safe
struct DataBlockView {
    private let base: UnsafeRawPointer
    private let entriesEnd: UnsafeRawPointer
    let count: Int

    /// Looks at the number of entries alone; nil if it is impossible.
    @inline(__always)
    init?(base: UnsafeRawPointer, rawCount: Int) {
        guard rawCount >= DataBlock.entriesOffset + 4 else { return nil }
        let count = unsafe Int(
            UInt16(littleEndian: (base + (rawCount - 2)).loadUnaligned(as: UInt16.self)))
        let entriesEnd = rawCount - 2 - 2 * count
        guard count > 0, entriesEnd > DataBlock.entriesOffset else { return nil }
        unsafe self.base = base
        self.count = count
        unsafe self.entriesEnd = base + entriesEnd
    }

    /// Checks the whole block: offsets dense, every entry decodable and in its order. O(bytes).
    func check(originCount: Int) throws(Malformed) {
        var place = unsafe base + DataBlock.entriesOffset
        var previous: Entry?
        for slot in 0..<count {
            guard unsafe base + offset(of: slot) == place else {
                throw Malformed("the offset of an entry is wrong")
            }
            let (entry, end) = unsafe try EntryLayout.checkedEntry(
                at: place, end: entriesEnd, timeBase: base, originCount: originCount)
            guard entry.dataset != 0 || !entry.isApart else {
                throw Malformed("a record of the store's own lies apart")
            }
            guard offset(of: slot) < EntryPlace.offsetEnd else {
                throw Malformed("an entry begins too far behind the start of its block")
            }
            if let previous {
                guard previous.position.compare(entry.position) < 0 else {
                    throw Malformed("the entries of a block are out of order")
                }
                let isSameKey =
                    previous.dataset == entry.dataset && previous.key.equals(entry.key)
                guard isSameKey == entry.isSuperseded else {
                    throw Malformed("an entry says wrongly whether it is superseded")
                }
            }
            previous = entry
            unsafe place = end
        }
        guard unsafe place == entriesEnd else {
            throw Malformed("a block has bytes between its parts")
        }
    }

    @inline(__always)
    func offset(of slot: Int) -> Int {
        unsafe Int(
            UInt16(littleEndian: (entriesEnd + 2 * slot).loadUnaligned(as: UInt16.self)))
    }

    /// Has the processor fetch where each entry begins, for a walk: between large values it would
    /// wait for one after the other. Small ones come fast enough by themselves.
    func prefetchEntries() {
        guard count <= Self.fetchedCountMax else { return }
        for slot in 0..<count {
            let offset = offset(of: slot)
            // What is no address of ours does no harm.
            unsafe tidemark_prefetch(base + offset)
        }
    }

    private static let fetchedCountMax = 8

    /// O(1). nil if the block has changed since it was checked.
    @inline(__always)
    func entry(at slot: Int) -> Entry? {
        precondition(slot >= 0 && slot < count, "an entry beyond the end of its block")
        return entry(atOffset: offset(of: slot))
    }

    /// O(1). nil if none can begin there.
    @inline(__always)
    func entry(atOffset offset: Int) -> Entry? {
        guard offset >= DataBlock.entriesOffset, unsafe offset < entriesEnd - base else {
            return nil
        }
        return unsafe EntryLayout.entry(at: base + offset, end: entriesEnd, timeBase: base)
    }

    /// The slot of the entry that begins at an offset; nil if none does. O(log n).
    func slot(ofOffset wanted: Int) -> Int? {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if offset(of: middle) < wanted { low = middle + 1 } else { high = middle }
        }
        return low < count && offset(of: low) == wanted ? low : nil
    }

    /// The first entry at or after the position; `count` if there is none. O(log n).
    func lowerBound(_ position: EntryPosition) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            guard let entry = entry(at: middle), isBefore(entry, position) else {
                high = middle
                continue
            }
            low = middle + 1
        }
        return low
    }

    @inline(__always)
    private func isBefore(_ entry: Entry, _ position: EntryPosition) -> Bool {
        if entry.dataset != position.dataset { return entry.dataset < position.dataset }
        let order = entry.key.compare(position.key)
        return order != 0 ? order < 0 : entry.syncCount > position.syncCount
    }
}

/// Where an entry lies in its segment: the number of the data block and the offset in it.
struct EntryPlace: Equatable {
    static let offsetBits: UInt32 = 12
    /// Entries begin before this.
    static let offsetEnd = 1 << Int(offsetBits)
    /// Blocks of a segment, of whose number the upper bits must hold any.
    static let blockCountMax = 1 << 20

    let rawValue: UInt32

    init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    init(block: Int, offset: Int) {
        rawValue = UInt32(block) << Self.offsetBits | UInt32(offset)
    }

    var block: Int { Int(rawValue >> Self.offsetBits) }
    var offset: Int { Int(rawValue) & (Self.offsetEnd - 1) }
}
