/// Which versions of a dataset's records are still needed: asked once per dataset in a merge.
struct Retention {
    /// False if the dataset was deleted: nothing is needed.
    let isLive: Bool
    /// Superseded versions of each key to keep, whatever they are.
    let historyVersions: Int
    /// Tells which versions no peer is known to have.
    let dirtiness: Dirtiness
    /// Whether no replica but this one has ever had a part in the dataset: then nobody can bring
    /// a deleted record back, and a tombstone has no work left.
    let isSolitary: Bool
}

/// Tells local writes that no peer is known to have from the others.
struct Dirtiness: Sendable {
    /// The store's own id, and those it had before.
    let ownIDs: [ReplicaID]
    /// Up to where peers are known to have our writes.
    let acknowledged: VersionVector

    func isDirty(_ dot: Dot) -> Bool {
        ownIDs.contains(dot.replica) && !acknowledged.contains(dot)
    }
}

/// Decides, version by version, newest first, what of one key is kept.
struct KeyRetention {
    private let retention: Retention
    private let canCollectTombstones: Bool
    private var keptCount = 0
    private var isAncestorWanted = false

    /// - Parameter reachesOldest: whether the merge includes the oldest segment, so that nothing
    ///   older of the key can lie anywhere else.
    init(_ retention: Retention, reachesOldest: Bool) {
        self.retention = retention
        canCollectTombstones = reachesOldest && retention.isSolitary
    }

    enum Verdict {
        case keep
        case drop
        /// A tombstone that was the last word on its key: from now on the key was never there.
        case collect
    }

    /// - Parameter dot: of the version, looked up only where it decides.
    mutating func verdict(on entry: Entry, dot: () -> Dot) -> Verdict {
        guard retention.isLive else { return .drop }
        if keptCount == 0 {
            keptCount = 1
            if entry.kind == .delete, canCollectTombstones, retention.historyVersions == 0 {
                // What follows of this key is older and goes with it.
                return .collect
            }
            isAncestorWanted = retention.dirtiness.isDirty(dot())
            return .keep
        }
        if keptCount <= retention.historyVersions {
            keptCount += 1
            if isAncestorWanted { isAncestorWanted = retention.dirtiness.isDirty(dot()) }
            return .keep
        }
        // The newest version that a peer has stays while newer ones have not been synchronised:
        // it is the ancestor of the conflict that may come.
        if isAncestorWanted, !retention.dirtiness.isDirty(dot()) {
            isAncestorWanted = false
            return .keep
        }
        return .drop
    }
}
