internal import Synchronization

// What the sync module needs of the store. The engine knows nothing of sync beyond it.

extension Dataset {
    /// Vector, sync count and lifecycle of one moment.
    package func knowledge() throws(StoreError) -> DatasetKnowledge {
        try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return state.knowledge
        }
    }

    /// How far the exchange with a peer has come; all zeros if there was none.
    package func checkpoint(for peer: ReplicaID) throws(StoreError) -> PeerCheckpoint {
        try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return state.peers[peer] ?? PeerCheckpoint()
        }
    }

    /// How many replicas are registered as peers beside that one, without those that were retired.
    /// O(1).
    package func peerCount(beside peer: ReplicaID) throws(StoreError) -> Int {
        try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return state.peers.count - (state.peers[peer] == nil ? 0 : 1)
        }
    }

    /// All replicas of which the dataset remembers that they have written: in what was seen and
    /// applied, wiped and forgotten. O(those).
    package func writers() throws(StoreError) -> Set<ReplicaID> {
        try engine.withLock { (held) throws(StoreError) -> Set<ReplicaID> in
            try held.checkOpen()
            var writers: Set<ReplicaID> = []
            let vectors = [
                state.vector, state.outstanding, state.lifecycle.wiped, state.forgotten.vector,
            ]
            for vector in vectors { for dot in vector.dots { writers.insert(dot.replica) } }
            return writers
        }
    }

    /// How much the dataset holds, and how many deletions it remembers, also while it is deleted.
    /// O(n).
    package func extent() throws(StoreError) -> (size: DatasetSize, tombstoneCount: Int) {
        let (moment, id) = try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return (engine.momentNow(), state.recordsID)
        }
        var size = DatasetSize()
        var tombstoneCount = 0
        guard id != 0 else { return (size, tombstoneCount) }
        var steps = try ScanSteps(
            moment, dataset: id, range: .all, order: .forward, includingDeleted: true)
        while let entry = try steps.nextEntry() {
            guard entry.kind != .delete else {
                tombstoneCount += 1
                continue
            }
            size.recordCount += 1
            size.keyBytes += entry.key.count
            size.valueBytes += entry.valueCount
        }
        return (size, tombstoneCount)
    }

    /// Whether there ever was an exchange with anybody, as far as this store remembers.
    package func hasPeers() throws(StoreError) -> Bool {
        try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return !state.peers.isEmpty || !state.retired.isEmpty
        }
    }

    /// The newest version of each key changed after `since`, in the order of change, but for
    /// deletions that count as forgotten.
    ///
    /// - Parameters:
    ///   - recordsMax: records in the page at most, at least 1.
    ///   - bytesMax: bytes of keys and values at most; a single record may exceed it.
    ///   - excluding: leaves out versions of which this proves dot and whole vector known.
    package func changesPage(
        since: SyncCount, recordsMax: Int, bytesMax: Int, excluding: VersionVector
    ) throws(StoreError) -> ChangesPage {
        let changes = try engine.changes(of: state, since: since, isExchange: true)
        let cursor = RecordCursor(changes.steps, changes.dirtiness)
        var records: [Record] = []
        var bytes = 0
        var through = since
        while let record = try cursor.next() {
            // A version that outlived a deletion of the dataset, because it had won over a write
            // that the deletion had not seen, is never taken for known: the peer may have seen
            // both writes and never the one that they became.
            // That a record was dropped here is told to nobody.
            let isKnown =
                record.isDropped
                || excluding.contains(record.version.dot)
                    && excluding.covers(record.version.vector)
                    && !changes.knowledge.lifecycle.wiped.contains(record.version.dot)
            let isForgotten = record.isDeleted && changes.knowledge.forgotten.covers(record.version)
            if !isKnown, !isForgotten {
                let size = record.key.count + (record.value?.count ?? 0)
                let isFull =
                    records.count >= max(1, recordsMax)
                    || (!records.isEmpty && bytes + size > bytesMax)
                if isFull {
                    if engine.options.make(.advanceCursorPastCap) {
                        through = record.syncCount
                    }
                    return ChangesPage(
                        records: records, through: through, isLast: false,
                        knowledge: changes.knowledge)
                }
                records.append(record)
                bytes += size
            }
            through = record.syncCount
        }
        return ChangesPage(
            records: records, through: max(since, changes.knowledge.syncCount), isLast: true,
            knowledge: changes.knowledge)
    }

    /// The record as it is stored, a tombstone included, also while the dataset is deleted.
    package func storedRecord(for key: [UInt8]) throws(StoreError) -> Record? {
        let (moment, id, dirtiness) = try momentAsStored { $0.dirtiness(ownIDs: engine.ownIDs) }
        guard id != 0 else { return nil }
        return try key.withBytes { (key) throws(StoreError) in
            try moment.view.withNewest(of: key, in: id, sequenceMax: moment.sequenceMax) {
                (entry, tables) throws(StoreError) -> Record? in
                guard let entry, let tables else { return nil }
                return try Record(entry, tables, dirtiness)
            }
        }
    }

    /// The version of a record as it is stored, and whether it is a tombstone, also while the
    /// dataset is deleted. No value is read for it. O(log n).
    package func storedVersion(
        of key: [UInt8]
    ) throws(StoreError) -> (version: Version, isDeleted: Bool)? {
        let (moment, id, _) = try momentAsStored { _ in }
        guard id != 0 else { return nil }
        return try key.withBytes { (key) throws(StoreError) in
            try moment.view.withNewest(of: key, in: id, sequenceMax: moment.sequenceMax) {
                (entry, tables) throws(StoreError) -> (version: Version, isDeleted: Bool)? in
                guard let entry, let tables else { return nil }
                return (tables.version(of: entry), entry.kind == .delete)
            }
        }
    }

    /// Applies a batch if every expectation in it holds. Returns the keys whose records have
    /// moved on; if there are any, nothing was applied.
    package func replicate(_ batch: ReplicationBatch) throws(StoreError) -> [[UInt8]] {
        try engine.replicate(batch, into: state)
    }

    /// The same. Gives what the writes became, in their order; nil if any record has moved on.
    package func replicated(_ batch: ReplicationBatch) throws(StoreError) -> [Dot]? {
        var dots: [Dot] = []
        let moved = try engine.replicate(batch, into: state, dots: &dots)
        return moved.isEmpty ? dots : nil
    }

    /// Notes that something about the dataset changed, though no record of it did, so that an
    /// exchange of what has changed looks at it.
    package func touch() throws(StoreError) {
        try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            held.touch(state)
        }
        engine.waiters.wakeAll(for: name)
    }

    /// The newest retained version from which both descend; nil if there is none, or retention
    /// has dropped it.
    package func ancestor(
        of key: [UInt8], local: Version, remote: Version
    ) throws(StoreError) -> Record? {
        try storedVersions(of: key).first { record in
            let dot = record.version.dot
            return !record.isDropped && dot != local.dot && local.vector.contains(dot)
                && remote.vector.contains(dot)
        }
    }

    /// Stamps the dataset alive, later than its present stamp; what was wiped stays wiped.
    package func renewLifecycle() throws(StoreError) {
        var lifecycle = try knowledge().lifecycle
        lifecycle.isDeleted = false
        engine.withLock { held in held.stampNow(&lifecycle) }
        var batch = ReplicationBatch()
        batch.lifecycle = lifecycle
        _ = try replicate(batch)
    }
}

