import Tidemark

// How an exchange of all datasets finds those in which there is anything to do.
//
// Each side can say which of its datasets changed since a mark that it handed out before. So the
// asker keeps, for each peer, a mark of the peer's and one of its own, from the last exchange of
// all datasets, and the names of those that were not equal on both sides when it ended. The next
// exchange looks at what changed there since, at what changed here since, and at those.
//
// Invariant: a dataset that is neither changed since the marks nor unsettled is equal on both
// sides. For that
// - the peer's mark is from before the peer listed anything;
// - our mark is from after all that was exchanged, and whatever changed here since the exchange
//   began counts as unsettled, unless just now it is known to be equal;
// - equal means that each side has seen all that the other has, in records and in lifecycle. What
//   a session left undone, whatever the reason, is not; nor is what holds writes because of their
//   dates, since they become due without a change.
//
// The marks, and what an exchange left unsettled, outlast a closing. A store that crashed, or was
// restored, has other marks; of two that were copied each knows those from before.

/// The moment at which an exchange of all datasets began.
struct AllDatasets {
    private let store: Store
    private let own: ReplicaID
    private let begin: StoreMark
    private let exchanges: [SettledExchange]

    init(_ store: Store) throws(SyncError) {
        self.store = store
        own = store.replicaID
        begin = try engine { () throws(StoreError) in try store.changeMark() }
        exchanges = store.settledExchanges
    }

    /// To be sent with the greeting, since only its answer says who is there.
    var marks: [StoreMark] { exchanges.map(\.peerMark) }

    /// The exchange since which the answer lists what has changed; nil if it lists everything.
    func settled(by answer: HelloAnswer, as asker: ReplicaID) -> SettledExchange? {
        guard let mark = answer.changedSince else { return nil }
        let settled = exchanges.first { $0.peerMark == mark }
        guard let settled, settled.peer == answer.replica, settled.own == asker else { return nil }
        return settled
    }

    /// The datasets here in which there may be anything that the peer lacks.
    func changed(since settled: SettledExchange) throws(SyncError) -> Set<String> {
        try engine { () throws(StoreError) in
            guard let changed = try store.datasetsChanged(since: settled.ownMark) else {
                return Set(try store.datasetNamesForSync())
            }
            return settled.unsettled.union(changed)
        }
    }

    /// Keeps for the next time how the exchange ended.
    func note(
        _ run: StoreExchange.Run, with peer: ReplicaID, _ peerMark: StoreMark?
    ) throws(SyncError) {
        guard let peerMark, store.replicaID == own else { return }
        try engine { () throws(StoreError) in
            // Before anything is compared: what changes from here on counts next time.
            let ownMark = try store.changeMark()
            guard let changed = try store.datasetsChanged(since: begin) else { return }
            let met = run.met
            var unsettled = Set(changed).subtracting(met).subtracting(run.absent)
            for name in met {
                let dataset = try store.datasetForSync(name, creating: false)
                let ours = try dataset.map { dataset throws(StoreError) in
                    PeerKnowledge(try dataset.knowledge())
                }
                // What is held may be due by the next time.
                let isHolding = try dataset.map { dataset throws(StoreError) in
                    try !QuarantineBook(dataset).isEmpty()
                }
                if !(isHolding ?? false) {
                    if ours?.equals(run.remotes[name]) ?? false { continue }
                    if let dataset, let remote = run.remotes[name],
                        try dataset.isPartSettled(with: peer, remote)
                    {
                        continue
                    }
                }
                unsettled.insert(name)
            }
            store.note(
                SettledExchange(
                    peer: peer, own: own, peerMark: peerMark, ownMark: ownMark,
                    unsettled: unsettled))
        }
    }
}

extension PeerKnowledge {
    /// Whether each of the two has seen all that the other has. One that claims nothing of what it
    /// has, as who keeps a part, says nothing of that.
    fileprivate func equals(_ other: PeerKnowledge?) -> Bool {
        guard let other, !other.vector.isEmpty || other.syncCount == .zero else { return false }
        return vector == other.vector && lifecycle.covers(other.lifecycle)
            && other.lifecycle.covers(lifecycle)
    }
}
