import ArgumentParser
import Synchronization
import Tidemark
import TidemarkSync

struct BundleImportCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Merge what a bundle holds into a store.",
        usage: """
            tidemark bundle import <store> <file> [--policy <policy>]
                    [--deleted <action>] [--author <name>] [--durability <level>]
                    [--json]
            """,
        discussion: """
            The store is created if missing. A damaged bundle changes nothing, and importing one \
            twice does no more than once. A bundle that begins after what is here is refused with \
            status 1; the message says which one is needed.
            """)

    @OptionGroup var target: StoreArgument
    @Argument(help: "The bundle.", completion: .file()) var file: String
    @OptionGroup var merging: MergingOptions
    @OptionGroup var writing: WritingOptions
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        // First, so that no store is created for a file that is no bundle.
        let summary = try BundleSummary(ofFileAt: file)
        let store = try Store.open(at: target.store, options: writing.options)
        let bar = Mutex(ProgressBar("importing"))
        var options = merging.options
        options.progress = { progress in
            bar.withLock { bar in
                bar.update(bytes: UInt64(progress.bytesReceived), of: summary.byteCount)
            }
        }
        let outcome: Result<SyncResult, SyncError>
        do throws(SyncError) {
            outcome = .success(try await store.importBundle(from: file, options: options))
        } catch {
            outcome = .failure(error)
        }
        bar.withLock { $0.finish() }
        try store.close()
        let result = try outcome.get()
        if format.json {
            var line = JSONLine(result)
            line.add("bundle", JSONLine(summary))
            try output.write(line.line)
        } else {
            try output.writeLine(text(of: result))
        }
    }

    private func text(of result: SyncResult) -> String {
        let records = Quantities.counted(result.pulled, "record")
        let name = TerminalText.escaped(result.dataset, columnsMax: 24)
        let conflicts =
            result.conflicts == 0
            ? "" : ", \(Quantities.counted(result.conflicts, "conflict")) settled"
        return "\(records) of \(name) changed\(conflicts)"
    }
}
