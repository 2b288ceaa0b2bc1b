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
/// change. Takes 16 bytes of memory for each change of the dataset at hand, and about five for
/// each of those before.
struct ChangeIndexBuilder {
    struct Block {
        let first: Change
        let range: Range<Int>
    }

    private(set) var bytes: [UInt8] = []
    private(set) var blocks: [Block] = []
    private var pending: [(syncCount: UInt64, place: EntryPlace)] = []
    private var dataset: DatasetID = 0
    private var writer = ByteWriter()
    private var previous = Change(dataset: 0, syncCount: 0, place: EntryPlace(rawValue: 0))
    private var first = Change(dataset: 0, syncCount: 0, place: EntryPlace(rawValue: 0))
    private var linesInBlock = 0

    /// Changes must come grouped by dataset, in rising order of these.
    @inline(__always)
    mutating func add(_ change: Change) {
        if change.dataset != dataset {
            flushDataset()
            dataset = change.dataset
        }
        pending.append((change.syncCount, change.place))
    }

    mutating func finish() {
        flushDataset()
        endBlock()
    }

    private mutating func flushDataset() {
        guard !pending.isEmpty else { return }
        ChangeSort.sort(&pending)
        for (syncCount, place) in pending {
            append(Change(dataset: dataset, syncCount: syncCount, place: place))
        }
        pending.removeAll(keepingCapacity: true)
    }

    private mutating func append(_ change: Change) {
        if linesInBlock == ChangeIndex.changesPerBlock { endBlock() }
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
        bytes.append(contentsOf: writer.bytes)
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

/// Sorts changes by sync count: counts of one dataset lie close together and no two are equal, so
/// a radix sort does it in a few passes.
enum ChangeSort {
    typealias Line = (syncCount: UInt64, place: EntryPlace)

    private static let digitBits: UInt64 = 11
    /// Below this many a comparison sort is as fast.
    private static let radixCountMin = 512

    static func sort(_ lines: inout [Line]) {
        var least = UInt64.max
        var greatest: UInt64 = 0
        var isSorted = true
        var previous: UInt64 = 0
        for line in lines {
            least = min(least, line.syncCount)
            greatest = max(greatest, line.syncCount)
            isSorted = isSorted && previous <= line.syncCount
            previous = line.syncCount
        }
        if isSorted { return }
        let bits = UInt64(UInt64.bitWidth - (greatest - least).leadingZeroBitCount)
        guard lines.count >= radixCountMin, bits <= 4 * digitBits else {
            lines.sort { $0.syncCount < $1.syncCount }
            return
        }
        var other = lines
        var shift: UInt64 = 0
        while shift < bits {
            pass(from: lines, to: &other, least: least, shift: shift)
            swap(&lines, &other)
            shift += digitBits
        }
    }

    private static func pass(from: [Line], to: inout [Line], least: UInt64, shift: UInt64) {
        let mask: UInt64 = 1 << digitBits - 1
        var starts = [Int](repeating: 0, count: 1 << Int(digitBits) + 1)
        for line in from {
            starts[Int((line.syncCount - least) >> shift & mask) + 1] += 1
        }
        for digit in 1..<starts.count { starts[digit] += starts[digit - 1] }
        for line in from {
            let digit = Int((line.syncCount - least) >> shift & mask)
            to[starts[digit]] = line
            starts[digit] += 1
        }
    }
}
