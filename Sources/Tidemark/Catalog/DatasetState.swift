internal import Synchronization

/// What the engine knows of one dataset while anybody needs it; ``DatasetCatalog`` says when it is
/// in memory. Everything but `name`, `currentID` and `shared` belongs to the store's writer lock.
final class DatasetState: @unchecked Sendable {
    // Unchecked: see above.
    let name: String
    /// The id of its records while the dataset is visible, else 0. For readers of the present, who
    /// take no lock.
    private let currentID = Atomic<DatasetID>(0)
    /// What readers need, who never take the writer lock.
    private let shared = Mutex(Shared())

    private struct Shared {
        var peers: [ReplicaID: PeerCheckpoint] = [:]
        /// Ids it had before the present one, with the last sequence at which each was current.
        var formerIDs: [(id: DatasetID, lastSequence: UInt64)] = []
    }

    /// The id of its records; 0 if it can have none. A deleted dataset may still hold tombstones
    /// that its deletion had not seen.
    private(set) var recordsID: DatasetID = 0
    var lifecycle = DatasetLifecycle.unborn
    /// Everything seen: all of it has been applied, or was superseded by what was applied.
    var vector = VersionVector()
    /// What applied records had seen, if `vector` does not cover it yet: an exchange has begun and
    /// not ended. Until it has, a local write looks at the record it replaces.
    var outstanding = VersionVector()
    var syncCount: UInt64 = 0
    /// The sync count when records were last wiped: of changes since an earlier one nobody can be
    /// told, because nothing is left that says which records went.
    private(set) var expiredThrough: UInt64 = 0
    /// A time, raw, from which on nothing is left of what was wiped then: reading as of an earlier
    /// one would miss it.
    private(set) var wipedTime: UInt64 = 0
    /// No live record expires before this, in milliseconds since 1970; `.max` if none does.
    private(set) var expiresFrom = UInt64.max
    /// The same of what was written since a sweep began; nil while there is none under way.
    private var expiresFromInSweep: UInt64?
    /// The registry: who has exchanged the dataset with this store, and how far that has come.
    var peers: [ReplicaID: PeerCheckpoint] { shared.withLock { $0.peers } }
    /// Those that were retired: they hold nothing back until they come again.
    private(set) var retired: Set<ReplicaID> = []
    /// Deletions of which nothing is left here, or was left where this dataset started afresh.
    private(set) var forgotten = ForgottenDeletions()
    /// In memory only: the fresh starts that are under way, by a number of each.
    private(set) var freshStarts: [UInt64: FreshStart] = [:]

    /// The number in the active log's tables of the origin of a local write, as long as neither
    /// the log nor what the dataset has seen of others changes.
    var origin: (log: UInt64, number: UInt32)?

    /// Whether it is in the catalog's list of what the active log has changed.
    var isTouched = false
    /// Whether it is in that list, and in the roster of changes since the last mark.
    var isNoted = false
    /// Whether the active log gave its records their number.
    var isNumberNew = false
    /// Whether it was asked for since the catalog last looked for what to let go.
    var wasUsed = false

    init(name: String) {
        self.name = name
    }

    var visibleID: DatasetID { currentID.load(ordering: .acquiring) }

    var isVisible: Bool { visibleID != 0 }

    /// The id its records had for a reader of that sequence; 0 if it was deleted then. From any
    /// thread.
    func id(atSequence sequence: UInt64) -> DatasetID {
        shared.withLock { shared in
            shared.formerIDs.first { sequence <= $0.lastSequence }?.id ?? visibleID
        }
    }

    /// Whether it has had one id for all readers of that sequence and later ones.
    func hasKeptID(since sequence: UInt64) -> Bool {
        shared.withLock { $0.formerIDs.last.map { $0.lastSequence < sequence } ?? true }
    }

    /// - Parameter lastSequence: as in ``place(records:isVisible:lastSequence:time:)``.
    private func show(_ newVisibleID: DatasetID, lastSequence: UInt64) {
        guard visibleID != newVisibleID else { return }
        // Both at once, so that no reader of before meets the new id.
        shared.withLock { shared in
            if lastSequence > 0 { shared.formerIDs.append((visibleID, lastSequence)) }
            currentID.store(newVisibleID, ordering: .releasing)
        }
    }

    /// Whether nothing at all is known of the dataset.
    var isBlank: Bool {
        recordsID == 0 && syncCount == 0 && lifecycle == .unborn && vector.isEmpty
            && outstanding.isEmpty && peers.isEmpty && retired.isEmpty && forgotten.isEmpty
    }

