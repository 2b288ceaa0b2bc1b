/// One line of a change index: which entry of the segment a sync count of a dataset is.
struct Change: Equatable {
    var dataset: DatasetID
    var syncCount: UInt64
    var place: EntryPlace
}

/// Blocks of kind `changes`: the entries of the segment dataset by dataset in the order of change,
/// up to 1,024 a block. A line is
///
///     varint  sync count - that of the line before in the same dataset; or 0, and then
///             varint dataset, varint sync count: a dataset begins, as at the start of a block
///     varint  place - that of the line before, 32 bits, zigzag
///
/// The directory of all such blocks has a row for each: 4 bytes dataset and 8 bytes sync count of
/// its first line, 4 bytes offset in the file / 8.
enum ChangeIndex {
    static let changesPerBlock = 1_024
    static let rowByteCount = 16
}

/// Collects the changes of a segment in the order of its entries and puts them into the order of
/// change. Takes 8 bytes of memory for each change of the dataset at hand, as much again while
/// these are sorted, and about five for each of those before.
struct ChangeIndexBuilder {
    struct Block {
        let first: Change
        let range: Range<Int>
    }

    /// A copy of the builder would share these; there is none.
    private(set) var bytes = PageArray<UInt8>(capacity: 256 << 10)
    private(set) var blocks: [Block] = []
    /// Of the dataset at hand: sync count, counted from `base`, in the upper half, place in the
    /// lower.
    private var pending: PageArray<UInt64>
    private var base: UInt64 = 0
    /// In place of `pending` for a dataset whose sync counts lie more than 2^32 apart.
    private var wide: [Change] = []
    private var dataset: DatasetID = 0
    private var writer = ByteWriter()
    private var previous = Change(dataset: 0, syncCount: 0, place: EntryPlace(rawValue: 0))
    private var first = Change(dataset: 0, syncCount: 0, place: EntryPlace(rawValue: 0))
    private var linesInBlock = 0

    /// - Parameter countMax: of changes there can be; more cost copying.
    init(countMax: Int) {
        pending = PageArray(capacity: countMax)
    }

    /// Changes must come grouped by dataset, in rising order of these.
    @inline(__always)
    mutating func add(_ change: Change) {
        if change.dataset != dataset {
            flushDataset()
            dataset = change.dataset
        }
        if pending.count == 0 { base = change.syncCount - min(change.syncCount, 1 << 31) }
        // What is less than the base comes out as more than fits, too.
        let offset = change.syncCount &- base
        guard wide.isEmpty, offset >> 32 == 0 else { return addWide(change) }
        pending.append(offset << 32 | UInt64(change.place.rawValue))
    }

    private mutating func addWide(_ change: Change) {
        for index in 0..<pending.count { wide.append(self.change(pending[index])) }
        pending.removeAll()
        wide.append(change)
    }

    private func change(_ line: UInt64) -> Change {
        Change(
            dataset: dataset, syncCount: base + line >> 32,
            place: EntryPlace(rawValue: UInt32(truncatingIfNeeded: line)))
    }

    mutating func finish() {
        flushDataset()
        endBlock()
    }

    private mutating func flushDataset() {
        ChangeSort.sort(pending)
        for index in 0..<pending.count { append(change(pending[index])) }
        pending.removeAll()
        wide.sort { $0.syncCount < $1.syncCount }
        for change in wide { append(change) }
        wide = []
    }

    private mutating func append(_ change: Change) {
        // No two changes of a dataset have one count, but what came as it lay from a replica that
        // was not to be trusted may: then a block begins, since a line cannot say so.
        let isRepeated =
            change.dataset == previous.dataset && change.syncCount == previous.syncCount
        if linesInBlock == ChangeIndex.changesPerBlock || isRepeated { endBlock() }
        if linesInBlock == 0 || change.dataset != previous.dataset {
            writer.append(byte: 0)
            writer.append(varint: UInt64(change.dataset))
            writer.append(varint: change.syncCount)
            if linesInBlock == 0 { first = change }
        } else {
            writer.append(varint: change.syncCount - previous.syncCount)
        }
        let before = linesInBlock == 0 ? 0 : previous.place.rawValue
        writer.append(varint: UInt64(Self.zigzag(change.place.rawValue &- before)))
        previous = change
        linesInBlock += 1
    }

