public import Tidemark

/// How a conflict is settled: two versions of one key, neither an ancestor of the other.
///
/// A policy is asked only about real conflicts. Versions with equal values, or both deleted, are
/// joined without asking.
public enum MergePolicy: Sendable {
    /// The version later by hybrid time wins (then the greater dot), everywhere the same. It keeps
    /// its dot, so replicas that settle the same conflict apart still end with the same bytes.
    case lastWriterWins
    /// This side's version wins, as a new write that descends from both.
    case keepLocal
    /// The other side's version wins, as a new write that descends from both.
    case keepRemote
    /// JSON documents become one; see ``AutoMerge``.
    case autoMerge(AutoMerge)
    /// ``MergeableValue``s of this module become one by their own laws, whichever kind each is.
    /// A deletion yields to a change. What is none, or of two kinds, is left to the last writer,
    /// and a ``MergeReport`` says so.
    case mergeable
    /// Optimistic concurrency: the conflict waits for the application to settle it, told by
    /// ``SyncOptions/onPending`` and listed by `Dataset.pendingConflicts`. The other records of the
    /// dataset are taken in all the same; the exchange ends with
    /// ``SyncError/Code/conflictPending``, and nothing is pushed.
    case leavePending
    /// Asked once for each conflict, one at a time in each dataset, while no lock is held: it may
    /// read and write the store. If it writes to the key in question, it is asked again about the
    /// outcome. If it throws, the conflict waits as after ``Resolution/stop``, and each exchange
    /// asks again.
    case custom(@Sendable (Conflict) async throws -> Resolution)
}

/// Two versions of one key, neither an ancestor of the other. A deleted one has a nil value.
public struct Conflict: Hashable, Sendable {
    /// What is known of the version that both descend from.
    public enum Ancestry: Hashable, Sendable {
        /// The newest version that both descend from and that is kept here.
        case known(Record)
        /// There was none: both sides made the record without having seen the other's.
        case nonexistent
        /// There may have been one, but it is not kept here: retention dropped it, or it never
        /// came here, only what was made of it.
        case notKept
    }

    public let dataset: String
    public let key: [UInt8]
    public let ancestry: Ancestry
    /// This side's version.
    public let local: Record
    /// The other side's version. Its `syncCount` is the other side's.
    public let remote: Record

    public init(
        dataset: String, key: [UInt8], ancestry: Ancestry, local: Record, remote: Record
    ) {
        self.dataset = dataset
        self.key = key
        self.ancestry = ancestry
        self.local = local
        self.remote = remote
    }

    /// The newest version that both descend from; nil unless it is ``Ancestry/known(_:)``.
    public var ancestor: Record? {
        guard case .known(let record) = ancestry else { return nil }
        return record
    }

    /// What the record holds after a resolution; nil if it is deleted, and for
    /// ``Resolution/stop``.
    public func value(after resolution: Resolution) -> [UInt8]? {
        switch resolution {
        case .keepLocal: local.value
        case .keepRemote: remote.value
        case .value(let value): value
        case .delete, .stop: nil
        }
    }
}

/// What becomes of a conflict. All but ``stop`` make a new write that descends from both versions.
public enum Resolution: Hashable, Sendable {
    case keepLocal
    case keepRemote
    /// A merged value expires when the later of both would have, and never if one never does.
    case value([UInt8])
    case delete
    /// Leaves the conflict undecided, so that it waits: the exchange ends with
    /// ``SyncError/Code/conflictPending``, and nothing is pushed.
    case stop
}
