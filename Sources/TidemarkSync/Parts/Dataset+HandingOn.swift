import Tidemark

// What leaves a partial replica, and what came to it from others.

extension Dataset {
    /// What a partial replica hands on to a peer of what changed after a position:
    /// - what was written here, and what has seen such as the peer lacks, whatever it holds;
    /// - of others' writes what belongs to the scope: the rest may long be out of date;
    /// - everything, until once a peer has all that was here while the dataset was whole.
    ///
    /// - Parameter peerHas: leaves out what this proves known.
    func handedOnPage(
        of part: PartRecord, since: SyncCount, peerHas theirs: VersionVector, recordsMax: Int,
        bytesMax: Int, after replicas: [ReplicaID]
    ) throws(StoreError) -> RecordPage {
        let ownIDs = store.ownIDs
        return try writtenPage(
            since: since, recordsMax: recordsMax, bytesMax: bytesMax, excluding: theirs,
            after: replicas,
            where: { (change) throws(StoreError) in
                if part.handsOn(change.version, ofWhom: ownIDs, to: theirs) { return true }
                return try part.scope.keeps(change)
            })
    }

    /// Live records that a peer may have and that came after a position in our order of change, as
    /// far as they belong to the scope. Writes of this store are among them: one that was dropped
    /// comes back from a peer that has not heard yet of what came after it.
    ///
    /// - Returns: with them the position up to which these are all.
    func brought(
        since: SyncCount, scope: SyncScope, countMax: Int
    ) throws(StoreError) -> (items: [LookupRequest.Item], through: SyncCount) {
        let unsent = try UnsentWrites(self)
        var items: [LookupRequest.Item] = []
        let run = try withChanges(since: since, in: scope.keyRange, skipsMax: .max) {
            (change) throws(StoreError) in
            let version = change.version
            guard !change.isDeleted, !unsent.contains(version, at: change.syncCount),
                try scope.keeps(change)
            else { return true }
            guard items.count < countMax else { return false }
            items.append(LookupRequest.Item(key: change.key, dot: version.dot))
            return true
        }
        return (items, run.through)
    }

    /// Live records that do not belong to the scope, of those that changed after a position and up
    /// to another.
    ///
    /// - Returns: with them the position up to which these are all.
    func outside(
        of scope: SyncScope, since: SyncCount, through end: SyncCount, countMax: Int
    ) throws(StoreError) -> (drops: [LocalDrop], through: SyncCount) {
        var drops: [LocalDrop] = []
        var isPast = false
        let run = try withChanges(since: since, in: .all, skipsMax: .max) {
            (change) throws(StoreError) in
            isPast = change.syncCount > end
            guard !isPast else { return false }
            guard !change.isDeleted, try !scope.keeps(change) else { return true }
            guard drops.count < countMax else { return false }
            drops.append(LocalDrop(key: change.key, expected: change.version))
            return true
        }
        return (drops, isPast ? end : run.through)
    }

    /// Whether nothing is left to be exchanged of a part with a peer that stands so: it then need
    /// not be looked at before either side changes.
    func isPartSettled(
        with peer: ReplicaID, _ remote: PeerKnowledge
    ) throws(StoreError) -> Bool {
        guard let book = try PartBook(self), !book.part.isEnding, !book.part.isHandingOver
        else { return false }
        let progress = try book.progress(with: peer)
        let checkpoint = try checkpoint(for: peer)
        let lifecycle = PeerLifecycle(try knowledge().lifecycle)
        guard progress.generation == book.part.generation,
            checkpoint.pulledThrough >= remote.syncCount, remote.vector.covers(try vector),
            lifecycle.covers(remote.lifecycle), remote.lifecycle.covers(lifecycle),
            try brought(
                since: progress.checkedThrough, scope: book.part.scope, countMax: 1
            ).items.isEmpty
        else { return false }
        let page = try handedOnPage(
            of: book.part, since: checkpoint.pushedThrough, peerHas: remote.vector, recordsMax: 1,
            bytesMax: 1, after: [])
        return page.recordCount == 0
    }
}

extension SyncScope {
    /// As ``keeps(_:)``, where it lies: the value is read only if the key does not decide.
    fileprivate func keeps(_ change: ChangeView) throws(StoreError) -> Bool {
        let key = change.key
        if let known = verdict(onKey: key) { return known }
        guard let value = try change.value() else { return true }
        return matches(key: key, value: value)
    }
}
