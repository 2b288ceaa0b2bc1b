import Tidemark

// How a version that arrives is compared with what is here. Pure functions: both sides of an
// exchange use them, and a table in the tests lists every case.
//
// For each key the outcome is a join: the versions' vectors are united, and of two versions
// neither of which descends from the other the one later by (time, dot) stays, with its own dot.
// A join is commutative, associative and idempotent, so replicas that have seen the same versions
// hold the same bytes, whatever the order, repetition or detours. (Versions that a whole page joins
// may claim to have seen more, which is as true: see `SharedMerges` in the store.)
//
// What makes it safe to ignore what was seen: for each key, the vector of the record that is here
// contains every write to that key that the dataset's vector contains, but for those that were
// wiped with the dataset, which are in its vector and in no record. So a version of which the
// dataset's vector covers everything, while the record's does not, was wiped out with the dataset,
// or its tombstone is no longer kept; taking it up again would bring back the dead.
//
// A whole page is compared by the same rules in the store (`PageComparison`), without making
// records; a test holds the two against each other. What is changed here is changed there.
//
// That holds as long as a version is later than all that it descends from, which the clocks see
// to, but for writes that are dated too far ahead to be believed. What overwrites such a one is
// dated before it, and who had believed it may have dropped other versions for it meanwhile. Let a
// step be plain if the winner is the later of the two, or has seen all that the loser had. Plain
// steps lead to one winner, whatever their order: only a later winner enlarges what a record has
// seen; so what is seen and later than the winner was overwritten by something that is seen, too,
// and whoever joins that cannot keep what it overwrote. A step that is not plain makes a new
// write, which no vector claims, so that it reaches everyone.
//
// Deleting a dataset wipes what its maker had seen: the versions whose whole vectors it covers. A
// version that won over one that the maker had not seen stays, or that one would be gone on some
// replicas and live on on others.

enum Comparison: Hashable, Sendable {
    /// What is here says all of it.
    case ignore
    /// Stored as it is, in place of what is here.
    case adopt(value: [UInt8]?, version: Version, expiresAt: UInt64? = nil)
    /// Neither descends from the other and they differ: a policy decides.
    case conflict
    /// The record that is given wins by descent, but has to be written anew: see
    /// `Version.supersedesAsItIs(_:)` and `Comparison.renewal(of:incoming:local:)`.
    case renew(Record)
}

extension Comparison {
    /// - Parameters:
    ///   - local: what is here, a tombstone included.
    ///   - seen: the dataset's vector.
    ///   - wiped: what was deleted with the whole dataset.
    init(local: Record?, incoming: Record, seen: VersionVector, wiped: VersionVector) {
        // A version that outlived a deletion, because it had won over a write that the deletion
        // had not seen, is in every vector that has both writes, and yet may never have been here.
        let isSeen =
            seen.covers(incoming.version.vector) && !wiped.contains(incoming.version.dot)
        if wiped.covers(incoming.version.vector) {
            self = .ignore
            return
        }
        guard let local else {
            self =
                isSeen
                ? .ignore
                : .adopt(
                    value: incoming.value, version: incoming.version,
                    expiresAt: incoming.expiresAt)
            return
        }
        if incoming.version.isInDispute(with: local.version) {
            self = .disputed(local: local, incoming: incoming)
            return
        }
        switch incoming.version.relation(to: local.version) {
        case .descendant where !incoming.version.supersedesAsItIs(local.version):
            self = .renew(incoming)
        case .ancestor where !local.version.supersedesAsItIs(incoming.version):
            self = .renew(local)
        case .descendant:
            self = .join(incoming, into: local)
        case .ancestor:
            self = .join(local, into: local, adding: incoming.version.vector)
        case .same where local.isBuried(ahead: incoming):
            self = .renew(local)
        case .same:
            // One dot with two times was used twice: a store went back in time and went on
            // writing before it met anyone. The later one stays, everywhere.
            self =
                incoming.version.time > local.version.time
                ? .join(incoming, into: local)
                : .join(local, into: local, adding: incoming.version.vector)
        case .concurrent where isSeen:
            self = .ignore
        case .concurrent
        where incoming.value == local.value && incoming.expiresAt == local.expiresAt:
            self = .lastWriter(local: local, incoming: incoming)
        case .concurrent:
            self = .conflict
        }
    }

    /// Of two versions each of which has seen the other, and one of which has outlived something,
    /// that which has seen all of the other stays. If there is none, either was superseded by
    /// something that the other one has seen, and nobody can tell which was not. Among what they
    /// have seen is a deletion; so the record is deleted, under the dot of the one that did not
    /// outlive, so that who went on from it wins.
    private static func disputed(local: Record, incoming: Record) -> Comparison {
        let (ours, theirs) = (local.version.vector, incoming.version.vector)
        if ours != theirs {
            if theirs.covers(ours) { return join(incoming, into: local) }
            if ours.covers(theirs) { return .ignore }
        }
        let earlier = incoming.version.isLater(than: local.version) ? local : incoming
        return .renew(
            Record(
                key: earlier.key, value: nil, version: earlier.version,
                syncCount: earlier.syncCount, isDirty: earlier.isDirty))
    }

