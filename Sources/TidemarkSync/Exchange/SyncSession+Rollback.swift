import Tidemark

// What to do when one side's store went back in time or was copied: when its peer shows a baton
// that it never drew, or has seen more of its writes than it has made. Whatever it wrote since then
// may have taken dots that already name other writes. And when a peer shows that some third store
// did: what one side has of that one's writes may have the dots of others. "The forked side" is
// then whoever has just learnt that.
//
// It takes a new replica id at once, so that no more dots are used twice. From then on the old id
// is *disputed* in each dataset where there is a sign of it, and the store says so to whoever asks.
// It claims no more to have seen anything under that id, so its peer gives it all that it has of
// it. The asking side, whichever of the two it is, compares each record of the other side with its
// own, and what is found under a disputed dot on the forked side is
// - confirmed, if the other side has the very same write, and has not given up the same id;
// - superseded, if the other side has a version that descends from it, and either the forked side
//   knew before that the other one has the write (but of an id of others that both dispute), or the
//   policy would take one of the two anyway and the descendant is not older by the clock, which a
//   true one cannot be;
// - otherwise written anew under an id of the asking side, so that nothing is lost: with the time
//   that it has if the other side has nothing of the key, with the later of the two times if that
//   has the same value; in all other cases the two are a conflict, which the merge policy settles
//   as any other. Also if it seems to descend from the other side's version, since that may be one
//   that it never saw.
// With the last page the forked side's own writes under the disputed id are all the other side's,
// too, and the id is as good as that of any other replica. An exchange that is cut off before does
// all this again.
//
// A version that is refused here is compared with nothing. What is here of its key is written anew
// if its dot is doubtful; if that of the refused version is, the forked side goes on disputing the
// id, and all else is exchanged.

extension SyncSession {
    /// Takes note of a fork of this store that shows in what the peer knows.
    ///
    /// - Returns: whether what was agreed with the peer until now no longer holds.
    func noteFork(_ theirs: PeerKnowledge?) throws(SyncError) -> Bool {
        let disputed = try engine(dataset.name) { () throws(StoreError) in
            if let theirs { try dataset.disputeForked(theirs.batons, theirs.vector) }
            return Set(try BatonBook(dataset).disputed)
        }
        guard disputed != doubted else { return false }
        doubted = disputed
        confirmedKeys = []
        return true
    }

    /// What of the peer's claims counts: not what it has under an id of its own that is disputed.
    func trusted(_ vector: VersionVector) -> VersionVector {
        peerDisputed.reduce(vector) { $0.removing($1) }
    }

    private func isDoubted(_ record: Record) -> Bool {
        // The mark of a dropped record is no write.
        !record.isDropped && doubted.contains(record.version.dot.replica)
    }

    func stripped(_ record: Record) -> VersionVector {
        let ids = isDoubted(record) ? doubted : peerDisputed
        return ids.reduce(record.version.vector) { $0.removing($1) }
    }

    /// What is to become of a record of which either side's version has a dot that may name two
    /// writes; nil if it has not.
    func verdict(on incoming: Record, beside stored: Record?) -> ForkVerdict? {
        // Where a record was dropped nothing is.
        let local = stored.flatMap { $0.isDropped ? nil : $0 }
        let isLocal = local.map(isDoubted) ?? false
        guard isLocal || peerDisputed.contains(incoming.version.dot.replica) else { return nil }
        guard let local else {
            return .rewrite(incoming, seen: stripped(incoming))
        }
        // From here on one of the two is in doubt, and the other one is as it is.
        let (doubtful, certain) = isLocal ? (local, incoming) : (incoming, local)
        let both = stripped(doubtful).union(certain.version.vector)
        switch certain.version.relation(to: doubtful.version) {
        case .same:
            guard certain.version.time == doubtful.version.time, certain.value == doubtful.value
            else { return .settle(seen: both) }
            return isOfBoth(local.version.dot.replica)
                ? .rewrite(local, seen: stripped(local)) : .confirmed
        case .descendant where isBelieved(certain, toDescendFrom: doubtful, isLocal: isLocal):
            // If it is the one that is here already, it goes to the peer with the push.
            return isLocal ? .superseded : .confirmed
        case .ancestor, .descendant, .concurrent:
            return .between(doubtful, certain, seen: both)
        }
    }

    /// Whether both sides have had an id and gave it up: then one may be a copy of the other, made
    /// after that one's disk went back. What both have under it proves nothing: some third store
    /// may have what was lost.
    private func isOfBoth(_ id: ReplicaID) -> Bool {
        doubted.contains(id) && peerDisputed.contains(id) && !contestedByPeer.contains(id)
            && store.ownIDs.contains(id)
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
        let isShared = isLocal ? peerHad(doubtful.version.dot) : weHad(doubtful)
        if isShared { return true }
        switch policy {
        case .lastWriterWins, .keepLocal, .keepRemote:
            return certain.version.time >= doubtful.version.time
        default: return false
        }
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
        return store.ownIDs.contains(dot.replica)
            || (!isFile && !peerDisputed.contains(dot.replica))
    }

    /// Whether we are known to have had the very write that lies at the peer under an id that it
    /// disputes. Likewise nothing is known of an id, none of the peer's, that both sides dispute:
    /// what we had seen of the one line has kept the peer from telling us of the other one.
    func weHad(_ doubtful: Record) -> Bool {
        let id = doubtful.version.dot.replica
        return doubtful.syncCount <= known.fromPeer
            && !(contestedByPeer.contains(id) && doubted.contains(id))
    }

