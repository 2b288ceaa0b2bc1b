import ArgumentParser
import Tidemark

struct PendingCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "pending",
        abstract: "List what has changed here and was not pushed yet, for each peer.",
        discussion: """
            PEER is who is not known to have the record; "-" where a dataset has no peer, and the \
            record is nowhere else. A peer that was away for too long has no list: it starts \
            afresh with the next exchange.
            """)

    @OptionGroup var target: StoreArgument
    @OptionGroup var selection: DatasetSelection
    @Option(
        help: ArgumentHelp(
            "Only what this peer lacks: its id, or at least the first 8 digits.", valueName: "id"))
    var peer: ReplicaPrefix?
    @OptionGroup var limit: LimitOption
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openForReading()
        let listing = PendingListing(
            output, isJSON: format.json, showsDataset: !selection.isOne, limit: limit)
        try selection.forEach(of: target, in: store) { dataset in
            let peers = try dataset.peers().filter { !$0.isRetired }
            for status in peers where peer?.matches(status.replica) ?? true {
                try list(dataset, status, listing)
            }
            if peers.isEmpty, peer == nil { try listWithoutPeer(dataset, listing) }
        }
        try listing.finish()
        try store.close()
    }

    private func list(
        _ dataset: Dataset, _ peer: PeerStatus, _ listing: PendingListing
    ) throws {
        guard let changes = try dataset.changes(unknownTo: peer) else {
            return try listing.addFreshStart(of: peer.replica, in: dataset.name)
        }
        while !listing.isFull, let record = try changes.next() {
            guard record.isUnknown(to: peer) else { continue }
            try listing.add(record, of: dataset.name, for: peer.replica)
        }
    }

    private func listWithoutPeer(_ dataset: Dataset, _ listing: PendingListing) throws {
        let changes = try everything(of: dataset)
        while !listing.isFull, let record = try changes.next() {
            guard record.isDirty, !record.isDropped else { continue }
            try listing.add(record, of: dataset.name, for: nil)
        }
    }

    private func everything(of dataset: Dataset) throws -> RecordCursor {
        do throws(StoreError) {
            return try dataset.changes(since: .zero)
        } catch let error where error.code == .changesExpired {
            // Deletions that were forgotten are known wherever they need to be.
            return try dataset.records(includingDeleted: true)
        }
    }
}

/// Prints what waits, and at the end how much it is.
final class PendingListing {
    private let output: OutputStream
    private let isJSON: Bool
    private let showsDataset: Bool
    private let limit: LimitOption
    private let table: TableWriter
    private var count = 0
    private var bytes = 0
    private var freshStarts: [String] = []

    init(_ output: OutputStream, isJSON: Bool, showsDataset: Bool, limit: LimitOption) {
        self.output = output
        self.isJSON = isJSON
        self.showsDataset = showsDataset
        self.limit = limit
        table = TableWriter(
            [
                Column("PEER"),
                Column("COUNT", .right),
                Column("WRITTEN"),
                Column("OP"),
                Column("BYTES", .right),
                Column(showsDataset ? "DATASET/KEY" : "KEY", flexibleDownTo: 8),
            ], output: output)
    }

    var isFull: Bool { limit.isReached(by: count) }

    func add(_ record: Record, of dataset: String, for peer: ReplicaID?) throws {
        count += 1
        bytes += record.key.count + (record.value?.count ?? 0)
        if isJSON {
            var line = JSONLine(record)
            line.add("dataset", dataset)
            if let peer { line.add("peer", peer.description) }
            return try output.write(line.line)
        }
        let key = TerminalText.escaped(record.key, columnsMax: output.columns)
        try table.add([
            peer?.shortDescription ?? "-",
            record.syncCount.description,
            HybridTime(milliseconds: record.version.time.milliseconds, counter: 0).description,
            record.isDeleted ? "delete" : "put",
            record.value.map { Quantities.grouped($0.count) } ?? "",
            showsDataset ? "\(TerminalText.escaped(dataset, columnsMax: 40))/\(key)" : key,
        ])
    }

    /// Of a peer that is given everything anew.
    func addFreshStart(of peer: ReplicaID, in dataset: String) throws {
        if isJSON {
            var line = JSONLine()
            line.add("dataset", dataset)
            line.add("peer", peer.description)
            line.add("startsAfresh", true)
            return try output.write(line.line)
        }
        freshStarts.append("\(peer.shortDescription) starts afresh in \(dataset)")
    }

    func finish() throws {
        try table.finish()
        guard !isJSON else { return }
        for line in freshStarts { try output.writeLine(TerminalText.oneLine(line)) }
        let more = isFull ? " or more" : ""
        try output.writeLine(
            count == 0
                ? "nothing waits"
                : "\(Quantities.counted(count, "record"))\(more), \(Quantities.bytes(bytes)); "
                    + "see 'tidemark peers'")
    }
}
