import ArgumentParser
import Tidemark

struct ImportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Store the records of a file, or of a service with the API of Cognito Sync.",
        discussion: """
            'tidemark import STORE DATASET FILE' is short for 'tidemark import file ...': write \
            ./file or ./cognito for a store that is called so.
            """,
        subcommands: [ImportFileCommand.self, NetworkCommands.importCognito],
        defaultSubcommand: ImportFileCommand.self)
}

struct ImportFileCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "file",
        abstract: "Store the records of a file of JSON lines or comma-separated values.",
        discussion: """
            JSON lines: each line is an object, --key names the field that becomes the key, and \
            the line as it stands becomes the value. Without --key the file is what 'tidemark \
            export' prints: a record with "expiresAt", a date in UTC, expires then. CSV (RFC \
            4180): the first line names the fields, and each row becomes a JSON object of strings. \
            With --value the value is that field's content alone.

            A bad line ends the import with its number; the records before it are stored. Records \
            are written in batches of \(Importer.batchRecordsMax), and are durable on disk when \
            the command returns.
            """)

    enum Format: String, ExpressibleByArgument, CaseIterable {
        case jsonl
        case csv
    }

    @OptionGroup var target: StoreArgument
    @Argument(help: "The dataset's name.") var dataset: String
    @Argument(help: "The file; - for standard input.", completion: .file()) var file: String
    @Option(help: ArgumentHelp("The field that becomes the key.", valueName: "field"))
    var key: String?
    @Option(help: ArgumentHelp("The field that becomes the value.", valueName: "field"))
    var value: String?
    @Option(help: "What the file is: jsonl or csv. Default: by the file's extension.")
    var format: Format?
    @Flag(help: "Leave bad lines out, and count them, instead of stopping at the first.")
    var skipBadLines = false
    @OptionGroup var writing: WritingOptions

    mutating func run(_ output: OutputStream) async throws {
        let format = try fileFormat()
        let input = try InputFile(path: file)
        // The readers come first, so that no store is created for a file that is none.
        switch format {
        case .jsonl:
            var reader = JSONLinesReader(
                input, keyField: key ?? "key", valueField: value ?? (key == nil ? "value" : nil),
                expiryField: key == nil ? JSONLine.expiryName : nil)
            try importAll(&reader, input, output)
        case .csv:
            guard let key else {
                throw CommandFailure(
                    .usage, "--key is missing; name the column that becomes the key")
            }
            do {
                var reader = try CSVReader(input, keyField: key, valueField: value)
                try importAll(&reader, input, output)
            } catch let bad as BadLine {
                throw failure(bad, storedCount: 0, input)
            }
        }
    }

    private func importAll(
        _ reader: inout some RecordReader, _ input: InputFile, _ output: OutputStream
    ) throws {
        let bar = ProgressBar("importing")
        let store = try Store.open(at: target.store, options: writing.options)
        var importer = Importer(
            dataset: try store.dataset(dataset), skipsBadLines: skipBadLines,
            durability: writing.durability?.level ?? .process)
        do {
            try importer.run(&reader, of: input.bytesTotal, bar)
            try store.sync()
        } catch {
            bar.finish()
            try? store.close()
            guard let bad = error as? BadLine else { throw error }
            throw failure(bad, storedCount: importer.storedCount, input)
        }
        bar.finish()
        try store.close()
        try output.writeLine(summary(importer))
    }

    private func fileFormat() throws -> Format {
        if let format { return format }
        if file == InputFile.standardInputPath { return .jsonl }
        switch file.split(separator: ".").last?.lowercased() {
        case "jsonl", "ndjson", "json": return .jsonl
        case "csv": return .csv
        default:
            throw CommandFailure(
                .usage,
                "\(file) ends in neither .jsonl nor .csv; say what it is with --format")
        }
    }

    private func failure(
        _ bad: BadLine, storedCount: Int, _ input: InputFile
    ) -> CommandFailure {
        let before =
            switch storedCount {
            case 0: "nothing was stored"
            case 1: "the 1 record before it is stored"
            default: "the \(Quantities.grouped(storedCount)) records before it are stored"
            }
        return CommandFailure(
            .badData,
            "line \(bad.line) of \(input.name): \(bad.problem); \(before); correct the line, or "
                + "leave bad ones out with --skip-bad-lines")
    }

    private func summary(_ importer: Importer) -> String {
        let records = Quantities.counted(importer.storedCount, "record")
        guard importer.skippedCount > 0 else { return "\(records) imported" }
        let skipped = Quantities.counted(importer.skippedCount, "bad line")
        return "\(records) imported, \(skipped) left out "
            + "(the first: line \(importer.firstSkipped?.line ?? 0), "
            + "\(importer.firstSkipped?.problem ?? ""))"
    }
}