    /// What is here of a key whose version at the peer is refused: written anew if its dot may name
    /// another write, too, since no comparison shows whether it does. nil if its dot is certain.
    func renewal(of stored: Record?) -> ReplicatedWrite? {
        guard let stored, isDoubted(stored) else { return nil }
        return ReplicatedWrite(
            key: stored.key,
            content: .rewrite(
                value: stored.value, of: stored.version, seen: stripped(stored), keepsTime: true,
                expiresAt: stored.expiresAt), expected: stored.version)
    }

    /// Before the last page is applied: writes anew what the peer has nothing of.
    func rewriteDoubtful(before page: RecordPage) throws(SyncError) {
        guard !doubted.isEmpty, page.isLast else { return }
        let settled = confirmedKeys.union(page.records.map(\.key))
        try rewrite(
            where: { record in isDoubted(record) && !settled.contains(record.key) },
            as: { record in
                .rewrite(
                    value: record.value, of: record.version, seen: stripped(record),
                    keepsTime: true, expiresAt: record.expiresAt)
            })
    }

    /// The peer has never heard of the dataset: then nothing can be compared, and all that lies
    /// here under a disputed id is written anew.
    func settleAlone() throws(SyncError) {
        guard !doubted.isEmpty else { return }
        try rewrite(
            where: isDoubted,
            as: { record in
                .rewrite(
                    value: record.value, of: record.version, seen: stripped(record),
                    keepsTime: true, expiresAt: record.expiresAt)
            })
        try engine(dataset.name) { () throws(StoreError) in
            var batch = ReplicationBatch()
            batch.disowned = doubted.sorted()
            batch.isSettled = true
            batch.notes = try BatonBook(dataset).notes(taking: [], settling: batch.disowned)
            _ = try dataset.replicate(batch)
        }
        doubted = []
    }
}

extension SyncError {
    static let forked = SyncError(
        .peerChanged,
        "this store, or one whose writes it has, is a copy or went back in time, and what was "
            + "written since is to be exchanged anew; repeat the exchange")
}

/// What becomes of a record under a dot that may name two writes.
enum ForkVerdict {
    /// Both sides have the same write.
    case confirmed
    /// The version whose dot is certain takes the other's place, wherever that still stands.
    case superseded
    /// Is written anew, as a descendant of what is given.
    case rewrite(Record, seen: VersionVector)
    /// A conflict for the policy, whose outcome descends from what is given.
    case settle(seen: VersionVector)

    /// Of two versions of which nobody can tell whether one descends from the other.
    static func between(
        _ doubtful: Record, _ certain: Record, seen: VersionVector
    ) -> ForkVerdict {
        guard certain.value == doubtful.value, certain.expiresAt == doubtful.expiresAt else {
            return .settle(seen: seen)
        }
        // As late as the later one, or what was written between the two would win over it.
        let later = certain.version.time > doubtful.version.time ? certain : doubtful
        return .rewrite(later, seen: seen)
    }
}

extension DatasetGreeting {
    /// The disputed ids under which the responder wrote itself. It shows no baton of those, and
    /// one of each disputed id of somebody else.
    var formerIDs: [ReplicaID] {
        let shown = Set((knowledge?.batons ?? []).map(\.replica))
        return disputed.filter { !shown.contains($0) }
    }
}

extension Dataset {
    /// How much of one peer's changes has come here, whichever of its ids it had then; zero if
    /// nothing did.
    ///
    /// - Parameter ids: the present one and former ones.
    func pulledThrough(from ids: [ReplicaID]) throws(StoreError) -> SyncCount {
        var reached = SyncCount.zero
        for id in ids { reached = max(reached, try checkpoint(for: id).pulledThrough) }
        return reached
    }

    /// Takes a new replica id if a peer shows that the present one is forked, and marks as disputed
    /// in this dataset all ids of this store that are, and all of others that the peer shows to be.
    ///
    /// - Parameters:
    ///   - contests: whether ids of others are looked at. What a part has seen claims nothing, so
    ///     that they do not matter there.
    ///   - isTrusted: whether the peer would not make up such a sign. To take a new id concerns
    ///     every dataset, and a store keeps all that it ever had: so for those who are not trusted
    ///     it does so once for as long as it is open. Once is enough, since a store goes back in
    ///     time only while it is closed, and under an id that was drawn since, nobody else writes.
    /// - Returns: whether there was any such sign.
    /// - Throws: `invalidArgument` for a sign that is not believed.
    @discardableResult
    func disputeForked(
        _ shown: [Baton], _ theirs: VersionVector, contests: Bool = true, isTrusted: Bool = true
    ) throws(StoreError) -> Bool {
        guard !store.options.isReadOnly, !store.has(.reuseDot) else {
            return false
        }
        let book = try BatonBook(self)
        let forked = book.forked(shown, theirs, try vector)
        var contested = contests ? book.contested(shown) : []
        if !contested.isEmpty, try PartBook.isPart(self) { contested = [] }
        guard !forked.isEmpty || !contested.isEmpty else { return false }
        // First, since a present id cannot be disowned. After a crash in between the peer shows
        // the same again.
        if forked.contains(store.replicaID) {
            guard isTrusted || store.takeRenewalForStranger() else {
                throw StoreError(
                    .invalidArgument,
                    "the asker has seen writes of this replica that are not of this dataset; use "
                        + "a store for each identity, and open the peer's anew if it was copied")
            }
            try store.renewReplicaID()
        }
        try book.dispute(forked, contested: contested)
        return true
    }
}
