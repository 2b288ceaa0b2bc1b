public import Tidemark

/// What came of healing damage with the help of a peer.
public struct HealReport: Hashable, Sendable {
    /// Why something could not be healed. Nothing of it was dropped.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// The peer has not seen all that this store has seen of the dataset, and what it has not
        /// seen may be among what is damaged. Ask another peer, or ask again when it has.
        case peerIsBehind
        /// The peer has never heard of the dataset.
        case peerLacksDataset
        /// The dataset was deleted on one side, and the other has not seen that. Synchronise first.
        case isDeletedOnOneSide
        /// Either side's store is a copy or went back in time, and the two have not settled yet
        /// which of their writes are whose. Synchronise first.
        case isDisputed
        /// Only a part of the dataset is kept here, so that what has been seen says nothing about
        /// what is here.
        case isPart
        /// There are keys in it of which the peer has nothing, though it has seen all that this
        /// store has seen: mostly such as were deleted, which it has forgotten. Records that it has
        /// were restored. Ask another peer.
        case keysUnknownToPeer
        /// All records of the dataset were restored, but the block stays for now: what it holds of
        /// another one, or another block of the same segment, cannot be healed. Or an index stays
        /// for that reason.
        case besideOthers
        /// All records were restored, but the block stays: something else of its segment cannot be
        /// read. Run `Store.verify`, and heal again.
        case besideUnreadable
        /// It is what the store keeps for itself, or a file that cannot be read at all. No peer has
        /// it; see `Store.repair`.
        case isOfStoreAlone
    }

    /// Damage that is still there.
    public struct Unhealed: Hashable, Sendable {
        public let damage: StoreDamage
        public let reason: Reason
        /// With ``Reason/peerIsBehind``, what the peer lacks: of each replica the last write that
        /// was seen here. Any of the writes up to there that the peer has not seen may be lost.
        public let lacking: VersionVector
    }

    /// Damaged blocks and indexes that are gone, with what they held in other places.
    public internal(set) var blocksHealed = 0
    /// Records that came from the peer, tombstones included.
    public internal(set) var recordsRestored = 0
    /// What is still damaged.
    public internal(set) var unhealed: [Unhealed] = []
    /// Bytes of all messages.
    public internal(set) var bytesSent = 0
    public internal(set) var bytesReceived = 0

    /// Of a store in which nothing was damaged.
    public init() {}

    /// Whether nothing that was known to be damaged still is.
    public var isComplete: Bool { unhealed.isEmpty }
}

extension Store {
    /// Heals damaged blocks with the records of a peer.
    ///
    /// ```swift
    /// let found = try store.verify()
    /// if !found.damages.isEmpty {
    ///     let report = try await store.heal(from: transport)
    ///     for left in report.unhealed { print(left.damage.file, left.reason) }
    /// }
    /// ```
    ///
    /// Of each key that a damaged block may hide, the peer's record is stored here under its own
    /// version, a tombstone as a tombstone. Then the segment is written anew without the block.
    /// That is done only where the peer has seen everything that this store has seen of the
    /// dataset; else, and wherever a doubt is left, the block stays and the report says why. What
    /// has been seen does not change, and no new version is made.
    ///
    /// What is healed is what is known, see `Store.damage`; `Store.verify` looks for all there is.
    /// Superseded versions of records that only the block held are gone: questions about the past
    /// before the call are then answered with `historyExpired`. Reads and writes go on meanwhile;
    /// interrupted, the next call goes on from what was restored. Costs a few messages for each
    /// block, and writing its segment anew.
    ///
    /// - Parameter options: of these `pageBytesMax`, `pageRecordsMax` and `deadline` count.
    /// - Throws: what an exchange throws whose transport or peer fails; `recordRefused` if a record
    ///   of the peer cannot be stored; `store` if this store cannot be read or written.
    public func heal(
        from transport: any SyncTransport, options: SyncOptions = SyncOptions()
    ) async throws(SyncError) -> HealReport {
        try await Healing(store: self, transport: transport, options: options).run(nil)
    }
}

extension Dataset {
    /// Heals damaged blocks that may hold records of this dataset. Where a block holds those of
    /// other datasets, too, they are healed with it.
    ///
    /// As `Store.heal(from:options:)`.
    public func heal(
        from transport: any SyncTransport, options: SyncOptions = SyncOptions()
    ) async throws(SyncError) -> HealReport {
        try await Healing(store: store, transport: transport, options: options).run(name)
    }
}