    private mutating func endBlock() {
        guard linesInBlock > 0 else { return }
        let start = bytes.count
        unsafe writer.bytes.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
        blocks.append(Block(first: first, range: start..<bytes.count))
        writer.removeAll()
        linesInBlock = 0
    }

    private static func zigzag(_ difference: UInt32) -> UInt32 {
        let signed = Int32(bitPattern: difference)
        return UInt32(bitPattern: (signed << 1) ^ (signed >> 31))
    }
}

extension ChangeIndex {
    /// Takes a block apart, checking each field.
    static func decode(_ bytes: ByteView, blockCount: Int) throws(Malformed) -> [Change] {
        var reader = ByteReader(bytes)
        var changes: [Change] = []
        var previous = Change(dataset: 0, syncCount: 0, place: EntryPlace(rawValue: 0))
        while !reader.isAtEnd {
            let step = try reader.varint()
            var change = previous
            if step == 0 {
                change.dataset = try reader.varint32()
                change.syncCount = try reader.varint()
                guard changes.isEmpty || change.dataset > previous.dataset else {
                    throw Malformed("a change index is out of order")
                }
            } else {
                let (sum, isTooLarge) = previous.syncCount.addingReportingOverflow(step)
                guard !isTooLarge, !changes.isEmpty else {
                    throw Malformed("a change index is out of order")
                }
                change.syncCount = sum
            }
            let difference = try reader.varint32()
            let signed = (difference >> 1) ^ (0 &- (difference & 1))
            change.place = EntryPlace(rawValue: previous.place.rawValue &+ signed)
            guard change.place.block < blockCount, changes.count < changesPerBlock else {
                throw Malformed("a change names a block beyond the last")
            }
            changes.append(change)
            previous = change
        }
        guard !changes.isEmpty else { throw Malformed("a block of changes is empty") }
        return changes
    }
}

/// Sorts changes by sync count, which stands in the upper half of a line: counts of one dataset
/// lie close together and no two are equal, so a radix sort does it in a few passes.
enum ChangeSort {
    private typealias Lines = UnsafeMutableBufferPointer<UInt64>

    private static let digitBits: UInt64 = 11
    /// Below this many a comparison sort is as fast.
    private static let radixCountMin = 512

    static func sort(_ array: PageArray<UInt64>) {
        var lines = unsafe array.elements
        var least = UInt64.max
        var greatest: UInt64 = 0
        var isSorted = true
        var previous: UInt64 = 0
        for index in 0..<array.count {
            let line = array[index]
            least = min(least, line)
            greatest = max(greatest, line)
            isSorted = isSorted && previous <= line
            previous = line
        }
        if isSorted { return }
        guard lines.count >= radixCountMin else { return unsafe lines.sort() }
        let spare = PageArray<UInt64>(capacity: array.count)
        spare.resize(to: array.count)
        var other = unsafe spare.elements
        // Counted from the least one, so that no pass is made for digits that all have in common.
        let floor = least >> 32
        let bits = UInt64(UInt64.bitWidth - (greatest >> 32 - floor).leadingZeroBitCount)
        for shift in stride(from: UInt64(0), to: bits, by: Int(digitBits)) {
            unsafe pass(from: lines, to: other, floor: floor, shift: shift)
            unsafe swap(&lines, &other)
        }
        // After an odd number of passes they lie in the spare memory.
        if unsafe lines.baseAddress != array.elements.baseAddress {
            unsafe other.baseAddress!.update(from: lines.baseAddress!, count: lines.count)
        }
    }

    private static func pass(from: Lines, to: Lines, floor: UInt64, shift: UInt64) {
        let mask: UInt64 = 1 << digitBits - 1
        var starts = [Int](repeating: 0, count: 1 << Int(digitBits) + 1)
        for index in 0..<from.count {
            let line = unsafe from[index]
            starts[Int((line >> 32 - floor) >> shift & mask) + 1] += 1
        }
        for digit in 1..<starts.count { starts[digit] += starts[digit - 1] }
        for index in 0..<from.count {
            let line = unsafe from[index]
            let digit = Int((line >> 32 - floor) >> shift & mask)
            unsafe to[starts[digit]] = line
            starts[digit] += 1
        }
    }
}
