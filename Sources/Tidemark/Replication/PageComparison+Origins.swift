extension PageComparison {
    /// An origin of the page beside what the dataset has seen.
    struct IncomingOrigin {
        let replica: ReplicaID
        let others: VersionVector
        /// Of the replica's writes: those whose whole vectors the dataset's vector covers.
        let seenThrough: UInt64
        /// The same for what the peer has told that it had seen, without what it holds.
        let toldThrough: UInt64
        /// The same for what was wiped.
        let wipedThrough: UInt64
        /// Of the replica's writes: those that were wiped.
        let wipedOwn: UInt64
        /// Whether its definition is among the bytes.
        var isCounted = false
    }

    struct LocalOrigin {
        let replica: ReplicaID
        /// As it is stored: mostly without an entry of the replica itself.
        let vector: VersionVector
        /// That entry, if it is there.
        let own: UInt64
        /// Of the replica's writes: those whose whole vectors the dataset's vector covers without
        /// what is held.
        let seenThrough: UInt64
        let author: String
    }

    struct LocalKey: Hashable {
        let tables: ObjectIdentifier
        let origin: UInt32
    }

    /// What is the same for all versions of two origins.
    struct Pair {
        let isSameReplica: Bool
        /// Up to where the incoming ones have seen the writes of the local one's replica.
        let incomingSeesLocal: UInt64
        let localSeesIncoming: UInt64
        /// Whether what the incoming ones have seen covers what the local ones have, but for the
        /// writes of the incoming one's replica.
        let othersCoverLocal: Bool
        /// The other way round, but for the writes of the local one's replica.
        let localCoversOthers: Bool
    }

    /// Two versions neither of which descends from the other.
    struct Concurrent {
        let item: MergePage.Item
        let index: Int
        let incoming: IncomingOrigin
        let local: LocalOrigin
        let localNumber: Int
        let localCounter: UInt64
        let localTime: UInt64

        var theirs: Dot { Dot(replica: incoming.replica, counter: item.counter) }
        var ours: Dot { Dot(replica: local.replica, counter: localCounter) }

        /// Whether the version that joins them may claim to have seen more: see ``SharedMerges``.
        func maySeeMore(isIncoming: Bool) -> Bool {
            // What one has seen that outlived something its writer need not have known.
            guard item.highest <= incoming.toldThrough, localCounter <= local.seenThrough,
                !HybridTime(rawValue: max(item.time, localTime)).isOutliving
            else { return false }
            return isIncoming
                ? item.highest == item.counter && local.vector[incoming.replica] <= item.counter
                : local.own <= localCounter && incoming.others[local.replica] <= localCounter
        }

        /// The order by which last writer wins, as ``Version/isLater(than:)``.
        var isIncomingLater: Bool {
            item.time != localTime ? item.time > localTime : theirs > ours
        }

        /// All that both have seen.
        func union() -> VersionVector {
            VersionVector(
                joining: incoming.others, local.vector,
                Dot(replica: incoming.replica, counter: item.highest), ours)
        }

        /// What both have seen, as it is stored with one of the two dots.
        func union(storedWith dot: Dot) -> VersionVector {
            var union = union()
            if union[dot.replica] == dot.counter { union.remove(dot.replica) }
            return union
        }
    }
}
