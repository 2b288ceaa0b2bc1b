import ArgumentParser
import Tidemark

struct GetCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Print the value of a key.",
        discussion: """
            To a file or a pipe the value goes byte for byte, with nothing added. On a terminal it \
            ends with a line end, and control characters are shown as escapes.

            With --at it is the value that the key had then. How far back that reaches depends on \
            the history that the store keeps.
            """)

    @OptionGroup var target: StoreArgument
    @Argument(help: "The dataset's name.") var dataset: String
    @OptionGroup var key: KeyArgument
    @OptionGroup var past: PastOption
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let keyBytes = try key.bytes()
        let store = try target.openForReading()
        let found = try past.record(for: keyBytes, in: target.dataset(dataset, in: store))
        guard let record = found, let value = record.value else {
            let then = past.at == nil ? "" : " at that moment"
            throw CommandFailure(
                .negative,
                "no record \"\(key.key)\" in dataset \"\(dataset)\"\(then); see 'tidemark scan'")
        }
        if format.json {
            try output.write(JSONLine(record).line)
        } else if output.isTerminal {
            for line in value.split(separator: 0x0A, omittingEmptySubsequences: false) {
                try output.writeLine(TerminalText.escaped(Array(line)))
            }
        } else {
            try output.write(value)
        }
        try store.close()
    }
}
