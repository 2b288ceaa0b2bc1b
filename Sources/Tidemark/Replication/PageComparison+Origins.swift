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

    /// Two versions neither of which descends from the other. Numbers alone: of a page all records
    /// may be in conflict, and copies of vectors and authors are counted one by one.
    struct Concurrent {
        let item: MergePage.Item
        let index: Int
        let localNumber: Int
        let localTime: UInt64
        let theirs: Dot
        let ours: Dot
        let pair: Pair
        /// Of the incoming one's origin.
        let toldThrough: UInt64
        /// Of the local one's origin.
        let seenThrough: UInt64
        /// Of the local one's origin.
        let own: UInt64

        /// Whether the version that joins them may claim to have seen more: see ``SharedMerges``.
        func maySeeMore(isIncoming: Bool) -> Bool {
            // What one has seen that outlived something its writer need not have known.
            guard item.highest <= toldThrough, ours.counter <= seenThrough,
                !HybridTime(rawValue: max(item.time, localTime)).isOutliving
            else { return false }
            return isIncoming
                ? item.highest == item.counter && pair.localSeesIncoming <= item.counter
                : own <= ours.counter && pair.incomingSeesLocal <= ours.counter
        }

        /// The order by which last writer wins, as ``Version/isLater(than:)``.
        var isIncomingLater: Bool {
            item.time != localTime ? item.time > localTime : theirs > ours
        }
    }
}
