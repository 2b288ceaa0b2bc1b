import Tidemark

// What to do when one side's store went back in time or was copied: when its peer shows a baton
// that it never drew, or has seen more of its writes than it has made. Whatever it wrote since then
// may have taken dots that already name other writes.
//
// It takes a new replica id at once, so that no more dots are used twice. From then on the old id
// is *disputed* in each dataset where there is a sign of it, and the store says so to whoever asks.
// It claims no more to have seen anything under that id, so its peer gives it all that it has of
// it. The asking side, whichever of the two it is, compares each record of the other side with its
// own, and what is found under a disputed dot on the forked side is
// - confirmed, if the other side has the very same write;
// - superseded, if the other side has a version that descends from it, and either the forked side
//   knew before it went back that the other one has the write, or the policy would take one of the
//   two anyway and the descendant is not older by the clock, which a true one cannot be;
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
            return certain.version.time == doubtful.version.time
                && certain.value == doubtful.value ? .confirmed : .settle(seen: both)
        case .descendant where isBelieved(certain, toDescendFrom: doubtful, isLocal: isLocal):
            // If it is the one that is here already, it goes to the peer with the push.
            return isLocal ? .superseded : .confirmed
        case .ancestor, .descendant, .concurrent:
            if certain.value == doubtful.value, certain.expiresAt == doubtful.expiresAt {
                // As late as the later one, or what was written between the two would win over it.
                let later = certain.version.time > doubtful.version.time ? certain : doubtful
                return .rewrite(later, seen: both)
            }
            return .settle(seen: both)
        }
    }

    /// Whether a version that seems to descend from a doubtful one does: for certain if its side
    /// had the doubtful one before the other went back, and not if it is older.
    ///
    /// A clock may have stood still or gone back with the store, so that it is no proof. It is
    /// asked where the policy takes one of the two whatever they hold. Where both would be merged
    /// nothing is lost by merging once too often, and the application may tell what it sees.
    private func isBelieved(
        _ certain: Record, toDescendFrom doubtful: Record, isLocal: Bool
    ) -> Bool {
        if certain.value == doubtful.value { return true }
        let isShared =
            isLocal
            ? known.toPeer.contains(doubtful.version.dot) : doubtful.syncCount <= known.fromPeer
        if isShared { return true }
        switch policy {
        case .lastWriterWins, .keepLocal, .keepRemote:
            return certain.version.time >= doubtful.version.time
        default: return false
        }
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
        "this store is a copy or went back in time, and what it wrote since is to be exchanged "
            + "anew; repeat the exchange")
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
}

extension Dataset {
    /// Takes a new replica id if a peer shows that the present one is forked, and marks as disputed
    /// in this dataset all ids of this store that are.
    ///
    /// - Returns: whether there was any such sign.
    @discardableResult
    func disputeForked(_ shown: [Baton], _ theirs: VersionVector) throws(StoreError) -> Bool {
        guard !store.options.isReadOnly, !store.options.plantedBugs.contains(.reuseDot) else {
            return false
        }
        let book = try BatonBook(self)
        let forked = book.forked(shown, theirs, try vector)
        guard !forked.isEmpty else { return false }
        // First, since a present id cannot be disowned. After a crash in between the peer shows
        // the same again.
        if forked.contains(store.replicaID) { try store.renewReplicaID() }
        try book.dispute(forked)
        return true
    }
}
