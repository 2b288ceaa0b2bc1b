public import Tidemark

/// How far the exchange of a dataset with one peer has come.
public struct SyncFacts: Hashable, Sendable {
    public let peer: ReplicaID
    /// The peer's count up to which everything is here, or waits here as a conflict: the last sync
    /// count. Zero if nothing was ever exchanged.
    public let lastSyncCount: SyncCount
    /// Our count up to which the peer has everything.
    public let sentSyncCount: SyncCount
    /// Our present count. What lies between the two was changed here since the last exchange, by
    /// us or by other peers.
    public let syncCount: SyncCount
}

extension Dataset {
    /// How far the exchange with a peer has come, as it is stored with the records. O(1).
    ///
    /// - Parameter peer: for one, ``Synchronizer/peer``.
    /// - Throws: `closed`.
    public func syncFacts(with peer: ReplicaID) throws(StoreError) -> SyncFacts {
        let checkpoint = try checkpoint(for: peer)
        return SyncFacts(
            peer: peer, lastSyncCount: checkpoint.pulledThrough,
            sentSyncCount: checkpoint.pushedThrough, syncCount: try syncCount)
    }
}
