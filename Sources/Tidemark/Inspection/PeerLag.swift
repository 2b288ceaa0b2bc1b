/// How far behind a peer is in all datasets together, and what its lag keeps from going.
package struct PeerLag: Hashable, Sendable {
    package let replica: ReplicaID
    /// Datasets in which it is registered, those included in which it was retired.
    package internal(set) var datasetCount = 0
    /// Of these the ones that have changes which it is not known to have.
    package internal(set) var behindCount = 0
    /// Of these the ones in which it was retired: there it holds nothing back.
    package internal(set) var retiredCount = 0
    /// Changes that it is not known to have; of a key that changed twice both count.
    package internal(set) var lag: UInt64 = 0
    /// As in ``PeerStatus/tombstonesHeld`` and ``PeerStatus/tombstoneBytesHeld``.
    package internal(set) var tombstonesHeld = 0
    package internal(set) var tombstoneBytesHeld = 0

    fileprivate mutating func add(_ status: PeerStatus) {
        datasetCount += 1
        behindCount += status.lag > 0 ? 1 : 0
        retiredCount += status.isRetired ? 1 : 0
        lag &+= status.lag
        tombstonesHeld += status.tombstonesHeld
        tombstoneBytesHeld += status.tombstoneBytesHeld
    }
}

extension Store {
    /// All peers with what they lack, in the order of their ids.
    ///
    /// - Parameters:
    ///   - datasetsMax: how many datasets to look at, in the order of their names.
    ///   - changesMax: how many changes to look at, of all of them, for deletions that are held.
    ///   - tell: called now and then: how many changes have been looked at, and about which share
    ///     of the work is done, 0...1. Each dataset counts for the same.
    /// - Returns: also whether that was enough. If not, all numbers are least ones.
    package func peerLags(
        datasetsMax: Int, changesMax: Int,
        tell: ((_ changeCount: Int, _ share: Double) -> Void)? = nil
    ) throws(StoreError) -> (peers: [PeerLag], isWhole: Bool) {
        let names = try datasetNames()
        var peers: [ReplicaID: PeerLag] = [:]
        var changesLeft = changesMax
        var isWhole = names.count <= datasetsMax
        let count = min(names.count, datasetsMax)
        for (index, name) in names.prefix(datasetsMax).enumerated() {
            guard let dataset = try existingDataset(name) else { continue }
            let before = changesMax - changesLeft
            let found = try dataset.peers(changesMax: changesLeft) { changeCount, share in
                tell?(before + changeCount, (Double(index) + share) / Double(count))
            }
            changesLeft -= found.changeCount
            tell?(changesMax - changesLeft, Double(index + 1) / Double(count))
            isWhole = isWhole && found.isWhole
            for status in found.peers {
                peers[status.replica, default: PeerLag(replica: status.replica)].add(status)
            }
        }
        return (peers.values.sorted { $0.replica < $1.replica }, isWhole)
    }
}
