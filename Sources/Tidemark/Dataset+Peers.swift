/// How far the exchange of one dataset with one peer has come, as this store knows it.
public struct PeerStatus: Hashable, Sendable {
    public let replica: ReplicaID
    /// Whether it was retired and has not come again. Then it holds nothing back, how far it had
    /// come is forgotten, and the numbers below are 0.
    public let isRetired: Bool
    /// In this store's order of change: the peer is known to have everything up to here.
    public let acknowledged: SyncCount
    /// In the peer's order of change: everything up to here is here.
    public let pulledThrough: SyncCount
    /// What the peer was last known to have seen.
    public let vector: VersionVector
    /// Changes here that came after ``acknowledged``; of a key that changed twice both count.
    public let lag: UInt64
    /// Deletions that the peer is not known to have heard of. Until it has, or they are older than
    /// ``StoreOptions/tombstoneAge``, no merge drops their tombstones.
    public internal(set) var tombstonesHeld = 0
    /// Bytes of the keys of these tombstones, as they are before compression; on the disk each
    /// takes some 20 bytes more.
    public internal(set) var tombstoneBytesHeld = 0
}

extension Dataset {
    /// The registry of peers: every replica that has exchanged this dataset with this store, in the
    /// order of their ids, and how many deletions the lag of each keeps from being forgotten.
    ///
    /// Costs in proportion to what has changed since the peer that is furthest behind was last
    /// known to be up to date. No value is read.
    ///
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    public func peers() throws(StoreError) -> [PeerStatus] {
        try peers(changesMax: .max).peers
    }

    /// The same, but of at most so many changes: what lies behind them is not counted.
    ///
    /// - Parameter tell: called now and then: how many changes have been looked at, and which share
    ///   of what there is to look at that is, 0...1.
    /// - Returns: also how many changes were looked at, and whether those were all.
    package func peers(
        changesMax: Int, tell: ((_ changeCount: Int, _ share: Double) -> Void)? = nil
    ) throws(StoreError) -> (peers: [PeerStatus], changeCount: Int, isWhole: Bool) {
        let (checkpoints, retired, count) = try engine.withLock {
            (held) throws(StoreError) in
            try held.checkOpen()
            return (state.peers, state.retired, state.syncCount)
        }
        var peers = checkpoints.map { replica, checkpoint in
            PeerStatus(
                replica: replica, isRetired: false, acknowledged: checkpoint.pushedThrough,
                pulledThrough: checkpoint.pulledThrough, vector: checkpoint.vector,
                lag: count - min(count, checkpoint.pushedThrough.rawValue))
        }
        peers += retired.map { replica in
            PeerStatus(
                replica: replica, isRetired: true, acknowledged: .zero, pulledThrough: .zero,
                vector: VersionVector(), lag: 0)
        }
        peers.sort { $0.replica < $1.replica }
        let waitedFor = peers.indices.filter { !peers[$0].isRetired }
        guard let furthest = waitedFor.map({ peers[$0].acknowledged }).min() else {
            return (peers, 0, true)
        }
        let changes = try engine.changes(of: state, since: furthest, isExchange: true)
        let forgotten = changes.knowledge.forgotten
        var steps = changes.steps
        var changeCount = 0
        while let tombstone = try steps.next({
            (entry, tables) throws(StoreError) -> (SyncCount, VersionVector, Int)? in
            // The mark of a dropped record is told to nobody.
            guard entry.kind == .delete, entry.stamp.counter > 0 else { return nil }
            let version = tables.version(of: entry)
            guard !forgotten.covers(version) else { return nil }
            return (SyncCount(rawValue: entry.syncCount), version.vector, entry.key.count)
        }) {
            guard changeCount < changesMax else { return (peers, changeCount, false) }
            changeCount += 1
            if changeCount % Self.changesUntoldMax == 0, let tell {
                // What was written meanwhile is behind the count, and looked at, too.
                let done = Double(steps.through) - Double(furthest.rawValue)
                let all = max(1, Double(count) - Double(furthest.rawValue))
                tell(changeCount, min(1, max(0, done / all)))
            }
            guard let (syncCount, vector, bytes) = tombstone else { continue }
            for index in waitedFor
            where syncCount > peers[index].acknowledged && !peers[index].vector.covers(vector) {
                peers[index].tombstonesHeld += 1
                peers[index].tombstoneBytesHeld += bytes
            }
        }
        return (peers, changeCount, true)
    }

    /// Peers that were given up and have not come again.
    package func retiredPeers() throws(StoreError) -> Set<ReplicaID> {
        try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return state.retired
        }
    }

    /// Changes between two words on how far a count has come.
    private static let changesUntoldMax = 4_096

    /// Gives a peer up: it is not waited for any more, so that the deletions that only it lacks can
    /// be forgotten. For a device that was lost or given away.
    ///
    /// That is a decision of this store about its own registry, and no other store hears of it:
    /// each knows its own peers, and one that goes on exchanging with the replica must go on
    /// waiting for it. Nothing is lost if the replica comes again all the same. It is registered
    /// anew, no position of before counts, and if it lacks a deletion that was forgotten meanwhile
    /// it starts afresh. Durable when it returns.
    ///
    /// - Returns: false if the replica is not registered, or retired already.
    /// - Throws: `closed`, and what stops a writer.
    @discardableResult
    public func retire(_ replica: ReplicaID) throws(StoreError) -> Bool {
        try engine.retire(replica, in: state)
    }
}

extension Store {
    /// Gives a peer up in every dataset in which it is registered: see ``Dataset/retire(_:)``.
    /// Interrupted, it has done so in some; repeat it then. O(datasets).
    ///
    /// - Returns: in how many datasets it was registered.
    /// - Throws: as there, and `corruption` or `inputOutput` if a dataset's state cannot be read.
    @discardableResult
    public func retire(_ replica: ReplicaID) throws(StoreError) -> Int {
        var count = 0
        for name in try engine.datasetNames(where: .known) {
            guard let state = try engine.existingState(named: name) else { continue }
            if try engine.retire(replica, in: state) { count += 1 }
        }
        return count
    }
}

extension Engine {
    fileprivate func retire(
        _ peer: ReplicaID, in state: DatasetState
    ) throws(StoreError) -> Bool {
        let item = StateItem.retired(peer, name: state.name)
        let retired: Void? = try commitBlock(.disk) { held in
            item.byteCount
        } write: { (held, block, _) throws(StoreError) -> Void? in
            guard state.peers[peer] != nil else { return nil }
            block.append(item)
            state.retire(peer)
            held.catalog.touch(state)
            return ()
        }
        return retired != nil
    }
}
