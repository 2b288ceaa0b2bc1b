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
    /// Asked once for each conflict, one at a time in each dataset, while no lock is held: it may
    /// read and write the store. If it writes to the key in question, it is asked again about the
    /// outcome. An error that it throws stops the exchange like ``Resolution/stop``.
    case custom(@Sendable (Conflict) async throws -> Resolution)
}

/// Two versions of one key, neither an ancestor of the other. A deleted one has a nil value.
public struct Conflict: Hashable, Sendable {
    public let dataset: String
    public let key: [UInt8]
    /// The newest version that both descend from; nil if there was none or it is no longer kept.
    public let ancestor: Record?
    /// This side's version.
    public let local: Record
    /// The other side's version. Its `syncCount` is the other side's.
    public let remote: Record

    public init(
        dataset: String, key: [UInt8], ancestor: Record?, local: Record, remote: Record
    ) {
        self.dataset = dataset
        self.key = key
        self.ancestor = ancestor
        self.local = local
        self.remote = remote
    }
}

/// What becomes of a conflict. All but ``stop`` make a new write that descends from both versions.
public enum Resolution: Hashable, Sendable {
    case keepLocal
    case keepRemote
    /// A merged value expires when the later of both would have, and never if one never does.
    case value([UInt8])
    case delete
    /// Leaves the conflict undecided: the exchange ends with
    /// ``SyncError/Code/conflictPending``, and nothing is pushed.
    case stop
}
