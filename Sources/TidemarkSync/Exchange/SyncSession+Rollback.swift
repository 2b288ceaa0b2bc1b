import Tidemark

// What to do when a peer has seen more of our writes than we have made: this store was restored
// from a backup, or its directory was copied. Whatever it wrote since then took dots that already
// name other writes.
//
// It takes a new replica id at once, so that no more dots are used twice. From then on, in each
// dataset, the sign of it is that the peer has seen more of a former id of ours than we have. As
// long as that is so, nothing that we think we have seen under that id is taken for granted: all
// that the peer has of it is pulled and compared, which brings the lost writes back. What was
// written here under doubtful dots is found out as follows:
// - the peer has a version that seems to descend from ours but is older by the clock: that cannot
//   be, so the two are a conflict;
// - the peer claims to have seen the dot, but what it has for the key is neither that write nor
//   one that descends from it: it has seen another write under that dot.
// The latter are written anew under the new id before the last page is applied. Only with that
// page does the sign vanish, so an exchange that is cut off before will do all this again.

extension SyncSession {
    /// Takes a new replica id if the peer has seen more of our writes than we have, and notes
    /// which former ids must not be trusted in this exchange.
    ///
    /// - Returns: whether the id is a new one.
    func renewIfRolledBack(_ theirs: VersionVector?) throws(SyncError) -> Bool {
        guard let theirs else { return false }
        return try engine(dataset.name) { () throws(StoreError) in
            let (own, ours) = (store.replicaID, try dataset.vector)
            let isRolledBack = theirs[own] > ours[own]
            if isRolledBack {
                try store.renewReplicaID()
            }
            let lost = store.formerReplicaIDs.filter { theirs[$0] > ours[$0] }
            if !doubted.isSuperset(of: lost) {
                doubted.formUnion(lost)
                confirmedKeys = []
            }
            return isRolledBack
        }
    }

    /// A vector without the part of it that cannot be trusted.
    func trusted(_ vector: VersionVector) -> VersionVector {
        doubted.reduce(vector) { $0.removing($1) }
    }

    private func isDoubted(_ record: Record) -> Bool {
        doubted.contains(record.version.dot.replica)
    }

    /// Whether the peer's version cannot descend from ours although it looks like it.
    func isDoubtful(_ local: Record?, beside incoming: Record) -> Bool {
        guard let local, isDoubted(local), local.version.dot != incoming.version.dot else {
            return false
        }
        return local.version.time > incoming.version.time && local.value != incoming.value
            && incoming.version.relation(to: local.version) == .descendant
    }

    /// Whether the two are merged although the peer's seems to descend from ours, or to be ours: of
    /// values whose merge is a join, nothing is lost by merging once too often, and it asks no
    /// clock, which may have stood still or gone back with the store.
    func isJoined(_ local: Record?, with incoming: Record) -> Bool {
        guard case .mergeable = policy, let local, isDoubted(local) else { return false }
        switch incoming.version.relation(to: local.version) {
        case .same, .descendant: return incoming.value != local.value
        case .ancestor, .concurrent: return false
        }
    }

    /// Whether the peer has the very write that is here, or a descendant of it, and not another
    /// one under its dot.
    func isConfirmed(_ local: Record?, by incoming: Record) -> Bool {
        guard let local, isDoubted(local) else { return false }
        switch incoming.version.relation(to: local.version) {
        case .same:
            return incoming.version.time == local.version.time && incoming.value == local.value
        case .descendant: return !isDoubtful(local, beside: incoming)
        case .ancestor, .concurrent: return false
        }
    }

    /// Before the last page is applied: writes anew what the peer cannot have seen under its dot.
    func rewriteDoubtful(before page: RecordPage) throws(SyncError) {
        guard !doubted.isEmpty, page.isLast else { return }
        var confirmed = confirmedKeys
        let local = try engine(dataset.name) { () throws(StoreError) in
            try page.records.map { record throws(StoreError) in
                try dataset.storedRecord(for: record.key)
            }
        }
        for (record, local) in zip(page.records, local)
        where isConfirmed(local, by: record) || isJoined(local, with: record) {
            confirmed.insert(record.key)
        }
        try rewrite { record in
            isDoubted(record) && page.knowledge.vector.contains(record.version.dot)
                && !confirmed.contains(record.key)
        }
    }
}
