import ArgumentParser
import Tidemark

struct ScanCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "scan",
        abstract: "List the records of a dataset in the order of their keys' bytes.")

    @OptionGroup var target: StoreArgument
    @Argument(help: "The dataset's name.") var dataset: String
    @Option(help: ArgumentHelp("The first key of the range.", valueName: "key"))
    var from: String?
    @Option(help: ArgumentHelp("The first key behind the range.", valueName: "key"))
    var to: String?
    @Option(help: ArgumentHelp("Only keys that begin so.", valueName: "text"))
    var prefix: String?
    @Flag(help: "--from, --to and --prefix are given in base64.") var base64Key = false
    @Flag(help: "From the last key to the first.") var reverse = false
    @OptionGroup var limit: LimitOption
    @Flag(help: "Show tombstones, too.") var deleted = false
    @OptionGroup var format: OutputOptions

    func validate() throws {
        if prefix != nil, from != nil || to != nil {
            throw ValidationError("--prefix and a range exclude each other; leave one out")
        }
    }

    mutating func run(_ output: OutputStream) async throws {
        let range = try range()
        let store = try target.openForReading()
        let records = try target.dataset(dataset, in: store).records(
            in: range, order: reverse ? .backward : .forward, includingDeleted: deleted)
        let table = TableWriter(
            [
                Column("KEY", flexibleDownTo: 16),
                Column("BYTES", .right),
                Column("VALUE", flexibleDownTo: 16),
            ], output: output)
        let columns = output.columns
        var count = 0
        while !limit.isReached(by: count), let record = try records.next() {
            count += 1
            if format.json {
                try output.write(JSONLine(record).line)
            } else {
                try table.add([
                    TerminalText.escaped(record.key, columnsMax: columns),
                    record.value.map { Quantities.grouped($0.count) } ?? "deleted",
                    TerminalText.escaped(record.value ?? [], columnsMax: columns),
                ])
            }
        }
        try table.finish()
        try store.close()
    }

    private func range() throws -> KeyRange {
        func bytes(_ text: String?) throws -> [UInt8]? {
            try text.map { try keyBytes($0, isBase64: base64Key) }
        }
        if let prefix = try bytes(prefix) { return .prefix(prefix) }
        return KeyRange(from: try bytes(from), upTo: try bytes(to))
    }
}
