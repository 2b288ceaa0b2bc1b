/// For each replica the highest counter that has been seen: the set of all writes with a counter
/// up to that one. A dataset has one (what it has seen), and so has each record (what its writer
/// had seen of the dataset when it wrote).
///
/// Parker et al.: "Detection of Mutual Inconsistency in Distributed Systems" (1983). Together with
/// the ``Dot`` of a write it forms a dotted version vector (Preguiça et al., 2010).
///
/// A sorted array rather than a dictionary: vectors have few entries, are compared and joined far
/// more often than looked up, and equal vectors must have equal bytes on the wire.
public struct VersionVector: Hashable, Sendable {
    /// Sorted by replica; no counter is 0.
    @usableFromInline
    var entries: [Dot]

    /// The vector that has seen nothing.
    public init() {
        entries = []
    }

    /// The vector that has seen just the given dots and everything before them.
    public init(_ dots: some Sequence<Dot>) {
        self.init()
        for dot in dots {
            insert(dot)
        }
    }

    /// The number of replicas with a counter above 0.
    public var count: Int { entries.count }

    public var isEmpty: Bool { entries.isEmpty }

    /// One dot for each replica, the highest seen of it, in the order of the replicas.
    public var dots: [Dot] { entries }

    /// The highest counter seen of a replica; 0 if none. O(log n).
    public subscript(replica: ReplicaID) -> UInt64 {
        let index = lowerBound(of: replica)
        return index < entries.count && entries[index].replica == replica
            ? entries[index].counter : 0
    }

    /// Whether the write has been seen. O(log n).
    public func contains(_ dot: Dot) -> Bool {
        dot.counter <= self[dot.replica]
    }

    /// Whether everything that the other vector has seen has been seen by this one. O(n + m).
    public func covers(_ other: VersionVector) -> Bool {
        var index = 0
        for theirs in other.entries {
            while index < entries.count, entries[index].replica < theirs.replica {
                index += 1
            }
            guard index < entries.count, entries[index].replica == theirs.replica,
                entries[index].counter >= theirs.counter
            else { return false }
        }
        return true
    }

    /// Adds a write and all earlier ones of the same replica. O(n).
    public mutating func insert(_ dot: Dot) {
        guard dot.counter > 0 else { return }
        let index = lowerBound(of: dot.replica)
        if index < entries.count, entries[index].replica == dot.replica {
            if entries[index].counter < dot.counter {
                entries[index] = dot
            }
        } else {
            entries.insert(dot, at: index)
        }
    }

    /// Adds the write of a replica that follows all seen of it, and gives its dot. O(log n).
    mutating func insertNext(of replica: ReplicaID) -> Dot {
        let index = lowerBound(of: replica)
        guard index < entries.count, entries[index].replica == replica else {
            let dot = Dot(replica: replica, counter: 1)
            entries.insert(dot, at: index)
            return dot
        }
        let dot = Dot(replica: replica, counter: entries[index].counter + 1)
        entries[index] = dot
        return dot
    }

    /// Adds everything that the other vector has seen (the join of the two). O(n + m).
    public mutating func formUnion(_ other: VersionVector) {
        guard !covers(other) else { return }
        var joined: [Dot] = []
        joined.reserveCapacity(entries.count + other.entries.count)
        var mine = entries[...]
        var theirs = other.entries[...]
        while let left = mine.first, let right = theirs.first {
            if left.replica == right.replica {
                joined.append(left.counter < right.counter ? right : left)
                mine.removeFirst()
                theirs.removeFirst()
            } else if left.replica < right.replica {
                joined.append(mine.removeFirst())
            } else {
                joined.append(theirs.removeFirst())
            }
        }
        entries = joined + mine + theirs
    }

    /// The join of the two vectors. O(n + m).
    public func union(_ other: VersionVector) -> VersionVector {
        var joined = self
        joined.formUnion(other)
        return joined
    }

    /// This vector without any entry of the given replica.
    package func removing(_ replica: ReplicaID) -> VersionVector {
        var rest = self
        let index = lowerBound(of: replica)
        if index < entries.count, entries[index].replica == replica {
            rest.entries.remove(at: index)
        }
        return rest
    }

    private func lowerBound(of replica: ReplicaID) -> Int {
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].replica < replica {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }
}

extension VersionVector: CustomStringConvertible {
    /// `{1a2b3c4d:7, 5e1f00aa:42}`
    public var description: String {
        "{" + entries.map(\.description).joined(separator: ", ") + "}"
    }
}
