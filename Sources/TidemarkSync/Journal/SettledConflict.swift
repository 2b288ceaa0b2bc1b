public import Tidemark

/// A conflict that was settled here, as the journal keeps it: what met, what was decided, by whom
/// and when.
public struct SettledConflict: Hashable, Sendable {
    /// What a version held, as far as it is kept.
    public enum Content: Hashable, Sendable {
        case value([UInt8])
        case deleted
        /// The value was longer than ``SyncJournalOptions/valueBytesMax``. It may still be in the
        /// history of the key.
        case leftOut(byteCount: Int)

        /// nil if it was deleted or left out.
        public var value: [UInt8]? {
            if case .value(let bytes) = self { bytes } else { nil }
        }

        /// The value as text; nil if there is none or it is not UTF-8.
        public var valueText: String? {
            value.flatMap { String(validating: $0, as: UTF8.self) }
        }
    }

    /// One of the versions that met.
    public struct Side: Hashable, Sendable {
        public let version: Version
        public let content: Content
        /// In milliseconds since 1970; nil if it did not expire.
        public let expiresAt: UInt64?
    }

    /// What was known of the version that both sides descend from; as in ``Conflict/Ancestry``.
    public enum Ancestry: Hashable, Sendable {
        case known(Side)
        case nonexistent
        case notKept
    }

    /// Who decided.
    public enum Policy: String, Hashable, Sendable, CaseIterable {
        case lastWriterWins, keepLocal, keepRemote, autoMerge, mergeable, custom
        /// Somebody called `Dataset.settle`.
        case application
        /// It was settled before and decided anew, by `Dataset.replayConflicts`.
        case replay
    }

    public let dataset: String
    public let key: [UInt8]
    /// When, by this store's clock. No two of a store have the same time.
    public let time: HybridTime
    /// The other side; nil if it is not known any more.
    public let peer: ReplicaID?
    /// The number of the exchange, as in ``RecordArrival/exchange``; nil if there was none.
    public let exchange: UInt64?
    public let policy: Policy
    /// ``SyncJournalOptions/policyVersion`` at that time.
    public let policyVersion: UInt64
    public let ancestry: Ancestry
    /// This side's version.
    public let local: Side
    /// The other side's version.
    public let remote: Side
    public let decision: SyncResult.Settlement.Decision
    /// What it came to.
    public let outcome: Content
    /// In milliseconds since 1970; nil if the outcome does not expire.
    public let outcomeExpiresAt: UInt64?
    /// The write that it came to. Where the last writer won it is the winner's own.
    public let write: Dot

    /// The version that both sides descend from; nil unless it was known.
    public var ancestor: Side? {
        if case .known(let side) = ancestry { side } else { nil }
    }

    /// The key as text; nil if it is not UTF-8.
    public var keyText: String? { String(validating: key, as: UTF8.self) }
}

extension MergePolicy {
    /// As it is called in the journal; nil for one that settles nothing.
    var settler: SettledConflict.Policy? {
        switch self {
        case .lastWriterWins: .lastWriterWins
        case .keepLocal: .keepLocal
        case .keepRemote: .keepRemote
        case .autoMerge: .autoMerge
        case .mergeable: .mergeable
        case .leavePending: nil
        case .custom: .custom
        }
    }
}
