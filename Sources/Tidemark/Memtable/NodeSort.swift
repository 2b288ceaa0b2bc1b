/// Puts the nodes of a memtable into the order of their entries: by eight bytes of the key and the
/// dataset with a radix sort, and by whole keys only where these agree.
enum NodeSort {
    /// A node with eight bytes of its key: those that follow what all keys have in common.
    private struct Item {
        var order: UInt64
        var dataset: DatasetID
        /// Of the node, counted from the first that is sorted.
        var index: UInt32

        /// False also if what is here does not decide.
        @inline(__always)
        func precedes(_ other: Item) -> Bool {
            dataset == other.dataset ? order < other.order : dataset < other.dataset
        }
    }

    private typealias Items = UnsafeMutableBufferPointer<Item>

    /// The nodes being sorted, by the index in an item.
    @safe
    private struct Source {
        let memtable: Memtable
        let nodes: NodeStore
        let first: Int

        func node(of item: Item) -> NodePointer {
            unsafe nodes[first + Int(item.index)]
        }

        func precedes(_ item: Item, _ other: Item) -> Bool {
            unsafe memtable.precedes(node(of: item), node(of: other))
        }
    }

    /// O(n) for keys that differ in the eight bytes behind what they all begin with. Takes 32 bytes
    /// of memory for each node, and gives all but 8 back; 8 if they came in their order.
    static func sorted(
        _ nodes: NodeStore, _ range: Range<Int>, of memtable: Memtable
    ) -> PageArray<NodePointer> {
        if comeInOrder(nodes, range, of: memtable) {
            let sorted = unsafe PageArray<NodePointer>(capacity: range.count)
            for index in range { unsafe sorted.append(nodes[index]) }
            return unsafe sorted
        }
        let common = commonPrefixCount(nodes, range, of: memtable)
        let source = Source(memtable: memtable, nodes: nodes, first: range.lowerBound)
        var (items, isSorted) = keyed(source, range, common: common)
        if !isSorted {
            items = radixSorted(items)
            unsafe settleTies(items.elements, of: source)
        }
        let sorted = unsafe PageArray<NodePointer>(capacity: range.count)
        for index in 0..<items.count { unsafe sorted.append(source.node(of: items[index])) }
        return unsafe sorted
    }

    /// Whether they came in the order of entries, as they do where records are loaded. One
    /// comparison mostly tells that they did not.
    private static func comeInOrder(
        _ nodes: NodeStore, _ range: Range<Int>, of memtable: Memtable
    ) -> Bool {
        var previous = unsafe memtable.entry(of: nodes[range.lowerBound])
        for index in range.dropFirst() {
            let entry = unsafe memtable.entry(of: nodes[index])
            if previous.dataset != entry.dataset {
                guard previous.dataset < entry.dataset else { return false }
            } else {
                // Of one key, what came later stands first.
                guard previous.key.compare(entry.key) < 0 else { return false }
            }
            previous = entry
        }
        return true
    }

    private static func keyed(
        _ source: Source, _ range: Range<Int>, common: Int
    ) -> (items: PageArray<Item>, isSorted: Bool) {
        let items = PageArray<Item>(capacity: range.count)
        var isSorted = true
        for index in range {
            let entry = unsafe source.memtable.entry(of: source.nodes[index])
            let rest = unsafe ByteView(
                base: entry.key.base + common, count: entry.key.count - common)
            let item = Item(
                order: rest.prefix, dataset: entry.dataset,
                index: UInt32(index - range.lowerBound))
            if items.count > 0, !items[items.count - 1].precedes(item) { isSorted = false }
            items.append(item)
        }
        return (items, isSorted)
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
    private static func radixSorted(_ unsorted: PageArray<Item>) -> PageArray<Item> {
        guard unsorted.count > 1 else { return unsorted }
        let first = unsorted[0]
        var orderBits: UInt64 = 0
        var datasetBits: DatasetID = 0
        for index in 0..<unsorted.count {
            let item = unsorted[index]
            orderBits |= item.order ^ first.order
            datasetBits |= item.dataset ^ first.dataset
        }
        var items = unsorted
        var other = PageArray<Item>(capacity: items.count)
        other.resize(to: items.count)
        for shift in stride(from: UInt64(0), to: 64, by: 8)
        where orderBits >> shift & 0xFF != 0 {
            unsafe pass(from: items.elements, to: other.elements) {
                Int($0.order >> shift & 0xFF)
            }
            swap(&items, &other)
        }
        for shift in stride(from: DatasetID(0), to: 32, by: 8)
        where datasetBits >> shift & 0xFF != 0 {
            unsafe pass(from: items.elements, to: other.elements) {
                Int($0.dataset >> shift & 0xFF)
            }
            swap(&items, &other)
        }
        return items
    }

    @inline(__always)
    private static func pass(from: Items, to: Items, _ digit: (Item) -> Int) {
        var starts = [Int](repeating: 0, count: 257)
        for place in 0..<from.count { unsafe starts[digit(from[place]) + 1] += 1 }
        for index in 1...256 { starts[index] += starts[index - 1] }
        for place in 0..<from.count {
            let item = unsafe from[place]
            let index = digit(item)
            unsafe to[starts[index]] = item
            starts[index] += 1
        }
    }

    /// Sorts items that agree in all that was looked at so far by their whole keys, and those of
    /// one key from the newest down.
    private static func settleTies(_ items: Items, of source: Source) {
        var start = 0
        while start < items.count {
            var end = start + 1
            while unsafe end < items.count && items[end].order == items[start].order
                && items[end].dataset == items[start].dataset
            {
                end += 1
            }
            if end - start > 1 {
                var ties = unsafe Items(rebasing: items[start..<end])
                if end - start > insertionCountMax {
                    unsafe ties.sort { source.precedes($0, $1) }
                } else {
                    unsafe insertionSort(&ties, of: source)
                }
            }
            start = end
        }
    }

    /// Up to this many the simplest way is the fastest.
    private static let insertionCountMax = 16

    private static func insertionSort(_ items: inout Items, of source: Source) {
        for index in 1..<items.count {
            var place = index
            while place > 0, unsafe source.precedes(items[place], items[place - 1]) {
                unsafe items.swapAt(place, place - 1)
                place -= 1
            }
        }
    }
}
