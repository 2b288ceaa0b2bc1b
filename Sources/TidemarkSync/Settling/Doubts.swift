import Tidemark

/// Ids under which two stores wrote, as far as either side of an exchange has just learnt of it,
/// and what is known of who had which of their writes. See `SyncSession+Rollback`.
struct Doubts {
    /// Former ids of this store under which another one wrote, too, and ids of others under which
    /// two stores wrote.
    var ours: Set<ReplicaID> = []
    /// The same of the peer.
    private(set) var theirs: Set<ReplicaID> = []
    /// Those of them that are none of the peer's own: it goes on showing batons of these alone.
    private var contestedByPeer: Set<ReplicaID> = []
    /// All ids that this store has or had.
    var ownIDs: Set<ReplicaID> = []
    /// What the peer was known to have when the exchange began, and how much of the peer's both
    /// remembered that we have: of disputed ids, before one of the two went back. What the peer
    /// remembers alone may be how far we had come while only a part was kept here, and not told of
    /// all before that. What we remember may stand under an id that the peer has given up since.
    var known = (toPeer: VersionVector(), fromPeer: SyncCount.zero)
    /// Keys of which the peer is known to have the write under a doubted id that is here, or of
    /// which a conflict waits.
    var confirmed: Set<[UInt8]> = []
    /// Whether the peer is a file, whose maker may not have been told yet of a dispute.
    var isOfFile = false
    /// Whether the policy takes one of two versions whatever they hold, so that their dates may say
    /// which one descends from the other.
    var believesDates = false

    var isEmpty: Bool { ours.isEmpty && theirs.isEmpty }

    /// The ids of the peer's greeting.
    mutating func take(_ disputed: [ReplicaID], former: [ReplicaID]) {
        theirs = Set(disputed)
        contestedByPeer = theirs.subtracting(former)
    }

    /// The peer has heard that all of its own are settled.
    mutating func endTheirs() { theirs = [] }

    /// All of them, whichever side disputes them.
    var ids: Set<ReplicaID> { ours.union(theirs) }

    /// Whether a write may be another one on the other side.
    func contain(_ dot: Dot) -> Bool {
        ours.contains(dot.replica) || theirs.contains(dot.replica)
    }

    /// What of the peer's claims counts: not what it has under an id of its own that is disputed.
    func trusted(_ vector: VersionVector) -> VersionVector {
        theirs.reduce(vector) { $0.removing($1) }
    }

    /// Whether a record of this side is doubtful. The mark of a dropped record is no write.
    func contain(_ local: Record) -> Bool {
        !local.isDropped && ours.contains(local.version.dot.replica)
    }

    /// What a record has seen for certain.
    func stripped(_ record: Record) -> VersionVector {
        (contain(record) ? ours : theirs).reduce(record.version.vector) { $0.removing($1) }
    }

    /// What either of two records has seen for certain.
    func seenForCertain(_ one: Record, _ other: Record) -> VersionVector {
        stripped(one).union(stripped(other))
    }

    /// Writes anew what lies here of a record's key, as it is.
    func rewriting(_ local: Record) -> ReplicatedWrite {
        local.rewritten(seen: stripped(local), over: local.version)
    }

    /// Whether the peer is known to have had the very write that lies here under a doubted dot.
    ///
    /// Of former ids of this store that is what the peer had before this store went back, and where
    /// the peer disputes nothing it is known which line it has. Of an id of others that both sides
    /// have just come to dispute nothing is known: they may have exchanged without noticing, and
    /// what the peer has seen of it may be of the other line. Nor is anything known of one that the
    /// maker of a bundle does not dispute: nobody has told it yet that there were two.
    func peerHad(_ dot: Dot) -> Bool {
        guard known.toPeer.contains(dot) else { return false }
        return ownIDs.contains(dot.replica) || (!isOfFile && !theirs.contains(dot.replica))
    }

    /// Whether we are known to have had the very write that lies at the peer under an id that it
    /// disputes. Likewise nothing is known of an id, none of the peer's, that both sides dispute:
    /// what we had seen of the one line has kept the peer from telling us of the other one.
    func weHad(_ doubtful: Record) -> Bool {
        let id = doubtful.version.dot.replica
        return doubtful.syncCount <= known.fromPeer
            && !(contestedByPeer.contains(id) && ours.contains(id))
    }

    /// Whether both sides have had an id and gave it up: then one may be a copy of the other, made
    /// after that one's disk went back. What both have under it proves nothing: some third store
    /// may have what was lost.
    private func isOfBoth(_ id: ReplicaID) -> Bool {
        ours.contains(id) && theirs.contains(id) && !contestedByPeer.contains(id)
            && ownIDs.contains(id)
    }

    /// Whether a version that seems to descend from a doubtful one does: for certain if its side
    /// is known to have had the doubtful one, and not if it is older.
    ///
    /// A clock may have stood still or gone back with the store, so that it is no proof. It is
    /// asked where the policy takes one of the two whatever they hold. Where both would be merged
    /// nothing is lost by merging once too often, and the application may tell what it sees.
    private func isBelieved(
        _ certain: Record, toDescendFrom doubtful: Record, isLocal: Bool
    ) -> Bool {
        if certain.value == doubtful.value { return true }
        if isLocal ? peerHad(doubtful.version.dot) : weHad(doubtful) { return true }
        return believesDates && certain.version.time >= doubtful.version.time
    }

    /// What a doubtful dot comes to.
    enum Finding {
        /// Both sides have the same write.
        case confirmed
        /// The version whose dot is certain takes the other's place, wherever that still stands.
        case superseded
        case decided(Verdict.Outcome)
    }

    /// What becomes of a record of which either side's version has a dot that may name two writes;
    /// nil if it has not.
    func finding(on incoming: Record, beside stored: Record?) -> Finding? {
        // Where a record was dropped nothing is.
        let local = stored.flatMap { $0.isDropped ? nil : $0 }
        let isLocal = local.map { contain($0) } ?? false
        guard isLocal || theirs.contains(incoming.version.dot.replica) else { return nil }
        guard let local else {
            let write = incoming.rewritten(seen: stripped(incoming), over: stored?.version)
            return .decided(.renew(write, isTheirs: true))
        }
        // From here on one of the two is in doubt, and the other one is as it is.
        let (doubtful, certain) = isLocal ? (local, incoming) : (incoming, local)
        switch certain.version.relation(to: doubtful.version) {
        case .same:
            guard certain.version.time == doubtful.version.time, certain.value == doubtful.value
            else {
                return .decided(
                    .settle(seen: stripped(doubtful).union(certain.version.vector)))
            }
            return isOfBoth(local.version.dot.replica)
                ? .decided(.renew(rewriting(local), isTheirs: false)) : .confirmed
        case .descendant where isBelieved(certain, toDescendFrom: doubtful, isLocal: isLocal):
            // If it is the one that is here already, it goes to the peer with the push.
            return isLocal ? .superseded : .confirmed
        case .ancestor, .descendant, .concurrent:
            return .decided(
                .between(
                    local, incoming, seen: stripped(doubtful).union(certain.version.vector)))
        }
    }
}

extension Record {
    /// Written anew as it is, under a new dot.
    ///
    /// - Parameters:
    ///   - seen: what it descends from.
    ///   - present: the version that lies here of its key.
    func rewritten(seen: VersionVector, over present: Version?) -> ReplicatedWrite {
        ReplicatedWrite(
            key: key,
            content: .rewrite(
                value: value, of: version, seen: seen, keepsTime: true, expiresAt: expiresAt),
            expected: present)
    }
}