extension Store {
    /// A dataset even if it is deleted, without reviving it. nil if nothing is known of it, unless
    /// `creating`: then it is noted as one that nobody has made yet.
    package func datasetForSync(
        _ name: String, creating: Bool
    ) throws(StoreError) -> Dataset? {
        try DatasetName.check(name)
        if creating { return Dataset(try engine.state(named: name), in: self) }
        return try engine.existingState(named: name).map { Dataset($0, in: self) }
    }

    /// Names of all datasets of which anything is known, deleted ones included, sorted.
    package func datasetNamesForSync() throws(StoreError) -> [String] {
        try engine.datasetNames(where: .known)
    }

    /// Ids under which this store wrote before its present one.
    package var formerReplicaIDs: [ReplicaID] {
        engine.withLock { held in held.manifest.formerReplicaIDs }
    }

    /// Those of them under which this store wrote nothing after it gave them up: its files had
    /// turned out to be copies, and what was written under them since is another store's.
    package var closedReplicaIDs: [ReplicaID] {
        engine.withLock { held in held.manifest.closedReplicaIDs }
    }

    /// Tells this opening of this store from every other opening of any store: two stores with one
    /// id are copies of each other, and a store that meets itself is none.
    package var incarnation: UInt64 { openingID }

    /// The latest date of anybody else's write that counts here now: see
    /// ``StoreOptions/clockAheadMax``.
    package var latestBelieved: HybridTime { engine.latestBelieved }

    /// A random number from the same source as the store's own.
    package func randomNumber() -> UInt64 {
        engine.storage.randomUInt64()
    }

    /// Whether a peer that is not trusted may still make the store take a new id: true for the
    /// first who asks after it was opened.
    package func takeRenewalForStranger() -> Bool {
        !engine.hasRenewedForStranger.exchange(true, ordering: .relaxed)
    }

    /// Draws a new ``ReplicaID``: to be called before the next write when a peer has seen more of
    /// our writes than we know of, because the store went back in time or was copied.
    package func renewReplicaID() throws(StoreError) {
        try engine.renewReplicaID()
    }
}
