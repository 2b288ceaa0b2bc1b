import ArgumentParser
import Tidemark

struct ScanCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "scan",
        abstract: "List the records of a dataset in the order of their keys' bytes.",
        discussion: """
            With --at they are those that there were then.
            """)

    @OptionGroup var target: StoreArgument
    @Argument(help: "The dataset's name.") var dataset: String
    @OptionGroup var keys: KeyRangeOptions
    @Flag(help: "From the last key to the first.") var reverse = false
    @OptionGroup var limit: LimitOption
    @Flag(help: "Show tombstones, too.") var deleted = false
    @OptionGroup var past: PastOption
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let range = try keys.range()
        let store = try target.openForReading()
        let records = try past.records(
            of: target.dataset(dataset, in: store), in: range,
            order: reverse ? .backward : .forward, includingDeleted: deleted)
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
}
