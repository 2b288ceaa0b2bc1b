/// What is known about one dataset at one moment.
package struct DatasetKnowledge: Hashable, Sendable {
    /// Everything seen.
    package let vector: VersionVector
    /// The last operation applied here at that moment.
    package let syncCount: SyncCount
    package let lifecycle: DatasetLifecycle
    /// Deletions of which nothing is left.
    package var forgotten: ForgottenDeletions

    package init(
        vector: VersionVector, syncCount: SyncCount, lifecycle: DatasetLifecycle,
        forgotten: ForgottenDeletions = ForgottenDeletions()
    ) {
        self.vector = vector
        self.syncCount = syncCount
        self.lifecycle = lifecycle
        self.forgotten = forgotten
    }
}

/// Whether a dataset lives, and which writes were wiped out when it was deleted.
///
/// The latest stamp decides whether it lives; what was wiped is only ever added to. So the join of
/// two is commutative, associative and idempotent, and replicas agree whatever the order.
package struct DatasetLifecycle: Hashable, Sendable {
    package var isDeleted: Bool
    /// Every record whose whole vector is in here is gone: deleting a dataset wipes all that it
    /// has seen.
    package var wiped: VersionVector
    package var time: HybridTime
    package var replica: ReplicaID

    package init(isDeleted: Bool, wiped: VersionVector, time: HybridTime, replica: ReplicaID) {
        self.isDeleted = isDeleted
        self.wiped = wiped
        self.time = time
        self.replica = replica
    }

    /// Of a dataset that nobody has made yet.
    package static let unborn = DatasetLifecycle(
        isDeleted: true, wiped: VersionVector(), time: .zero,
        replica: ReplicaID(high: 0, low: 0))

    package func joined(with other: DatasetLifecycle) -> DatasetLifecycle {
        let isOtherLater =
            other.time != time
            ? other.time > time
            : other.replica != replica ? other.replica > replica : other.isDeleted
        var result = isOtherLater ? other : self
        result.wiped = wiped.union(other.wiped)
        return result
    }

    /// Whether a later lifecycle wipes anything that this one does not.
    func isWipedAnew(by later: DatasetLifecycle) -> Bool {
        !wiped.covers(later.wiped)
    }
}

/// How far the exchange with one peer has come, for one dataset.
package struct PeerCheckpoint: Hashable, Sendable {
    /// In the peer's order of change: everything up to here has been applied here.
    package var pulledThrough: SyncCount
    /// In our order of change: the peer has everything up to here.
    package var pushedThrough: SyncCount
    /// What the peer was last known to have seen.
    package var vector: VersionVector

    package init(
        pulledThrough: SyncCount = .zero, pushedThrough: SyncCount = .zero,
        vector: VersionVector = VersionVector()
    ) {
        self.pulledThrough = pulledThrough
        self.pushedThrough = pushedThrough
        self.vector = vector
    }
}
