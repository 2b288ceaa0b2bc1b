/// Deletions of which nothing is left: what the forgotten tombstones had seen, themselves included.
///
/// Whoever has seen all of it (``VersionVector/covers(_:)``) has missed none of them, whichever way
/// it heard of them. Whoever has not may hold a record that one of them deleted: it is *late*, and
/// must not be given changes as if nothing were missing. That is told by what was seen, and never
/// by a clock.
///
/// Only ever added to, so the join of two says what either says.
package struct ForgottenDeletions: Hashable, Sendable {
    package private(set) var vector: VersionVector
    /// None of the forgotten tombstones is later, but for such as were dated further ahead than
    /// ``StoreOptions/clockAheadMax``.
    package private(set) var time: HybridTime

    package init(vector: VersionVector = VersionVector(), time: HybridTime = .zero) {
        self.vector = vector
        self.time = time
    }

    package var isEmpty: Bool { vector.isEmpty }

    /// Whether everything that the other one speaks of is in this one.
    package func covers(_ other: ForgottenDeletions) -> Bool {
        vector.covers(other.vector) && time >= other.time
    }

    /// Whether nothing is left, for all that anybody must know, of a deletion of that version: who
    /// lacks it is late by this. Its tombstone may be there, and need not be.
    package func covers(_ version: Version) -> Bool {
        !isEmpty && vector.covers(version.vector)
    }

    package mutating func formUnion(_ other: ForgottenDeletions) {
        vector.formUnion(other.vector)
        time = max(time, other.time)
    }

    package func union(_ other: ForgottenDeletions) -> ForgottenDeletions {
        var joined = self
        joined.formUnion(other)
        return joined
    }

    /// Adds a tombstone.
    package mutating func insert(_ version: Version) {
        vector.formUnion(version.vector)
        time = max(time, version.time)
    }
}

/// A dataset that finds out what of its records a peer has seen, deleted and forgotten.
struct FreshStart {
    let peer: ReplicaID
    /// What the peer has forgotten.
    let forgotten: ForgottenDeletions
}

extension VersionVector {
    /// What both have seen: of each replica the lower of the two counters. O(n + m).
    package func intersection(_ other: VersionVector) -> VersionVector {
        var common = VersionVector()
        var index = 0
        for mine in entries {
            while index < other.entries.count, other.entries[index].replica < mine.replica {
                index += 1
            }
            guard index < other.entries.count else { break }
            let theirs = other.entries[index]
            guard theirs.replica == mine.replica else { continue }
            common.entries.append(theirs.counter < mine.counter ? theirs : mine)
        }
        return common
    }
}
