import ArgumentParser
import Tidemark
import TidemarkSync

struct BundleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bundle",
        abstract: "Carry changes of a dataset from store to store in a file.",
        discussion: """
            A bundle holds what changed in a dataset after a sync count of the store that made it. \
            The other store merges it as if it had asked for it over a network. What it made of \
            it goes back in a bundle of its own.
            """,
        subcommands: [
            BundleExportCommand.self, BundleImportCommand.self, BundleShowCommand.self,
        ])
}

/// What a bundle is, as lines of a label and a text, or as one JSON object.
struct BundleListing {
    private static let labelColumns = 10

    let output: OutputStream

    func write(_ bundle: BundleSummary, path: String) throws {
        let room = output.columns - Self.labelColumns
        let state = bundle.isDeleted ? ", which is deleted there" : ""
        try write("bundle", TerminalText.escaped(path, columnsMax: room))
        try write("dataset", TerminalText.escaped(bundle.dataset, columnsMax: 40) + state)
        try write("from", "replica \(bundle.sender)")
        try write("for", bundle.receiver.map { "replica \($0)" } ?? "whoever has it")
        let whole = bundle.isWholeDataset ? ", the whole dataset" : ""
        try write("changes", "after \(bundle.since) up to \(bundle.through)\(whole)")
        if !bundle.required.isEmpty {
            try write("needs", TerminalText.truncated("\(bundle.required)", to: room))
        }
        try write("has seen", TerminalText.truncated("\(bundle.vector)", to: room))
        let pages = Quantities.counted(bundle.pageCount, "page")
        try write("records", "\(Quantities.grouped(bundle.recordCount)) in \(pages)")
        try write("size", Quantities.bytes(bundle.byteCount))
    }

    private func write(_ label: String, _ text: String) throws {
        let padding = String(repeating: " ", count: Self.labelColumns - label.count)
        try output.writeLine(label + padding + text)
    }
}

extension JSONLine {
    init(_ bundle: BundleSummary) {
        self.init()
        add("dataset", bundle.dataset)
        add("sender", bundle.sender.description)
        if let receiver = bundle.receiver { add("receiver", receiver.description) }
        add("since", bundle.since.rawValue)
        add("through", bundle.through.rawValue)
        add("isWholeDataset", bundle.isWholeDataset)
        add("isDeleted", bundle.isDeleted)
        add("required", JSONLine(bundle.required))
        add("vector", JSONLine(bundle.vector))
        add("records", bundle.recordCount)
        add("pages", bundle.pageCount)
        add("bytes", bundle.byteCount)
    }

    private init(_ vector: VersionVector) {
        self.init()
        for entry in vector.dots {
            add(entry.replica.description, entry.counter)
        }
    }
}
