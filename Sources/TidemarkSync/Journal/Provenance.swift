public import Tidemark

/// What made a record what it is here: which replica wrote it, which exchange and batch brought it,
/// and which merge it came out of.
public struct Provenance: Hashable, Sendable {
    /// The most telling of what is known.
    public enum Origin: Hashable, Sendable {
        /// It came out of a conflict that was settled here: the entry says what met, who won, and
        /// by which policy.
        case merged(SettledConflict)
        /// It was written here, by nobody's doing but the application's.
        case written
        /// It was written elsewhere, and an exchange brought it.
        case arrived(RecordArrival)
        /// It was written elsewhere, and what brought it is not remembered any more.
        case unknown
    }

    /// The record, or its tombstone.
    public let record: Record
    /// Whether this store wrote it, under its present id or a former one.
    public let isOwn: Bool
    /// The conflict out of which it came, if it was settled here and is still in the journal.
    public let merge: SettledConflict?
    /// The batch in which it was stored as it is now, if an exchange did that and is still
    /// remembered. Of a record of our own that is the exchange in which it won over another one.
    public let arrival: RecordArrival?

    /// Who wrote it.
    public var replica: ReplicaID { record.version.dot.replica }

    public var origin: Origin {
        if let merge { return .merged(merge) }
        if isOwn { return .written }
        if let arrival { return .arrived(arrival) }
        return .unknown
    }
}

extension Dataset {
    /// Where the record of a key comes from; nil if there is none, not even a tombstone.
    ///
    /// O(settled conflicts and batches that are remembered of the dataset).
    ///
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    public func provenance(of key: [UInt8]) throws(StoreError) -> Provenance? {
        guard let record = try storedRecord(for: key), !record.isDropped else { return nil }
        return try provenance(of: record)
    }

    public func provenance(of key: String) throws(StoreError) -> Provenance? {
        try provenance(of: Array(key.utf8))
    }

    /// Where a version of this dataset comes from, for one of those that `history(of:)` gives.
    /// - Throws: as ``provenance(of:)-([UInt8])``.
    public func provenance(of record: Record) throws(StoreError) -> Provenance {
        let dot = record.version.dot
        let merge = try settledConflicts(of: record.key).first { entry in
            // A winner keeps its dot, which it had before it met the other version.
            entry.write == dot && record.version.vector.contains(entry.local.version.dot)
                && record.version.vector.contains(entry.remote.version.dot)
        }
        let arrival = try arrivals().first { $0.contains(record.syncCount) }
        let ownIDs = [store.replicaID] + store.formerReplicaIDs
        return Provenance(
            record: record, isOwn: ownIDs.contains(dot.replica), merge: merge, arrival: arrival)
    }
}
