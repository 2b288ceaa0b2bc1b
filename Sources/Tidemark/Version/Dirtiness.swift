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
