/// A part of a range of keys, with what was summed over it.
package struct RangePart: Hashable, Sendable {
    /// The first key that no longer belongs to it; nil for the last part, which ends with the
    /// range.
    package let upperBound: [UInt8]?
    package let sum: RecordsSum

    package init(upperBound: [UInt8]?, sum: RecordsSum) {
        self.upperBound = upperBound
        self.sum = sum
    }
}

/// A key and 64 bits that stand for the version of its record.
package struct RecordMark: Hashable, Sendable {
    package let key: [UInt8]
    package let mark: UInt64

    package init(key: [UInt8], mark: UInt64) {
        self.key = key
        self.mark = mark
    }
}

/// Sums over ranges of keys of one dataset at one moment, tombstones included that none of two
/// replicas has forgotten. Holds the segments
/// of its moment on disk for as long as it is there.
package struct RecordSums: Sendable {
    private let table: SumTable
    private let scan: SumScan
    /// Of the same moment.
    package let knowledge: DatasetKnowledge

    init(_ table: SumTable, _ scan: SumScan, _ knowledge: DatasetKnowledge) {
        self.table = table
        self.scan = scan
        self.knowledge = knowledge
    }

    /// Of all records. O(1).
    package var total: RecordsSum { table.total }

    /// The leaves that lie in a range as a whole.
    private func wholeLeaves(in range: KeyRange) -> Range<Int> {
        let first = range.lowerBound.map { table.firstLeaf(from: $0) } ?? 0
        guard let upperBound = range.upperBound else { return first..<table.leaves.count }
        let next = table.firstLeaf(from: upperBound)
        // The leaf before that one ends with the range only if the next one begins there.
        let endsThere = next < table.leaves.count && table.leaves[next].lowerBound == upperBound
        return first..<max(first, endsThere ? next : next - 1)
    }

    /// The sum over a range. O(records of a leaf + log leaves).
    /// - Throws: `corruption`, `inputOutput`.
    package func sum(of range: KeyRange) throws(StoreError) -> RecordsSum {
        guard !range.isEmpty else { return RecordsSum() }
        let whole = wholeLeaves(in: range)
        guard !whole.isEmpty else { return try scan.sum(of: range) }
        var sum = table.sum(whole)
        let inner = table.range(of: whole)
        if let lowerBound = range.lowerBound, lowerBound != inner.lowerBound ?? [] {
            sum.add(try scan.sum(of: KeyRange(from: lowerBound, upTo: inner.lowerBound)))
        }
        if let end = inner.upperBound, end != range.upperBound {
            sum.add(try scan.sum(of: KeyRange(from: end, upTo: range.upperBound)))
        }
        return sum
    }

    /// Cuts a range into parts of about equal counts, as many as given at most. One part if the
    /// range has less than two records. O(records of a few leaves).
    /// - Throws: `corruption`, `inputOutput`.
    package func parts(of range: KeyRange, countMax: Int) throws(StoreError) -> [RangePart] {
        var bounds = leafBounds(in: range, countMax: countMax)
        if bounds.isEmpty {
            let count = try sum(of: range).count
            let leaves = try scan.leaves(
                of: range, recordsMax: (count + countMax - 1) / max(1, countMax))
            bounds = leaves.dropFirst().map(\.lowerBound)
        }
        var parts: [RangePart] = []
        var start = range.lowerBound
        for bound in bounds {
            let sum = try sum(of: KeyRange(from: start, upTo: bound))
            parts.append(RangePart(upperBound: bound, sum: sum))
            start = bound
        }
        let rest = try sum(of: KeyRange(from: start, upTo: range.upperBound))
        return parts + [RangePart(upperBound: nil, sum: rest)]
    }

    /// Where to cut a range between leaves; nowhere if it has too few of them.
    private func leafBounds(in range: KeyRange, countMax: Int) -> [[UInt8]] {
        let whole = wholeLeaves(in: range)
        guard whole.count >= 2 * countMax else { return [] }
        let before = table.sumBefore(whole.lowerBound).count
        let count = table.sum(whole).count
        var bounds: [[UInt8]] = []
        var last = whole.lowerBound
        for number in 1..<countMax {
            let wanted = before + count / countMax * number
            // Counts grow from leaf to leaf.
            var (low, high) = (last + 1, whole.upperBound)
            while low < high {
                let middle = (low + high) / 2
                if table.sumBefore(middle).count < wanted {
                    low = middle + 1
                } else {
                    high = middle
                }
            }
            guard low < whole.upperBound else { break }
            bounds.append(table.leaves[low].lowerBound)
            last = low
        }
        return bounds
    }

    /// The records of a range in the order of their keys; nil if their keys have more bytes than
    /// that. O(records in the range).
    /// - Throws: `corruption`, `inputOutput`.
    package func marks(
        in range: KeyRange, keyBytesMax: Int = .max
    ) throws(StoreError) -> [RecordMark]? {
        var marks: [RecordMark] = []
        var bytesLeft = keyBytesMax
        try scan.forEach(in: range) { entry, hash in
            guard let hash else { return }
            bytesLeft -= entry.key.count
            if bytesLeft >= 0 {
                marks.append(RecordMark(key: entry.key.array, mark: hash.low))
            }
        }
        return bytesLeft >= 0 ? marks : nil
    }
}

extension Dataset {
    /// Sums over which version each record is, for finding out where two replicas differ.
    ///
    /// - Parameter forgotten: what either of the two has forgotten, and both have seen: tombstones
    ///   that had seen no more than this do not count.
    package func recordSums(
        forgotten: VersionVector = VersionVector()
    ) throws(StoreError) -> RecordSums {
        try engine.recordSums(of: state, .versions, forgotten: forgotten, isExchange: true)
    }

    /// Everything seen, and what an unfinished exchange has brought.
    package func reachedVector() throws(StoreError) -> VersionVector {
        try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return state.vector.union(state.outstanding)
        }
    }
}
