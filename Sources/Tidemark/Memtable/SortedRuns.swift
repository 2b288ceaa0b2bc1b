internal import CTidemark
internal import Synchronization

/// The order of a memtable's entries, made when somebody asks for it.
///
/// Writes only add nodes; whoever wants to walk in order sorts those that came since the last
/// walk into a run of its own, and merges runs as long as one is not at least four times as long
/// as the next: so a store that is only written to pays nothing, one that is scanned after every
/// write pays O(log n) a write, and a walk merges few runs (the logarithmic method of Bentley and
/// Saxe, "Decomposable searching problems I", 1980).
final class SortedRuns: Sendable {
    /// Nodes in the order of entries: immutable.
    @safe
    final class Run: @unchecked Sendable {
        // Unchecked: pointers to nodes that never change, valid as long as their memtable.
        let nodes: PageArray<NodePointer>

        init(_ nodes: PageArray<NodePointer>) { unsafe self.nodes = nodes }

        var count: Int { unsafe nodes.count }

        @inline(__always)
        subscript(index: Int) -> NodePointer { unsafe nodes[index] }

        /// The addresses of its nodes.
        var places: [UInt] { (0..<count).map { UInt(bitPattern: unsafe self[$0]) } }

        /// Has the processor fetch what a walk will need soon: a node some steps ahead, and the
        /// entry of one that was fetched that way before. In the order of keys both lie anywhere.
        @inline(__always)
        func prefetch(after index: Int) {
            guard index + Self.stepsAhead < count else { return }
            unsafe tidemark_prefetch(self[index + Self.stepsAhead])
            let start = unsafe self[index + Self.stepsAhead / 2].pointee.start
            unsafe tidemark_prefetch(start)
            unsafe tidemark_prefetch(start + 64)
            unsafe tidemark_prefetch(start + 128)
        }

        private static let stepsAhead = 16

        /// How many nodes stand before a position. O(log n), and O(1) if all do: so where keys are
        /// written or deleted in their order, runs that lie behind cost a search nothing.
        func count(before position: EntryPosition, _ memtable: Memtable) -> Int {
            guard count > 0,
                unsafe memtable.entry(of: self[count - 1]).position.compare(position) >= 0
            else { return count }
            var low = 0
            var high = count - 1
            while low < high {
                let middle = (low + high) / 2
                if unsafe memtable.entry(of: self[middle]).position.compare(position) < 0 {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            return low
        }
    }

    private struct State {
        var runs: [Run] = []
        /// How many nodes are in a run.
        var sortedCount = 0
    }

    private static let growth = 4
    private let state = Mutex(State())

    /// Runs that together hold at least the first `count` nodes, longest first. Somebody else may
    /// have sorted more; that does no harm, since a reader passes over what it may not see.
    func runs(
        of memtable: Memtable, _ nodes: NodeStore, through count: Int, asOne: Bool
    ) -> [Run] {
        state.withLock { state in
            if state.sortedCount < count {
                unsafe state.runs.append(
                    Run(NodeSort.sorted(nodes, state.sortedCount..<count, of: memtable)))
                state.sortedCount = count
            }
            while state.runs.count > 1 {
                let last = state.runs[state.runs.count - 1]
                let before = state.runs[state.runs.count - 2]
                guard asOne || before.count < Self.growth * last.count else { break }
                state.runs.removeLast(2)
                state.runs.append(Self.merged(before, last, of: memtable))
            }
            return state.runs
        }
    }

    private static func merged(_ left: Run, _ right: Run, of memtable: Memtable) -> Run {
        let nodes = unsafe PageArray<NodePointer>(capacity: left.count + right.count)
        // Where keys were written in their order there is nothing to compare.
        if left.count > 0, right.count > 0,
            unsafe memtable.precedes(left[left.count - 1], right[0])
        {
            unsafe nodes.append(contentsOf: UnsafeBufferPointer(left.nodes.elements))
            unsafe nodes.append(contentsOf: UnsafeBufferPointer(right.nodes.elements))
            return unsafe Run(nodes)
        }
        var (leftIndex, rightIndex) = (0, 0)
        while leftIndex < left.count, rightIndex < right.count {
            if unsafe memtable.precedes(left[leftIndex], right[rightIndex]) {
                unsafe nodes.append(left[leftIndex])
                leftIndex += 1
            } else {
                unsafe nodes.append(right[rightIndex])
                rightIndex += 1
            }
        }
        for index in leftIndex..<left.count { unsafe nodes.append(left[index]) }
        for index in rightIndex..<right.count { unsafe nodes.append(right[index]) }
        return unsafe Run(nodes)
    }
}

extension Memtable {
    /// Whether a node comes before another in the order of entries.
    func precedes(_ node: NodePointer, _ other: NodePointer) -> Bool {
        let left = unsafe entry(of: node)
        let right = unsafe entry(of: other)
        if left.dataset != right.dataset { return left.dataset < right.dataset }
        let order = left.key.compare(right.key)
        // Of one key, what came later stands first.
        return unsafe order != 0 ? order < 0 : node.pointee.order > other.pointee.order
    }

    /// The entries of one dataset up to a change whose keys are in a range, in their order; nil if
    /// the dataset has more entries than that, in the range or not. O(entries of the dataset), and
    /// only those in the range are sorted.
    func run(through newest: NodePointer, in range: KeyRange, countMax: Int) -> SortedRuns.Run? {
        var found: [UInt] = []
        var passed = 0
        var node = unsafe Optional(newest)
        while let current = unsafe node {
            guard passed < countMax else { return nil }
            passed += 1
            if unsafe range.contains(entry(of: current).key) {
                found.append(UInt(bitPattern: current))
            }
            unsafe node = current.pointee.previousChange
        }
        return run(of: found)
    }

    /// Nodes that are given by their addresses, in the order of their entries. O(n log n), and O(n)
    /// where they are in that order, or few stretches of them are.
    func run(of places: [UInt]) -> SortedRuns.Run {
        let places = places.sorted { left, right in
            guard let left = unsafe NodePointer(bitPattern: left),
                let right = unsafe NodePointer(bitPattern: right)
            else { return false }
            return unsafe precedes(left, right)
        }
        let nodes = unsafe PageArray<NodePointer>(capacity: places.count)
        for place in places {
            guard let node = unsafe NodePointer(bitPattern: place) else { continue }
            unsafe nodes.append(node)
        }
        return unsafe SortedRuns.Run(nodes)
    }
}