    /// - Parameters:
    ///   - lastSequence: of the last commit before the change; 0 if nobody can have read anything
    ///     before it.
    ///   - time: not before the change, nor before anything written until then.
    func place(
        records newID: DatasetID, isVisible: Bool, lastSequence: UInt64, time: HybridTime
    ) {
        if recordsID != 0, recordsID != newID {
            // Counts as a change, so that who knows the last record is told that all are gone.
            syncCount += 1
            expiredThrough = syncCount
            wipedTime = max(wipedTime, time.rawValue)
            expiresFrom = .max
        }
        if recordsID != newID { isNumberNew = newID != 0 }
        recordsID = newID
        origin = nil
        show(isVisible ? newID : 0, lastSequence: lastSequence)
    }

    /// Becomes what it takes over. Before that it never had an entry, so nothing goes.
    ///
    /// - Parameter lastSequence: as in ``place(records:isVisible:lastSequence:time:)``.
    func adopt(_ adopted: AdoptedState, lastSequence: UInt64) {
        if recordsID != adopted.records { isNumberNew = true }
        recordsID = adopted.records
        lifecycle = adopted.lifecycle
        vector = adopted.vector
        outstanding = adopted.outstanding
        syncCount = adopted.syncCount
        expiredThrough = adopted.expiredThrough
        wipedTime = adopted.wipedTime
        expiresFrom = .max
        if adopted.expiresFrom < .max { noteExpiry(of: .put, adopted.expiresFrom) }
        origin = nil
        show(adopted.isVisible ? adopted.records : 0, lastSequence: lastSequence)
    }

    /// - Parameter expiresAt: in milliseconds since 1970; 0 for never.
    @inline(__always)
    func noteExpiry(of kind: EntryKind, _ expiresAt: UInt64) {
        guard expiresAt > 0, kind == .put else { return }
        expiresFrom = min(expiresFrom, expiresAt)
        if let known = expiresFromInSweep { expiresFromInSweep = min(known, expiresAt) }
    }

    func beginSweep() {
        expiresFromInSweep = .max
    }

    /// - Parameter next: when the first of the records expires that the sweep has met and left; nil
    ///   if it was broken off.
    func endSweep(next: UInt64?) {
        if let next, let written = expiresFromInSweep { expiresFrom = min(next, written) }
        expiresFromInSweep = nil
    }

    /// Declares all changes up to a sync count untold: whoever stands there must read afresh.
    func expire(through count: UInt64) {
        syncCount = max(syncCount, count)
        expiredThrough = max(expiredThrough, count)
    }

    /// Joins into what has been seen.
    func see(_ other: VersionVector) {
        guard !vector.covers(other) else { return }
        vector.formUnion(other)
        origin = nil
        if vector.covers(outstanding) { outstanding = VersionVector() }
    }

    /// Notes what a record that was applied had seen. It counts as a whole, not by its dot alone:
    /// a version that won over another by time has superseded it without being its descendant.
    func noteApplied(_ seen: VersionVector) {
        if !vector.covers(seen) { outstanding.formUnion(seen) }
    }

    /// Gives up the claim to have seen anything of a replica. It may come again, and counts then.
    ///
    /// - Parameter isSettled: whether all that lies here of it was compared with what others have,
    ///   and what they claim of it is claimed here. Until then it counts as in the middle of an
    ///   exchange: a write descends from just the record that it replaces.
    func disown(_ replica: ReplicaID, isSettled: Bool) {
        let claimed = max(vector[replica], outstanding[replica])
        vector = vector.removing(replica)
        outstanding = outstanding.removing(replica)
        if !isSettled { outstanding.insert(Dot(replica: replica, counter: claimed)) }
        origin = nil
    }

    /// Forgets the last local write, which could not be written.
    func takeBack(_ dot: Dot) {
        vector = vector.removing(dot.replica)
        vector.insert(Dot(replica: dot.replica, counter: dot.counter - 1))
        syncCount -= 1
        origin = nil
    }

    /// After a deletion nothing is left of what an unfinished exchange had brought, and the wipe
    /// does not cover it, since it may not claim what never came: it must be able to come again.
    func forgetUnfinishedExchanges() {
        guard !outstanding.isEmpty else { return }
        outstanding = VersionVector()
        changePeers { peers in
            for peer in peers.keys { peers[peer]?.pulledThrough = .zero }
        }
    }

    // MARK: - Peers and what is forgotten

    private func changePeers(_ body: (inout [ReplicaID: PeerCheckpoint]) -> Void) {
        shared.withLock { body(&$0.peers) }
    }

    /// Whoever exchanges is registered, also if it was retired before.
    func register(_ peer: ReplicaID, at checkpoint: PeerCheckpoint) {
        changePeers { $0[peer] = checkpoint }
        retired.remove(peer)
    }

    /// Forgets how far a peer has come, and that it is to be waited for.
    func retire(_ peer: ReplicaID) {
        changePeers { $0[peer] = nil }
        retired.insert(peer)
    }

    /// Every peer is to be asked for everything, and told everything.
    func forgetPositions() {
        changePeers { peers in
            for peer in peers.keys {
                peers[peer]?.pulledThrough = .zero
                peers[peer]?.pushedThrough = .zero
            }
        }
    }

