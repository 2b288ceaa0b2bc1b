import ArgumentParser
import Tidemark
import TidemarkSync

struct CheckBundleCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-bundle",
        abstract: "Check a bundle file whole, without a store; exits with 65 if it is damaged.",
        discussion: """
            Reads every byte: all frames are whole, in their order and none is missing, every page \
            can be taken apart, and nothing follows the end. 'tidemark bundle show' tells more of \
            what is in it.
            """
                + Examples.section([
                    "tidemark check-bundle notes.bundle && scp notes.bundle away:",
                    "tidemark check-bundle notes.bundle --json",
                ]))

    @Argument(help: "The bundle.", completion: .file()) var file: String
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let bundle: BundleSummary
        do throws(SyncError) {
            bundle = try BundleSummary(ofFileAt: file)
        } catch {
            if error.code == .damagedBundle, format.json {
                try output.write(JSONLine(damage: error, in: file).line)
            }
            throw error
        }
        if format.json {
            var line = JSONLine()
            line.add("kind", "summary")
            line.add("file", file)
            line.add("bundle", JSONLine(bundle))
            try output.write(line.line)
            return
        }
        let records = Quantities.counted(bundle.recordCount, "record")
        let pages = Quantities.counted(bundle.pageCount, "page")
        // The path as it was given, whatever its length: it is what is copied from here.
        try output.writeLine("\(TerminalText.escaped(file)): whole")
        try output.writeLine(
            "\(records) of \(TerminalText.escaped(bundle.dataset, columnsMax: 30)) in \(pages), "
                + Quantities.bytes(bundle.byteCount))
    }
}

extension JSONLine {
    fileprivate init(damage: SyncError, in file: String) {
        self.init()
        add("kind", "damage")
        add("file", file)
        if let offset = damage.storeError?.location?.offset { add("offset", offset) }
        add("message", damage.message)
    }
}
