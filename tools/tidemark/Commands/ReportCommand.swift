import ArgumentParser
import Tidemark

struct ReportCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Write a page with plots of a store: space, writes, sync, sizes, conflicts.",
        discussion: """
            The page is one HTML file that needs nothing from elsewhere and runs no script. Of a \
            large store it shows estimates from a sample, and says so. A file that is there \
            already is replaced once the new one is whole.
            """)

    @OptionGroup var target: StoreArgument
    @Option(
        name: [.customShort("o"), .customLong("output")],
        help: ArgumentHelp("The file to write.", valueName: "file"), completion: .file())
    var file: String
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        // What is read is read once, and a cache would only take memory.
        let store = try target.openExisting(StoreOptions(isReadOnly: true, blockCacheBytes: 0))
        let bar = ProgressBar("looking", unit: "steps")
        defer { bar.finish() }
        let data = try ReportData(
            store, path: target.store, now: SystemStorage().wallClockMilliseconds()
        ) { stepsDone, stepsTotal in
            bar.update(bytes: UInt64(stepsDone), of: UInt64(stepsTotal), items: stepsDone)
        }
        bar.finish()
        try store.close()
        try ReplacedFile.write(file) { try ReportPage(data, $0).write() }
        let sample = data.sample
        if format.json {
            var line = JSONLine()
            line.add("file", file)
            line.add("versions", sample.entriesTotal)
            line.add("versionsSampled", sample.entriesSampled)
            line.add("isWhole", sample.isWhole)
            try output.write(line.line)
        } else {
            let path = TerminalText.escaped(file, columnsMax: output.columns - 40)
            let how = sample.isWhole ? "" : ", from a sample"
            try output.writeLine(
                "\(path): \(Quantities.counted(sample.entriesTotal, "version"))\(how)")
        }
    }
}
