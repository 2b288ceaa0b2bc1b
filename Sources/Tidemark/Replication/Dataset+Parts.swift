// What partial replicas, and those who answer them, need of the store.

extension Dataset {
    /// Up to where any peer is known to have what was written here under the ids of this store: by
    /// what peers say that they have seen, and by what was handed to one of them. O(peers).
    package func handedOver() throws(StoreError) -> (vector: VersionVector, through: SyncCount) {
        try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return (
                state.dirtiness(ownIDs: engine.ownIDs).acknowledged,
                state.peers.values.reduce(SyncCount.zero) { max($0, $1.pushedThrough) }
            )
        }
    }

    /// All with whom there ever was an exchange, in their order.
    package func peerIDs() throws(StoreError) -> [ReplicaID] {
        try engine.withLock { (held) throws(StoreError) in
            try held.checkOpen()
            return state.peers.keys.sorted()
        }
    }
}
