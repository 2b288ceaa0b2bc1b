import ArgumentParser
import Tidemark

struct SalvageCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "salvage",
        abstract: "Read one file of a store by itself: every whole record in it.",
        discussion: """
            Takes a segment (.seg), a log (.log) or a value file (.val), under whatever name, also \
            without its manifest and with a damaged header. Shows every version in it, the newest \
            of each key first; with --json all of it, a line for each. Large values are read from \
            the value files in the same directory. A value file alone has values without keys.

            With --to the records become a store, which does not claim to have what other files \
            held. Status 2: something in the file is damaged.
            """
                + Examples.section([
                    "tidemark salvage /var/lib/notes/000012.seg",
                    "tidemark salvage lost+found/1234 --json > records.jsonl",
                    "tidemark salvage /var/lib/notes/000013.log --to saved",
                ]))

    @Argument(help: "The file.", completion: .file()) var file: String
    @Option(
        help: ArgumentHelp(
            "Make a store of the records in this directory, missing or empty.",
            valueName: "directory"),
        completion: .directory)
    var to: String?
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let listing = RepairListing(output, isJSON: format.json)
        let isComplete =
            if let to {
                try await makeStore(at: to, listing)
            } else {
                try list(output, listing)
            }
        try output.flush()
        guard isComplete else {
            throw CommandFailure(
                .damage, "\(file) is damaged; what is listed as lost is not among the records")
        }
    }

    private func list(_ output: OutputStream, _ listing: RepairListing) throws -> Bool {
        let table = SalvageTable(output)
        let isJSON = format.json
        let report = try Store.salvage(fileAt: file) { item in
            if isJSON {
                try output.write(JSONLine(item).line)
            } else {
                try table.add(item)
            }
        }
        if isJSON {
            for loss in report.losses { try output.write(JSONLine(loss).line) }
            try output.write(JSONLine(report).line)
        } else {
            try table.finish()
            try listing.write(report.losses)
            if report.itemsFound > 0 || !report.losses.isEmpty { try output.writeLine() }
            try output.writeLine(summary(report))
        }
        return report.losses.isEmpty
    }

    private func summary(_ report: SalvageReport) -> String {
        let blocks = Quantities.counted(report.blocksRead, "whole block")
        let losses =
            report.losses.isEmpty
            ? "nothing is lost"
            : Quantities.counted(report.losses.count, "loss", plural: "losses")
        let noun = report.kind == .values ? "value" : "version"
        return "\(report.kind.rawValue) \(report.number): "
            + "\(Quantities.counted(report.itemsFound, noun)) in \(blocks); \(losses)"
    }

    /// Whether nothing of the file is lost: that it was read by itself always counts as a loss to
    /// the store that comes of it.
    private func makeStore(at place: String, _ listing: RepairListing) async throws -> Bool {
        let file = file
        let report = try await StagedDirectory.make(place) { path in
            try Store.salvage(fileAt: file, to: path)
        }
        try listing.write(report, RepairedPlace(store: place, kept: nil))
        return report.losses.allSatisfy { $0.kind == .manifest }
    }
}

/// Versions that were found, or values, as a table.
private final class SalvageTable {
    private let output: OutputStream
    private var table: TableWriter?

    init(_ output: OutputStream) {
        self.output = output
    }

    func add(_ item: SalvagedItem) throws {
        let table = table ?? Self.table(for: item, output)
        self.table = table
        switch item {
        case .record(let record): try table.add(row(record))
        case .value(let value):
            try table.add([
                Quantities.grouped(value.offset), Quantities.grouped(value.value.count),
                TerminalText.escaped(value.value, columnsMax: output.columns),
            ])
        }
    }

    func finish() throws {
        try table?.finish()
    }

    private static func table(for item: SalvagedItem, _ output: OutputStream) -> TableWriter {
        let value = [Column("BYTES", .right), Column("VALUE", flexibleDownTo: 12)]
        guard case .record = item else {
            return TableWriter([Column("OFFSET", .right)] + value, output: output)
        }
        return TableWriter(
            [
                Column("DATASET", flexibleDownTo: 8), Column("KEY", flexibleDownTo: 12),
                Column("COUNT", .right), Column("TIME"),
            ] + value, output: output)
    }

    private func row(_ record: SalvagedRecord) -> [String] {
        let columns = output.columns
        let time = record.version.map { version in
            // Whole seconds: the rest is left to --json.
            let time = HybridTime(milliseconds: version.time.milliseconds, counter: 0)
            return String(time.description.prefix { $0 != "." })
        }
        return [
            record.dataset.map { TerminalText.escaped($0, columnsMax: columns) }
                ?? "#\(record.datasetNumber)",
            TerminalText.escaped(record.key, columnsMax: columns),
            record.syncCount.description, time ?? "lost",
            record.value.map { Quantities.grouped($0.count) } ?? "deleted",
            TerminalText.escaped(record.value ?? [], columnsMax: columns),
        ]
    }
}

extension JSONLine {
    fileprivate init(_ item: SalvagedItem) {
        self.init()
        switch item {
        case .record(let record):
            add("kind", "record")
            if let dataset = record.dataset { add("dataset", dataset) }
            add("datasetNumber", record.datasetNumber)
            add("key", record.key)
            add("value", record.value)
            add("isDeleted", record.value == nil)
            add("isSuperseded", record.isSuperseded)
            if let version = record.version { add(version) }
            add("syncCount", record.syncCount.rawValue)
            add(expiresAt: record.expiresAt)
        case .value(let value):
            add("kind", "value")
            add("offset", value.offset)
            add("value", value.value)
        }
    }

    fileprivate init(_ report: SalvageReport) {
        self.init()
        add("kind", "summary")
        add("file", report.kind.rawValue)
        add("number", report.number)
        add("blocks", report.blocksRead)
        add("found", report.itemsFound)
        add("losses", report.losses.count)
    }
}
