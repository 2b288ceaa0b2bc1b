import Tidemark

/// How far a sweep has come.
struct SweepMark: Hashable, Sendable {
    /// Our own id when the sweep began: one that was repaired or restored has another, and may lack
    /// what it vouches for.
    var replica: ReplicaID
    /// In the peer's order of change: earlier changes are not swept.
    var since: SyncCount
    /// The first key that is still to come.
    var start: [UInt8]
    /// What the peer told of itself when the sweep began; nil before that.
    var agreed: PeerKnowledge?
    /// Of our dataset when the sweep began.
    var lifecycle: PeerLifecycle
}

/// What is stored of sweeps that were cut off, in the store's own dataset ``SystemDataset/sweeps``
/// under the dataset's name, a zero and the peer's id.
struct SweepBook {
    /// The first byte. What another form says is for another version: a sweep begins afresh. The
    /// first form had no id of ours.
    private static let form: UInt8 = 2

    private let dataset: Dataset
    private let key: [UInt8]

    init(_ dataset: Dataset, _ peer: ReplicaID) {
        self.dataset = dataset
        var writer = ByteWriter()
        writer.append(SystemDataset.prefix(of: dataset.name))
        writer.putFixed(peer.high)
        writer.putFixed(peer.low)
        key = writer.bytes
    }

    /// nil if there is none that can be read. O(log n).
    func mark() throws(StoreError) -> SweepMark? {
        guard let bytes = try dataset.store.existingSystemDataset(.sweeps)?.get(key) else {
            return nil
        }
        do throws(SyncError) {
            return try Self.mark(bytes)
        } catch {
            return nil
        }
    }

    /// To be stored with the page behind which it goes on.
    func note(_ mark: SweepMark) throws(StoreError) -> SystemNote {
        SystemNote(
            in: try dataset.store.systemDataset(.sweeps), key: key, value: Self.bytes(mark))
    }

    /// To be stored with what is claimed at the end, or moves the position. O(log n).
    func end() throws(StoreError) -> [SystemNote] {
        guard let book = try dataset.store.existingSystemDataset(.sweeps),
            try book.get(key) != nil
        else { return [] }
        return [SystemNote(in: book, key: key, value: nil)]
    }

    /// Forgets how far sweeps of all peers of a dataset have come. O(peers).
    ///
    /// - Throws: `readOnly`, and what reading and writing throws.
    static func forgetAll(of dataset: Dataset) throws(StoreError) {
        guard let book = try dataset.store.existingSystemDataset(.sweeps) else { return }
        let prefix = SystemDataset.prefix(of: dataset.name)
        let cursor = try book.keys(in: .prefix(prefix))
        while let key = try cursor.next() { try book.delete(key) }
    }

    /// Form, replica: our own, varint since, counted key, flag and knowledge: of the peer; flag:
    /// deleted, vector: wiped, 8 bytes time and replica of our lifecycle.
    private static func bytes(_ mark: SweepMark) -> [UInt8] {
        var writer = VersionWriter()
        writer.plain { $0.put(form) }
        writer.putReplica(mark.replica)
        writer.plain {
            $0.putVarint(mark.since.rawValue)
            $0.putBytes(mark.start)
            $0.putFlag(mark.agreed != nil)
        }
        if let agreed = mark.agreed { writer.putKnowledge(agreed) }
        writer.plain { $0.putFlag(mark.lifecycle.isDeleted) }
        writer.putVector(mark.lifecycle.wiped)
        writer.plain { $0.putFixed(mark.lifecycle.time.rawValue) }
        writer.putReplica(mark.lifecycle.replica)
        return writer.bytes
    }

    private static func mark(_ bytes: [UInt8]) throws(SyncError) -> SweepMark {
        var reader = VersionReader(bytes)
        try reader.plain { reader throws(SyncError) in
            guard try reader.takeByte() == form else {
                throw .badMessage("the mark of a sweep is of another form")
            }
        }
        let replica = try reader.takeReplica()
        let (since, start) = try reader.plain { reader throws(SyncError) in
            (
                SyncCount(rawValue: try reader.takeVarint()),
                try reader.takeBytes("key", max: Limits.keyBytesMax)
            )
        }
        let agreed = try reader.takeFlag() ? try reader.takeKnowledge() : nil
        let isDeleted = try reader.takeFlag()
        let wiped = try reader.takeVector()
        let time = try reader.plain { reader throws(SyncError) in
            HybridTime(rawValue: try reader.takeFixed(UInt64.self))
        }
        let lifecycle = PeerLifecycle(
            isDeleted: isDeleted, wiped: wiped, time: time, replica: try reader.takeReplica())
        try reader.finish()
        return SweepMark(
            replica: replica, since: since, start: start, agreed: agreed, lifecycle: lifecycle)
    }
}
