/// Puts the nodes of a memtable into the order of their entries: by eight bytes of the key and the
/// dataset with a radix sort, and by whole keys only where these agree.
enum NodeSort {
    /// A node with eight bytes of its key: those that follow what all keys have in common.
    @safe
    private struct Item {
        var order: UInt64
        var dataset: DatasetID
        var node: NodePointer

        /// False also if what is here does not decide.
        @inline(__always)
        func precedes(_ other: Item) -> Bool {
            dataset == other.dataset ? order < other.order : dataset < other.dataset
        }
    }

    /// O(n) for keys that differ in the eight bytes behind what they all begin with.
    static func sorted(
        _ nodes: NodeStore, _ range: Range<Int>, of memtable: Memtable
    ) -> [NodePointer] {
        let common = commonPrefixCount(nodes, range, of: memtable)
        var items: [Item] = []
        items.reserveCapacity(range.count)
        var isSorted = true
        for index in range {
            let node = unsafe nodes[index]
            let entry = unsafe memtable.entry(of: node)
            let rest = unsafe ByteView(
                base: entry.key.base + common, count: entry.key.count - common)
            let item = unsafe Item(order: rest.prefix, dataset: entry.dataset, node: node)
            if let last = items.last, !last.precedes(item) { isSorted = false }
            items.append(item)
        }
        if !isSorted {
            radixSort(&items)
            settleTies(&items, of: memtable)
        }
        return unsafe items.map { unsafe $0.node }
    }

    /// How many bytes all keys begin with in common. Keys of a service often begin alike, and then
    /// their first bytes decide nothing.
    private static func commonPrefixCount(
        _ nodes: NodeStore, _ range: Range<Int>, of memtable: Memtable
    ) -> Int {
        let first = unsafe memtable.entry(of: nodes[range.lowerBound]).key
        var common = first.count
        for index in range {
            let key = unsafe memtable.entry(of: nodes[index]).key
            common = key.commonPrefixCount(with: first, max: common)
            if common == 0 { break }
        }
        return common
    }

    /// Byte by byte from the lowest on, each pass keeping the order of the one before (Knuth, The
    /// Art of Computer Programming, volume 3, 5.2.5); bytes in which all agree cost no pass.
    private static func radixSort(_ items: inout [Item]) {
        guard let first = items.first else { return }
        var orderBits: UInt64 = 0
        var datasetBits: DatasetID = 0
        for item in items {
            orderBits |= item.order ^ first.order
            datasetBits |= item.dataset ^ first.dataset
        }
        var other = items
        for shift in stride(from: UInt64(0), to: 64, by: 8)
        where orderBits >> shift & 0xFF != 0 {
            pass(from: items, to: &other) { Int($0.order >> shift & 0xFF) }
            swap(&items, &other)
        }
        for shift in stride(from: DatasetID(0), to: 32, by: 8)
        where datasetBits >> shift & 0xFF != 0 {
            pass(from: items, to: &other) { Int($0.dataset >> shift & 0xFF) }
            swap(&items, &other)
        }
    }

    @inline(__always)
    private static func pass(from: [Item], to: inout [Item], _ digit: (Item) -> Int) {
        var starts = [Int](repeating: 0, count: 257)
        for item in from { starts[digit(item) + 1] += 1 }
        for index in 1...256 { starts[index] += starts[index - 1] }
        for item in from {
            let index = digit(item)
            to[starts[index]] = item
            starts[index] += 1
        }
    }

    /// Sorts items that agree in all that was looked at so far by their whole keys, and those of
    /// one key from the newest down.
    private static func settleTies(_ items: inout [Item], of memtable: Memtable) {
        var start = 0
        while start < items.count {
            var end = start + 1
            while end < items.count, items[end].order == items[start].order,
                items[end].dataset == items[start].dataset
            {
                end += 1
            }
            if end - start > insertionCountMax {
                items[start..<end].sort { unsafe memtable.precedes($0.node, $1.node) }
            } else if end - start > 1 {
                insertionSort(&items, start..<end, of: memtable)
            }
            start = end
        }
    }

    /// Up to this many it is sorted where it lies; a slice would be copied.
    private static let insertionCountMax = 16

    private static func insertionSort(
        _ items: inout [Item], _ range: Range<Int>, of memtable: Memtable
    ) {
        for index in range.dropFirst() {
            var place = index
            while place > range.lowerBound,
                unsafe memtable.precedes(items[place].node, items[place - 1].node)
            {
                items.swapAt(place, place - 1)
                place -= 1
            }
        }
    }
}
