import Tidemark

/// Who has seen how much of whose writes to one dataset, as this store knows it.
struct VectorMatrix {
    struct Row {
        let replica: ReplicaID
        let isOwn: Bool
        /// For each writer the last write that was seen of it.
        let counters: [UInt64]
    }

    static let rowsMax = 16
    static let writersMax = 12

    let dataset: String
    let writers: [ReplicaID]
    /// This store first, then its peers.
    let rows: [Row]
    /// Peers and writers that are left out.
    let rowsLeftOut: Int
    let writersLeftOut: Int

    init(_ dataset: Dataset) throws {
        self.dataset = dataset.name
        let own = try dataset.vector
        // What the lag of each holds is not asked for here.
        let peers = try dataset.peers(changesMax: 0).peers.filter { !$0.isRetired }
        let dots = own.dots.sorted { ($1.counter, $0.replica) < ($0.counter, $1.replica) }
        writers = dots.prefix(Self.writersMax).map(\.replica).sorted()
        writersLeftOut = max(0, dots.count - Self.writersMax)
        let shown = peers.sorted { ($1.lag, $0.replica) < ($0.lag, $1.replica) }
            .prefix(Self.rowsMax - 1)
        rowsLeftOut = peers.count - shown.count
        let writers = writers
        rows =
            [
                Row(
                    replica: dataset.store.replicaID, isOwn: true,
                    counters: writers.map { own[$0] })
            ]
            + shown.map { peer in
                Row(
                    replica: peer.replica, isOwn: false,
                    counters: writers.map { peer.vector[$0] })
            }
    }

    /// The share of a writer's writes that a row has seen: 0...1.
    func share(row: Int, writer: Int) -> Double {
        let most = rows.map { $0.counters[writer] }.max() ?? 0
        return most == 0 ? 1 : Double(rows[row].counters[writer]) / Double(most)
    }
}
