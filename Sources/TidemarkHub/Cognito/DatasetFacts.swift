import Tidemark

/// What is known of a dataset at one place in its order of change: what would have to be read again
/// for each call otherwise.
struct DatasetFacts: Sendable {
    /// Of the opening of the store. After another one nothing of it counts.
    let incarnation: UInt64
    /// The stamp of the dataset's life: one that is deleted and made again is another.
    let lifecycle: UInt64
    /// The store's sync count.
    let position: UInt64
    var map: CountMap
    /// nil until it was needed.
    var totals: DatasetTotals?
    /// The last change; nil until it was needed, and if nothing of it is left.
    var last: LastChange?
    /// Whether the API is known as a peer of the dataset: see `CognitoPeer`.
    var hasPeer = false
    /// Whether all up to here is known to be as durable as what the store acknowledges.
    var isDurable = false

    struct LastChange: Hashable, Sendable {
        /// Since 1970, by the hub's clock.
        let milliseconds: UInt64
        let author: String
    }

    /// The API's sync count of the dataset.
    var count: UInt64 { map.count(at: position) }

    /// What it costs to keep it, in the unit of `TotalsCache.costMax`.
    var cost: Int { 1 + map.anchors.count / 8 }

    fileprivate func isOf(_ knowledge: DatasetKnowledge, _ incarnation: UInt64) -> Bool {
        position == knowledge.syncCount.rawValue
            && lifecycle == knowledge.lifecycle.time.rawValue && self.incarnation == incarnation
    }
}

/// The API's own entry in the registry of a dataset's peers: one that has passed nothing.
///
/// Devices that use the API have no checkpoints in the store, and the counts that they hold are
/// known to nobody. With the entry, deletions are kept for them until `StoreOptions.tombstoneAge`
/// is over, as for any peer that was not seen for long.
enum CognitoPeer {
    /// The bytes of `tidemark-cognito`.
    static let replica = ReplicaID(high: 0x7469_6465_6D61_726B, low: 0x2D63_6F67_6E69_746F)

    static func isRegistered(in dataset: Dataset) throws(StoreError) -> Bool {
        try dataset.peerIDs().contains(replica)
    }

    /// Notes it, unless it is noted.
    static func register(in dataset: Dataset) throws(StoreError) {
        guard try !isRegistered(in: dataset) else { return }
        var batch = ReplicationBatch()
        batch.checkpoint = (replica, PeerCheckpoint())
        _ = try dataset.replicate(batch)
    }
}

extension SyncBooks {
    /// What is known of a dataset as it is now.
    ///
    /// - Parameter isKept: whether to keep it for the next call; not for walks over very many.
    func facts(
        of storeName: String, at knowledge: DatasetKnowledge, in store: Store, isKept: Bool = true
    ) throws -> DatasetFacts {
        let incarnation = store.incarnation
        if let known = cache[storeName], known.isOf(knowledge, incarnation) { return known }
        let map = try Sheet(of: storeName, in: store)?.countMap() ?? CountMap()
        let facts = DatasetFacts(
            incarnation: incarnation, lifecycle: knowledge.lifecycle.time.rawValue,
            position: knowledge.syncCount.rawValue, map: map)
        if isKept { cache.keep(facts, of: storeName) }
        return facts
    }
}
