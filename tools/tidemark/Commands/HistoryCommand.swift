import ArgumentParser
import Tidemark

struct HistoryCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Show the retained versions of a key, newest first.",
        discussion: """
            SEEN is the version vector: what the writer had seen of the dataset when it wrote. A \
            version descends from another if its vector contains the other's dot.
            """)

    private static let labelColumns = 8
    private static let valueLinesMax = 4

    @OptionGroup var target: StoreArgument
    @Argument(help: "The dataset's name.") var dataset: String
    @OptionGroup var key: KeyArgument
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let keyBytes = try key.bytes()
        let store = try target.openForReading()
        let versions = try target.dataset(dataset, in: store).history(of: keyBytes)
        try store.close()
        guard !versions.isEmpty else {
            throw CommandFailure(
                .negative,
                "no version of \"\(key.key)\" in dataset \"\(dataset)\"; see 'tidemark scan'")
        }
        for (index, record) in versions.enumerated() {
            if format.json {
                try output.write(JSONLine(record).line)
            } else {
                try output.write(index == 0 ? "" : "\n")
                try write(record, output)
            }
        }
    }

    private func write(_ record: Record, _ output: OutputStream) throws {
        let room = output.columns - Self.labelColumns
        let version = record.version
        try write("dot", "\(version.dot)", output)
        try write("time", "\(version.time)", output)
        if !version.author.isEmpty {
            try write("author", TerminalText.escaped(version.author, columnsMax: room), output)
        }
        try write("seen", TerminalText.truncated("\(version.vector)", to: room), output)
        let note = record.isDirty ? ", no peer has it yet" : ""
        try write("count", "\(record.syncCount)\(note)", output)
        if let expiresAt = record.expiresAt {
            try write("expires", "\(HybridTime(milliseconds: expiresAt, counter: 0))", output)
        }
        guard let value = record.value else {
            return try write("value", "(deleted)", output)
        }
        try write("size", Quantities.counted(value.count, "byte"), output)
        // A few lines of it: where two versions differ is often not at the start.
        let text = TerminalText.escaped(value, columnsMax: room * Self.valueLinesMax)
        var label = "value"
        for line in TerminalText.wrapped(text, columnsMax: room) {
            try write(label, line, output)
            label = ""
        }
    }

    private func write(_ label: String, _ text: String, _ output: OutputStream) throws {
        let padding = String(repeating: " ", count: Self.labelColumns - label.count)
        try output.writeLine(label + padding + text)
    }
}