    func forget(_ deletions: ForgottenDeletions) {
        forgotten.formUnion(deletions)
    }

    /// Of what was forgotten, that which the dataset claims to have seen: more nobody can be asked
    /// to have. It is less only while writes of a replica are disputed.
    var knownForgotten: ForgottenDeletions {
        if forgotten.isEmpty || vector.covers(forgotten.vector) { return forgotten }
        return ForgottenDeletions(
            vector: forgotten.vector.intersection(vector), time: forgotten.time)
    }

    /// What every peer is known to have seen that is to be waited for; nil if there never was one.
    /// Of a dataset whose peers are all retired it is everything.
    var seenByAllPeers: VersionVector? {
        guard let first = peers.values.first else {
            return retired.isEmpty ? nil : vector.union(outstanding)
        }
        return peers.values.reduce(first.vector) { $0.intersection($1.vector) }
    }

    /// Begins, goes on with or, with nil, ends a fresh start. While it is under way nothing is
    /// taken from others who lack anything of what its peer has forgotten.
    func startAfresh(_ start: FreshStart?, number: UInt64) {
        freshStarts[number] = start
    }

    /// From any thread.
    func dirtiness(ownIDs: [ReplicaID]) -> Dirtiness {
        let peers = peers
        var acknowledged = VersionVector()
        for id in ownIDs {
            let counter = peers.values.reduce(0) { max($0, $1.vector[id]) }
            acknowledged.insert(Dot(replica: id, counter: counter))
        }
        return Dirtiness(ownIDs: ownIDs, acknowledged: acknowledged)
    }

    var knowledge: DatasetKnowledge {
        DatasetKnowledge(
            vector: vector, syncCount: SyncCount(rawValue: syncCount), lifecycle: lifecycle,
            forgotten: knownForgotten)
    }

    // MARK: - As bytes, in the store's own records

    /// varint id, byte 1 if visible, lifecycle, vector, outstanding, varint sync count, varint
    /// expired through, varint time of the last wipe, varint 1 + time of the first expiry or 0,
    /// then the peers with their checkpoints in the order of their ids. Then, only if there is
    /// either: the vector and the time (8 bytes) of what was forgotten, varint n, and n retired
    /// peers in the order of their ids.
    func encode(into writer: inout ByteWriter) {
        writer.append(varint: UInt64(recordsID))
        writer.append(byte: isVisible ? 1 : 0)
        writer.append(lifecycle)
        writer.append(vector)
        writer.append(outstanding)
        writer.append(varint: syncCount)
        writer.append(varint: expiredThrough)
        writer.append(varint: wipedTime)
        writer.append(varint: expiresFrom &+ 1)
        writer.append(varint: peers.count)
        for (peer, checkpoint) in peers.sorted(by: { $0.key < $1.key }) {
            writer.append(peer)
            writer.append(checkpoint)
        }
        guard !forgotten.isEmpty || !retired.isEmpty else { return }
        writer.append(forgotten)
        writer.append(varint: retired.count)
        for peer in retired.sorted() { writer.append(peer) }
    }

    /// Whether a dataset is visible by its encoded state, without decoding all of it.
    static func isVisible(in bytes: ByteView) throws(Malformed) -> Bool {
        var reader = ByteReader(bytes)
        _ = try reader.varint()
        return try reader.byte() == 1
    }

    convenience init(name: String, decoding bytes: ByteView) throws(Malformed) {
        self.init(name: name)
        var reader = ByteReader(bytes)
        recordsID = try reader.datasetID()
        currentID.store(try reader.byte() == 1 ? recordsID : 0, ordering: .releasing)
        lifecycle = try reader.lifecycle()
        vector = try reader.vector()
        outstanding = try reader.vector()
        syncCount = try reader.varintCount()
        expiredThrough = try reader.varintCount()
        wipedTime = try reader.varint()
        expiresFrom = try reader.varint() &- 1
        var peers: [ReplicaID: PeerCheckpoint] = [:]
        for _ in 0..<(try reader.count(eachAtLeast: 19)) {
            let peer = try reader.replicaID()
            peers[peer] = try reader.checkpoint()
        }
        changePeers { $0 = peers }
        if !reader.isAtEnd {
            forgotten = try reader.forgottenDeletions()
            for _ in 0..<(try reader.count(eachAtLeast: 16)) {
                retired.insert(try reader.replicaID())
            }
        }
        guard reader.isAtEnd, DatasetName.isStorable(name),
            DatasetName.fits(name, number: recordsID)
        else { throw Malformed("the record of a dataset is too long or has an invalid name") }
    }
}

extension StateItem {
    /// What a dataset becomes, with the greatest number that it can get.
    static func dataset(_ state: DatasetState, _ lifecycle: DatasetLifecycle) -> StateItem {
        .dataset(.max, isVisible: true, name: state.name, lifecycle)
    }
}
