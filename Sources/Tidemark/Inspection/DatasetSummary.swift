/// What is known of a dataset without a look at its records.
package struct DatasetSummary: Hashable, Sendable {
    package let name: String
    package let syncCount: SyncCount
    /// As ``Dataset/creationTime``.
    package let creationTime: HybridTime
    /// All with whom there ever was an exchange, in no order.
    package let peers: [ReplicaID]
}

extension Store {
    /// Looks at the datasets of users of one moment, in the order of their names. One that is not
    /// in memory is read and let go again, so that memory does not grow with their number.
    ///
    /// O(datasets that are looked at), and a look at each dataset in memory.
    ///
    /// - Parameters:
    ///   - prefix: empty for all.
    ///   - body: is given each; false ends the walk.
    /// - Throws: `closed`, `corruption`, `inputOutput`.
    package func forEachDatasetSummary(
        prefix: String = "", _ body: (DatasetSummary) -> Bool
    ) throws(StoreError) {
        guard let names = DatasetNameRange(prefix: prefix, after: nil) else { return }
        let engine = engine
        var walk = try DatasetWalk(engine, .visible, names)
        while let found = try walk.next() {
            let state = try walk.state(of: found)
            // One in memory is everybody's, and may be deleted meanwhile.
            let summary = engine.withLock { (held) -> DatasetSummary? in
                state.isVisible || found.state == nil ? DatasetSummary(state) : nil
            }
            guard let summary else { continue }
            guard body(summary) else { return }
        }
    }
}

extension DatasetSummary {
    /// Under the writer lock if the state is in memory.
    fileprivate init(_ state: DatasetState) {
        self.init(
            name: state.name, syncCount: SyncCount(rawValue: state.syncCount),
            creationTime: state.lifecycle.time, peers: Array(state.peers.keys))
    }
}
