import ArgumentParser
import Tidemark

struct ExportCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Print a dataset as JSON lines, in the order of the keys.",
        discussion: """
            Each line is {"key": ..., "value": ...}, which 'tidemark import' takes without further \
            options. Of a record that expires it also has "expiresAt", the date in UTC. With \
            --lines each value is printed as it is, and nothing else: what was imported with --key \
            comes out again line for line.
            """)

    @OptionGroup var target: StoreArgument
    @Argument(help: "The dataset's name.") var dataset: String
    @Flag(help: "Print the values alone, each on a line; each must be one line of text.")
    var lines = false

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openForReading()
        let records = try target.dataset(dataset, in: store).records()
        while let record = try records.next() {
            guard let value = record.value else { continue }
            if lines {
                guard !value.contains(0x0A), isUTF8(value.span) else {
                    let key = TerminalText.escaped(record.key, columnsMax: 60)
                    throw CommandFailure(
                        .badData,
                        "the value of \"\(key)\" is not one line of text; export without --lines")
                }
                try output.write(value + [0x0A])
            } else {
                var line = JSONLine()
                line.add("key", record.key)
                line.add("value", value)
                line.add(expiresAt: record.expiresAt)
                try output.write(line.line)
            }
        }
        try store.close()
    }
}
