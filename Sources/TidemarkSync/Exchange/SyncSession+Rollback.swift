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
        doubts.ownIDs = Set(store.ownIDs)
        guard disputed != doubts.ours else { return false }
        doubts.ours = disputed
        doubts.confirmed = []
        return true
    }

    /// What is here of a key whose version at the peer is refused: written anew if its dot may name
    /// another write, too, since no comparison shows whether it does. nil if its dot is certain.
    func renewal(of stored: Record?) -> ReplicatedWrite? {
        guard let stored, doubts.contain(stored) else { return nil }
        return doubts.rewriting(stored)
    }

    /// Before the last page is applied: writes anew what the peer has nothing of.
    func rewriteDoubtful(before page: RecordPage) throws(SyncError) {
        guard !doubts.ours.isEmpty, page.isLast else { return }
        let settled = doubts.confirmed.union(page.records.map(\.key))
        try rewriteDoubtful { record in !settled.contains(record.key) }
    }

    private func rewriteDoubtful(where isLeft: (Record) -> Bool) throws(SyncError) {
        try rewrite(
            where: { record in doubts.contain(record) && isLeft(record) },
            as: { record in doubts.rewriting(record).content })
    }

    /// Of what a part hands on: writes anew what lies here under ids that the peer disputes, and
    /// what has seen such. The peer went on under them from an earlier point, and what it has
    /// written since would pass for an ancestor of this, or this for one of that.
    func rewriteWhatIsDoubtfulThere(_ part: PartRecord) throws(SyncError) {
        guard !doubts.theirs.isEmpty else { return }
        let (ownIDs, theirs) = (store.ownIDs, doubts.trusted(seenByPeer))
        try rewrite(
            where: { record in
                let isHandedOn =
                    part.handsOn(record.version, ofWhom: ownIDs, to: theirs)
                    || part.scope.keeps(record)
                return isHandedOn && !record.isDropped
                    && doubts.theirs.contains { record.version.vector[$0] > 0 }
            }, claimingNothingOf: doubts.theirs,
            as: { record in doubts.rewriting(record).content })
    }

    /// The peer has never heard of the dataset: then nothing can be compared, and all that lies
    /// here under a disputed id is written anew.
    func settleAlone() throws(SyncError) {
        guard !doubts.ours.isEmpty else { return }
        try rewriteDoubtful { _ in true }
        try engine(dataset.name) { () throws(StoreError) in
            var batch = ReplicationBatch()
            batch.disowned = doubts.ours.sorted()
            batch.isSettled = true
            batch.notes = try BatonBook(dataset).notes(taking: [], settling: batch.disowned)
            _ = try dataset.replicate(batch)
        }
        doubts.ours = []
    }
}

extension SyncError {
    static let forked = SyncError(
        .peerChanged,
        "this store, or one whose writes it has, is a copy or went back in time, and what was "
            + "written since is to be exchanged anew; repeat the exchange")
}

extension Doubts {
    /// What the peer disputes.
    mutating func take(_ greeting: DatasetGreeting?) {
        take(greeting?.disputed ?? [], former: greeting?.formerIDs ?? [])
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
