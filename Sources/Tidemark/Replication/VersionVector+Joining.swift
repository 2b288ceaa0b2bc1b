// What the comparison of pages needs of versions and vectors.

extension Version {
    /// The same write, having seen what another had, too.
    package func joined(with other: VersionVector) -> Version {
        Version(dot: dot, vector: vector.union(other), time: time, author: author)
    }
}

extension VersionVector {
    /// The join of two vectors and two dots, in one piece of memory.
    init(
        joining left: VersionVector, _ right: VersionVector, _ one: Dot, _ other: Dot
    ) {
        self.init()
        entries.reserveCapacity(left.count + right.count + 2)
        entries.append(contentsOf: left.entries)
        for dot in right.entries { insert(dot) }
        insert(one)
        insert(other)
    }

    /// What it says, but for the given writes and all that came after them where they were made.
    package func before(_ dots: [Dot]) -> VersionVector {
        guard !dots.isEmpty else { return self }
        var ends: [ReplicaID: UInt64] = [:]
        for dot in dots {
            ends[dot.replica] = min(ends[dot.replica] ?? .max, dot.counter - 1)
        }
        return VersionVector(
            entries.map {
                Dot(replica: $0.replica, counter: min($0.counter, ends[$0.replica] ?? .max))
            })
    }

    /// Takes out the entry of a replica.
    mutating func remove(_ replica: ReplicaID) {
        guard let index = entries.firstIndex(where: { $0.replica == replica }) else { return }
        entries.remove(at: index)
    }

    /// Whether everything that the other one has seen of all replicas but one has been seen by
    /// this one.
    func covers(_ other: VersionVector, except replica: ReplicaID) -> Bool {
        var index = 0
        for theirs in other.entries where theirs.replica != replica {
            while index < entries.count, entries[index].replica < theirs.replica { index += 1 }
            guard index < entries.count, entries[index].replica == theirs.replica,
                entries[index].counter >= theirs.counter
            else { return false }
        }
        return true
    }
}
