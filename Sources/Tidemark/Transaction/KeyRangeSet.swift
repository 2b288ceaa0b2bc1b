/// Ranges of keys, sorted and apart, so that a key is found among them in O(log n).
struct KeyRangeSet {
    private var ranges: [KeyRange] = []

    /// O(n log n).
    init(_ all: [KeyRange]) {
        let sorted = all.filter { !$0.isEmpty }.sorted {
            ($0.lowerBound ?? []).lexicographicallyPrecedes($1.lowerBound ?? [])
        }
        for range in sorted {
            guard let last = ranges.last, !last.endsBefore(range.lowerBound) else {
                ranges.append(range)
                continue
            }
            let end: [UInt8]?
            if let one = last.upperBound, let other = range.upperBound {
                end = one.lexicographicallyPrecedes(other) ? other : one
            } else {
                end = nil
            }
            ranges[ranges.count - 1] = KeyRange(from: last.lowerBound, upTo: end)
        }
    }

    var isEmpty: Bool { ranges.isEmpty }

    func contains(_ key: ByteView) -> Bool {
        var low = 0
        var high = ranges.count
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].isAbove(key) { high = middle } else { low = middle + 1 }
        }
        return low > 0 && ranges[low - 1].contains(key)
    }
}

extension KeyRange {
    fileprivate func endsBefore(_ key: [UInt8]?) -> Bool {
        guard let upperBound else { return false }
        return upperBound.lexicographicallyPrecedes(key ?? [])
    }

    /// Whether the range begins after the key.
    fileprivate func isAbove(_ key: ByteView) -> Bool {
        guard let lowerBound else { return false }
        return Self.compare(key, lowerBound) < 0
    }
}
