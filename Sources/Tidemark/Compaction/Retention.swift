/// Which versions of a dataset's records are still needed: asked once per dataset in a merge.
struct Retention {
    /// False if the dataset was deleted: nothing is needed.
    let isLive: Bool
    /// How many of the newest superseded versions of each key to keep, whatever they are.
    let historyVersions: Int
    /// In milliseconds since 1970: what was superseded then or later is kept, whatever it is.
    let agedBefore: UInt64
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
    /// Of the version before, which superseded the next one.
    private var superseder: (syncCount: UInt64, time: UInt64)?

    /// - Parameter reachesOldest: whether the merge includes the oldest segment, so that nothing
    ///   older of the key can lie anywhere else.
    init(_ retention: Retention, reachesOldest: Bool) {
        self.retention = retention
        canCollectTombstones =
            reachesOldest && retention.isSolitary && retention.historyVersions == 0
    }

    enum Verdict {
        case keep
        case drop
    }

    /// - Parameters:
    ///   - dot: of the version, looked up only where it decides.
    ///   - lost: takes note of what is dropped.
    mutating func verdict(
        on entry: Entry, dot: () -> Dot, _ lost: inout HistoryLoss
    ) -> Verdict {
        guard retention.isLive else { return .drop }
        let stamp = entry.stamp
        defer { superseder = (stamp.syncCount, stamp.effectTime(of: entry.kind)) }
        guard let superseder else {
            return verdict(onNewest: entry, stamp, dot, &lost)
        }
        // A tombstone at the head was collected: what follows is older and goes with it.
        if keptCount > 0 {
            if keptCount <= retention.historyVersions
                || superseder.time >> 16 >= retention.agedBefore
            {
                keptCount += 1
                if isAncestorWanted { isAncestorWanted = retention.dirtiness.isDirty(dot()) }
                return .keep
            }
            // The newest version that a peer has stays while newer ones have not been
            // synchronised: it is the ancestor of the conflict that may come.
            if isAncestorWanted, !retention.dirtiness.isDirty(dot()) {
                isAncestorWanted = false
                return .keep
            }
        }
        lost.noteDropped(supersededAt: superseder.syncCount, time: superseder.time)
        return .drop
    }

    private mutating func verdict(
        onNewest entry: Entry, _ stamp: Stamp, _ dot: () -> Dot, _ lost: inout HistoryLoss
    ) -> Verdict {
        let isCollected =
            entry.kind == .delete && canCollectTombstones
            && stamp.effectTime(of: entry.kind) >> 16 < retention.agedBefore
        if isCollected {
            // The last word on its key: from now on the key was never there.
            lost.collectedThrough = max(lost.collectedThrough, stamp.syncCount)
            return .drop
        }
        keptCount = 1
        isAncestorWanted = retention.dirtiness.isDirty(dot())
        return .keep
    }
}
