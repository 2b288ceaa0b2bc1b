import Tidemark

/// The retained versions of a key and which of them descends from which.
///
/// A version descends from another if the other's dot is in its vector. Of all that it descends
/// from, its *parents* are those from which no other one of these descends: so each line of the
/// graph is one step, and a version with two parents is a merge, or was written by somebody who
/// had seen both sides of a conflict.
struct HistoryGraph {
    struct Node {
        let record: Record
        /// Numbers of nodes behind this one.
        let parents: [Int]
        /// The column that it is drawn in.
        fileprivate(set) var lane = 0
    }

    /// A version that took the place of another one from which it does not descend.
    struct Victory {
        let winner: Int
        let loser: Int
    }

    /// The newest first, each before all that it descends from.
    private(set) var nodes: [Node]
    /// How many columns are needed.
    private(set) var laneCount = 0

    /// Winners of conflicts as they were written.
    private let asWritten: [Dot: Version]

    /// - Parameters:
    ///   - records: the versions that are kept, the newest first, as the store gives them; O(n^3)
    ///     for so many.
    ///   - asWritten: of winners of conflicts, the versions that their writers made. The store's
    ///     own have seen the losers, too, so that nobody settles the same conflict again.
    init(_ records: [Record], asWritten: [Dot: Version] = [:]) {
        self.asWritten = asWritten
        let descends = { Self.descends($0, from: $1, asWritten) }
        let records = Self.sorted(records, descends)
        nodes = records.indices.map { index in
            let ancestors = records.indices.filter {
                $0 != index && descends(records[index], records[$0])
            }
            let parents = ancestors.filter { ancestor in
                !ancestors.contains {
                    $0 != ancestor && descends(records[$0], records[ancestor])
                }
            }
            return Node(record: records[index], parents: parents)
        }
        placeInLanes()
    }

    private static func descends(
        _ record: Record, from other: Record, _ asWritten: [Dot: Version]
    ) -> Bool {
        // What took the place of a value that had expired has its dot; and the mark of a dropped
        // record has no dot of its own.
        if record.version.dot == other.version.dot { return record.syncCount > other.syncCount }
        let version = asWritten[record.version.dot] ?? record.version
        return other.version.dot.counter > 0
            && version.relation(to: other.version) == .descendant
    }

    /// In the order of arrival here, but never an ancestor before what descends from it.
    private static func sorted(
        _ records: [Record], _ descends: (Record, Record) -> Bool
    ) -> [Record] {
        var left = records
        var sorted: [Record] = []
        while !left.isEmpty {
            let next = left.firstIndex { candidate in
                !left.contains { descends($0, candidate) }
            }
            // Vectors that contradict each other come from a forged store; any order will do then.
            sorted.append(left.remove(at: next ?? 0))
        }
        return sorted
    }

    /// Those of neighbours in time of which the newer does not descend from the older.
    var victories: [Victory] {
        let arrived = nodes.indices.sorted {
            nodes[$0].record.syncCount > nodes[$1].record.syncCount
        }
        return zip(arrived, arrived.dropFirst()).compactMap { newer, older in
            let (winner, loser) = (nodes[newer].record, nodes[older].record)
            guard !Self.descends(winner, from: loser, asWritten), !loser.isDropped,
                !winner.isDropped
            else { return nil }
            return Victory(winner: newer, loser: older)
        }
    }

    // MARK: - Lanes

    /// A line of the drawing: which lanes go through it, and where the node is.
    struct Row {
        let node: Int
        /// For each lane whether it is in use before the node, and behind it.
        let before: [Bool]
        let after: [Bool]
        /// Lanes that end in the node's, since they led to it as well.
        let joined: [Int]
        /// Lanes that begin at the node's, for its parents but the first.
        let opened: [Int]
    }

    private(set) var rows: [Row] = []

    private mutating func placeInLanes() {
        // For each lane the node that comes next in it.
        var awaited: [Int?] = []
        for index in nodes.indices {
            let leading = awaited.indices.filter { awaited[$0] == index }
            let lane = leading.first ?? Self.freeLane(&awaited)
            let before = awaited.map { $0 != nil }
            for other in leading { awaited[other] = nil }
            nodes[index].lane = lane
            var opened: [Int] = []
            for (number, parent) in nodes[index].parents.enumerated() {
                if number == 0 {
                    awaited[lane] = parent
                } else if !awaited.contains(parent) {
                    // A lane that ends here is not begun again in the same line.
                    let new = Self.freeLane(&awaited, besides: leading + [lane])
                    awaited[new] = parent
                    opened.append(new)
                } else if let existing = awaited.firstIndex(of: parent), existing != lane {
                    opened.append(existing)
                }
            }
            laneCount = max(laneCount, awaited.count)
            rows.append(
                Row(
                    node: index, before: before, after: awaited.map { $0 != nil },
                    joined: Array(leading.dropFirst()), opened: opened))
        }
    }

    private static func freeLane(_ awaited: inout [Int?], besides taken: [Int] = []) -> Int {
        if let free = awaited.indices.first(where: { awaited[$0] == nil && !taken.contains($0) }) {
            return free
        }
        awaited.append(nil)
        return awaited.count - 1
    }
}
