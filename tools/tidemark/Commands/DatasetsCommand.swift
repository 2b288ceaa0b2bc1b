import ArgumentParser
import Tidemark

struct DatasetsCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "datasets",
        abstract: "List the datasets of a store.")

    @OptionGroup var target: StoreArgument
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openForReading()
        let table = DatasetTable(output)
        for dataset in try store.statistics().datasets {
            if format.json {
                try output.write(JSONLine(dataset).line)
            } else {
                try table.add(dataset)
            }
        }
        try table.finish()
        try store.close()
    }
}

/// The datasets' figures as a table; `stats` shows the same.
struct DatasetTable {
    private let table: TableWriter

    init(_ output: OutputStream) {
        table = TableWriter(
            [
                Column("DATASET", flexibleDownTo: 12),
                Column("RECORDS", .right),
                Column("DELETED", .right),
                Column("SIZE", .right),
                Column("SYNC COUNT", .right),
                Column("UNSENT", .right),
                Column("REPLICAS", .right),
            ], output: output)
    }

    func add(_ dataset: StoreStatistics.Dataset) throws {
        try table.add([
            TerminalText.escaped(dataset.name),
            Quantities.grouped(dataset.recordCount),
            Quantities.grouped(dataset.tombstoneCount),
            Quantities.bytes(dataset.keyBytes + dataset.valueBytes),
            Quantities.grouped(dataset.syncCount.rawValue),
            Quantities.grouped(dataset.dirtyCount),
            Quantities.grouped(dataset.replicaCount),
        ])
    }

    func finish() throws {
        try table.finish()
    }
}

extension JSONLine {
    init(_ dataset: StoreStatistics.Dataset) {
        self.init()
        add("dataset", dataset.name)
        add("records", dataset.recordCount)
        add("tombstones", dataset.tombstoneCount)
        add("dead", dataset.deadCount)
        add("keyBytes", dataset.keyBytes)
        add("valueBytes", dataset.valueBytes)
        add("syncCount", dataset.syncCount.rawValue)
        add("dirty", dataset.dirtyCount)
        add("replicas", dataset.replicaCount)
    }
}