    /// What is written where a version wins that has to be written anew.
    ///
    /// Over one that has outlived something it wins under its own dot, and outlives, too: others
    /// may have gone on from it.
    static func renewal(
        of winner: Record, incoming: Record, local: Record?
    ) -> ReplicatedWrite {
        let later = max(incoming.version.time, local?.version.time ?? .zero)
        let content: ReplicatedWrite.Content
        if later.isOutliving, let local {
            let vector = incoming.version.vector.union(local.version.vector)
            content = .outlive(
                value: winner.value,
                version: Version(
                    dot: winner.version.dot, vector: vector, time: .outliving(later),
                    author: winner.version.author),
                expiresAt: winner.expiresAt)
        } else {
            content = .resolve(
                value: winner.value, seen: incoming.version, expiresAt: winner.expiresAt)
        }
        return ReplicatedWrite(key: incoming.key, content: content, expected: local?.version)
    }

    /// The later of two versions with what both have seen.
    static func lastWriter(local: Record, incoming: Record) -> Comparison {
        incoming.version.isLater(than: local.version)
            ? join(incoming, into: local)
            : join(local, into: local, adding: incoming.version.vector)
    }

    /// The winner with the vectors united; nothing to do if that is what is here.
    private static func join(
        _ winner: Record, into local: Record, adding other: VersionVector? = nil
    ) -> Comparison {
        var vector = winner.version.vector.union(local.version.vector)
        if let other {
            vector.formUnion(other)
        }
        let version = Version(
            dot: winner.version.dot, vector: vector, time: winner.version.time,
            author: winner.version.author)
        return version == local.version
            ? .ignore
            : .adopt(value: winner.value, version: version, expiresAt: winner.expiresAt)
    }
}

extension Record {
    /// Whether this is the deletion that buried a write under its own dot, and the write comes once
    /// more with what it has been joined with since. Joined, a value and a deletion would have one
    /// version, and neither side would be told; so the deletion is written anew. It keeps its
    /// time: it is no later than it was.
    func isBuried(ahead incoming: Record) -> Bool {
        isDeleted && !isDropped && expiresAt == nil && !incoming.isDeleted
            && version.dot == incoming.version.dot && version.time == incoming.version.time
            && !version.vector.covers(incoming.version.vector)
    }
}

extension PeerLifecycle {
    init(_ lifecycle: DatasetLifecycle) {
        self.init(
            isDeleted: lifecycle.isDeleted, wiped: lifecycle.wiped, time: lifecycle.time,
            replica: lifecycle.replica)
    }

    /// The order of stamps: time, then replica.
    func isLater(than other: PeerLifecycle) -> Bool {
        time != other.time ? time > other.time : replica > other.replica
    }

    /// Whether joining the other one would change nothing.
    func covers(_ other: PeerLifecycle) -> Bool {
        !other.isLater(than: self) && wiped.covers(other.wiped)
    }
}

extension PeerKnowledge {
    init(_ knowledge: DatasetKnowledge) {
        self.init(
            vector: knowledge.vector, syncCount: knowledge.syncCount,
            lifecycle: PeerLifecycle(knowledge.lifecycle), forgotten: knowledge.forgotten)
    }
}

extension Dataset {
    /// Joins a peer's lifecycle into ours, if it says anything new.
    func join(_ theirs: PeerLifecycle) throws(StoreError) {
        var lifecycle = try knowledge().lifecycle
        guard !PeerLifecycle(lifecycle).covers(theirs) else { return }
        lifecycle.isDeleted = theirs.isDeleted
        lifecycle.wiped = theirs.wiped
        lifecycle.time = theirs.time
        lifecycle.replica = theirs.replica
        var batch = ReplicationBatch()
        batch.lifecycle = lifecycle
        _ = try replicate(batch)
    }

    /// Stores a checkpoint by itself. Writes nothing if it is stored already.
    func remember(_ checkpoint: PeerCheckpoint, of peer: ReplicaID) throws(StoreError) {
        var batch = ReplicationBatch()
        batch.checkpoint = (peer, checkpoint)
        _ = try replicate(batch)
    }

    /// How many records a page may have so that its vectors stay within bounds.
    func recordsPerPage(atMost recordsMax: Int) throws(StoreError) -> Int {
        let entries = try vector.count + 16
        return max(1, min(recordsMax, SyncLimits.pageVectorEntriesMax / entries))
    }
}
