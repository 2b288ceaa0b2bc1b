import ArgumentParser
import Tidemark
import TidemarkSync

struct BundleShowCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Check a bundle and tell what it holds.",
        discussion: """
            Reads every byte; a damaged or cut bundle ends with status 65. "needs" is what its \
            receiver must have seen, because the bundle leaves it out.
            """)

    @Argument(help: "The bundle.", completion: .file()) var file: String
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let summary = try BundleSummary(ofFileAt: file)
        if format.json {
            try output.write(JSONLine(summary).line)
        } else {
            try BundleListing(output: output).write(summary, path: file)
        }
    }
}
