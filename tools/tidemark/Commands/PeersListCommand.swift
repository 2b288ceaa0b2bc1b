import ArgumentParser
import Tidemark
import TidemarkSync

struct PeersListCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the peers of each dataset, and what each lacks.",
        discussion: """
            LAG are the changes here that the peer is not known to have, and BEHIND is since when \
            the oldest of them waits. LAST is how long ago it last brought a change. HOLDS are \
            the deletions, and the bytes of their keys, that cannot be forgotten until it has \
            heard of them; 'tidemark peers retire' gives up one that will not come again.

            With --json there are its checkpoints, too: "acknowledged" is the count up to which \
            it has everything of this store, "pulledThrough" the peer's own count up to which \
            everything is here, and "seen" what it was known to have seen.
            """)

    @OptionGroup var target: StoreArgument
    @OptionGroup var selection: DatasetSelection
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openForReading()
        let now = SystemStorage().wallClockMilliseconds()
        let table = Self.table(output)
        try selection.forEach(of: target, in: store) { dataset in
            for lag in try DatasetPeer.all(of: dataset) {
                if format.json {
                    try output.write(JSONLine(lag).line)
                } else {
                    try table.add(Self.cells(of: lag, now: now))
                }
            }
        }
        try table.finish()
        try store.close()
    }

    private static func table(_ output: OutputStream) -> TableWriter {
        TableWriter(
            [
                Column("DATASET", flexibleDownTo: 12),
                Column("PEER"),
                Column("LAG", .right),
                Column("BEHIND", .right),
                Column("LAST", .right),
                Column("HOLDS", .right),
                Column("BYTES", .right),
            ], output: output)
    }

    private static func cells(of lag: DatasetPeer, now: UInt64) -> [String] {
        let status = lag.status
        guard !status.isRetired else {
            return [
                TerminalText.escaped(lag.dataset), status.replica.shortDescription, "retired", "",
                "", "", "",
            ]
        }
        return [
            TerminalText.escaped(lag.dataset),
            status.replica.shortDescription,
            Quantities.grouped(status.lag),
            lag.oldestUnsent.map { Age.text(since: $0.milliseconds, now: now) } ?? "-",
            lag.lastArrival.map { Age.text(since: $0.milliseconds, now: now) } ?? "-",
            Quantities.grouped(status.tombstonesHeld),
            Quantities.bytes(status.tombstoneBytesHeld),
        ]
    }
}

/// How far one peer is behind in one dataset.
struct DatasetPeer {
    let dataset: String
    let status: PeerStatus
    /// When the oldest change was made that the peer is not known to have; nil if it lacks none.
    let oldestUnsent: HybridTime?
    /// When it last brought a change that is still remembered.
    let lastArrival: HybridTime?

    /// The peers of a dataset, in the order of their ids. Costs in proportion to what the peer
    /// that is furthest behind lacks.
    static func all(of dataset: Dataset) throws -> [DatasetPeer] {
        let peers = try dataset.peers()
        guard !peers.isEmpty else { return [] }
        let arrivals = try dataset.latestArrivals()
        return try peers.map { peer in
            DatasetPeer(
                dataset: dataset.name, status: peer,
                oldestUnsent: peer.isRetired
                    ? nil : try dataset.firstChange(unknownTo: peer)?.version.time,
                lastArrival: arrivals[peer.replica]?.time)
        }
    }
}

extension Dataset {
    /// What has changed here and a peer is not known to have, in the order of change; nil if
    /// deletions among it are forgotten, so that the peer starts afresh with the next exchange.
    func changes(unknownTo peer: PeerStatus) throws -> RecordCursor? {
        do throws(StoreError) {
            return try changes(since: peer.acknowledged)
        } catch let error where error.code == .changesExpired {
            return nil
        }
    }

    fileprivate func firstChange(unknownTo peer: PeerStatus) throws -> Record? {
        guard peer.lag > 0, let changes = try changes(unknownTo: peer) else { return nil }
        while let record = try changes.next() {
            if record.isUnknown(to: peer) { return record }
        }
        return nil
    }
}

extension Record {
    /// Whether a peer is to be told of it: it has not seen it, and it is no mark of something that
    /// was let go here alone.
    func isUnknown(to peer: PeerStatus) -> Bool {
        !isDropped && !peer.vector.contains(version.dot)
    }
}

extension JSONLine {
    fileprivate init(_ lag: DatasetPeer) {
        let status = lag.status
        self.init()
        add("dataset", lag.dataset)
        add("peer", status.replica.description)
        add("isRetired", status.isRetired)
        add("acknowledged", status.acknowledged.rawValue)
        add("pulledThrough", status.pulledThrough.rawValue)
        add("lag", status.lag)
        if let oldest = lag.oldestUnsent { add("behindSince", date: oldest) }
        if let last = lag.lastArrival { add("lastArrivalAt", date: last) }
        add("tombstonesHeld", status.tombstonesHeld)
        add("tombstoneBytesHeld", status.tombstoneBytesHeld)
        add("seen", seen: status.vector)
    }
}
