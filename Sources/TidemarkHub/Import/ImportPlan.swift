/// A record as the API tells it.
struct ListedRecord: Hashable, Sendable {
    /// In UTF-8: two spellings of one letter are two keys.
    let key: [UInt8]
    /// nil if it was removed.
    let value: String?
    /// At least 1.
    let count: UInt64
}

/// What is written of a dataset so that all its records have here the sync counts that they have
/// where they come from: devices hold them, and go by them when they change a record.
///
/// The store counts each write and the API each call, which a `CountMap` tells apart. A call that
/// several records are left of is written as such a call. Calls of which nothing is left are made
/// up for by writing the next record as often, of which the last write stands:
///
///     where it comes from:   a 3   b 5   c 5   dataset 6
///     writes here:           a a a   b   b c   (a deletion)
///     counts:                1 2 3   4   5 5   6
struct ImportPlan: Sendable {
    /// A write, in the order of all.
    struct Write: Hashable, Sendable {
        let key: [UInt8]
        /// nil for a deletion.
        let value: String?
    }

    private(set) var writes: [Write] = []
    private(set) var map: CountMap
    /// The store's sync count of each of the records.
    private(set) var positions: [[UInt8]: UInt64] = [:]
    /// The store's sync count after all of it.
    private(set) var position: UInt64

    /// Calls that are made up for, in one dataset. More of them were made in no dataset that people
    /// edit: one a minute for four years.
    static let fillersMax: UInt64 = 1 << 21
    /// Of the deletion that brings the count of a dataset up to what it was, where its last call
    /// has left no record.
    static let fillerKey = Array(".tidemark-import".utf8)

    /// - Parameters:
    ///   - records: each key once, in any order.
    ///   - count: of the whole dataset.
    ///   - position: the store's sync count of the dataset as it is now.
    ///   - map: of the dataset as it is now. Records whose counts are not above its own get new
    ///     ones.
    /// - Returns: nil if more than ``fillersMax`` calls would have to be made up for.
    init?(_ records: [ListedRecord], through count: UInt64, after position: UInt64, map: CountMap) {
        self.map = map
        self.position = position
        let last = records.map(\.count).max() ?? 0
        guard Self.isWithinReach(max(last, count), from: map.count(at: position)) else {
            return nil
        }
        for call in Self.calls(records) {
            addFillers(before: call[0].count, Write(key: call[0].key, value: ""))
            add(call)
        }
        var filler = Self.fillerKey
        while positions[filler] != nil { filler.append(UInt8(ascii: "-")) }
        // No overflow: the count is at most so far above the one that was reached.
        addFillers(before: count + 1, Write(key: filler, value: nil))
    }

    /// Whether a dataset of one count can be brought to another one.
    static func isWithinReach(_ count: UInt64, from reached: UInt64) -> Bool {
        let (steps, isUnder) = count.subtractingReportingOverflow(reached)
        return isUnder || steps <= fillersMax
    }

    /// Records of one count together, in the order of counts, and of keys within one.
    private static func calls(_ records: [ListedRecord]) -> [[ListedRecord]] {
        let sorted = records.sorted { one, other in
            one.count == other.count
                ? one.key.lexicographicallyPrecedes(other.key) : one.count < other.count
        }
        var calls: [[ListedRecord]] = []
        for record in sorted {
            if calls.last?[0].count == record.count {
                calls[calls.count - 1].append(record)
            } else {
                calls.append([record])
            }
        }
        return calls
    }

    /// Brings the count to the one before that of the next call, if it is not there yet.
    private mutating func addFillers(before count: UInt64, _ write: Write) {
        let reached = map.count(at: position)
        guard reached + 1 < count else { return }
        for _ in reached + 1..<count {
            writes.append(write)
            position += 1
        }
    }

    private mutating func add(_ call: [ListedRecord]) {
        map.noteCall(after: position, size: UInt64(call.count))
        for record in call {
            position += 1
            positions[record.key] = position
            writes.append(Write(key: record.key, value: record.value))
        }
    }
}
