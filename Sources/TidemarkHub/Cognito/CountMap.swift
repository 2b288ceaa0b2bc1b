/// How the sync counts of the Cognito API follow from the store's, for one dataset.
///
/// The store counts each record that is written; the API counts each call, and all records of a
/// call have the same count. So the two are the same but for calls of several records, of which
/// each is kept as an anchor: where it ended in the store's count, how many records it had, and its
/// count. What replicas write without the API counts one by one in both.
///
///     store:   1   2   3   4   5   6   7        anchors: end 4, size 3, count 2
///     API:     1  └──── 2 ────┘  3   4   5
///
/// Invariants: anchors are in the order of their ends; each ends at least its size after the one
/// before; no count exceeds its end. So ``count(at:)`` never falls, and what is dropped by
/// ``prune(keeping:)`` changes no count of a record that is there.
struct CountMap: Hashable, Sendable {
    /// A call of several records.
    struct Anchor: Hashable, Sendable {
        /// The store's count of its last record.
        let end: UInt64
        /// At least 2.
        let size: UInt64
        /// The API's.
        let count: UInt64

        /// The store's count before its first record.
        var start: UInt64 { end - size }
    }

    /// Beyond so many, dropping some is worth a look at all records.
    static let anchorsKeptMax = 64
    /// What a map read from the store may have: more than there can be records and tombstones.
    static let anchorsMax = 1 << 20

    private(set) var anchors: [Anchor] = []

    init() {}

    /// The API's count of the record, or of the dataset, that has a count of the store. O(log n).
    func count(at position: UInt64) -> UInt64 {
        let next = firstIndex { $0.end > position }
        let (end, count) = next > 0 ? (anchors[next - 1].end, anchors[next - 1].count) : (0, 0)
        let steps = count + (position - end)
        return next < anchors.count ? min(steps, anchors[next].count) : steps
    }

    /// The last place in the store's count at which the API's is not greater than a given one,
    /// which may be any: records behind it are those that are newer. O(log n).
    func position(atCount count: UInt64) -> UInt64 {
        let next = firstIndex { $0.count > count }
        let last = next > 0 ? anchors[next - 1] : nil
        let steps = count - (last?.count ?? 0)
        let (sum, isOver) = (last?.end ?? 0).addingReportingOverflow(steps)
        let position = isOver ? UInt64.max : sum
        return next < anchors.count ? min(position, anchors[next].start) : position
    }

    /// Notes that a call has written several records.
    ///
    /// - Parameters:
    ///   - start: the store's count before it; not less than the end of any call before.
    ///   - size: how many records; fewer than two need no note.
    mutating func noteCall(after start: UInt64, size: UInt64) {
        guard size >= 2 else { return }
        let count = count(at: start) + 1
        anchors.append(Anchor(end: start + size, size: size, count: count))
    }

    /// Drops anchors without which each of the given places has the same count as before. The last
    /// one always stays, and with it the count of the dataset. O(n log p) for p places.
    ///
    /// - Parameter positions: the store's counts of all records and tombstones, in ascending order.
    mutating func prune(keeping positions: [UInt64]) {
        guard var next = anchors.last else { return }
        var kept = [next]
        for anchor in anchors.dropLast().reversed() {
            // Without it, places from its first record on up to the next call would count on from
            // the anchor before it, record by record.
            let isNeeded = Self.contains(positions, after: anchor.start, through: next.start)
            guard isNeeded else { continue }
            kept.append(anchor)
            next = anchor
        }
        anchors = kept.reversed()
    }

    private static func contains(
        _ positions: [UInt64], after low: UInt64, through high: UInt64
    ) -> Bool {
        let index = partition(positions.count) { positions[$0] > low }
        return index < positions.count && positions[index] <= high
    }

    private func firstIndex(where isBehind: (Anchor) -> Bool) -> Int {
        Self.partition(anchors.count) { isBehind(anchors[$0]) }
    }

    /// The first index at which a condition holds that holds for all behind it as well.
    private static func partition(_ count: Int, _ holds: (Int) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = low + (high - low) / 2
            if holds(middle) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

// MARK: - As it is stored

extension CountMap {
    /// The form of what follows. Stored; others are refused.
    private static let form: UInt8 = 1

    /// The form, and for each anchor three numbers of seven bits a byte, the lowest first: from the
    /// end before to its start, its size, and from the count before to its own.
    var encoded: [UInt8] {
        var bytes = [Self.form]
        var (end, count): (UInt64, UInt64) = (0, 0)
        for anchor in anchors {
            for number in [anchor.start - end, anchor.size, anchor.count - count] {
                var rest = number
                while rest >= 0x80 {
                    bytes.append(UInt8(rest & 0x7F) | 0x80)
                    rest >>= 7
                }
                bytes.append(UInt8(rest))
            }
            (end, count) = (anchor.end, anchor.count)
        }
        return bytes
    }

    /// nil for bytes that ``encoded`` never gives.
    init?(encoded bytes: [UInt8]) {
        guard bytes.first == Self.form else { return nil }
        var rest = bytes.dropFirst()
        var (end, count): (UInt64, UInt64) = (0, 0)
        while !rest.isEmpty {
            guard anchors.count < Self.anchorsMax, let gap = Self.number(&rest),
                let size = Self.number(&rest), let steps = Self.number(&rest), size >= 2,
                steps >= 1
            else { return nil }
            // Each number is below 2^56, and the sums are checked: nothing overflows.
            let anchor = Anchor(end: end + gap + size, size: size, count: count + steps)
            guard anchor.end < Self.numbersMax, steps <= gap + 1 else { return nil }
            anchors.append(anchor)
            (end, count) = (anchor.end, anchor.count)
        }
    }

    /// As of the store's counts.
    private static let numbersMax: UInt64 = 1 << 56

    private static func number(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
        var (number, shift): (UInt64, UInt64) = (0, 0)
        while shift < 56, let byte = bytes.popFirst() {
            number |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return number }
            shift += 7
        }
        return nil
    }
}
