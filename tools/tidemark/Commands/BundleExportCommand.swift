import ArgumentParser
import Tidemark
import TidemarkSync

struct BundleExportCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write what changed in a dataset into a bundle.",
        usage: """
            tidemark bundle export <store> <file> --dataset <name>
                    [--since <count>] [--for <replica>] [--json]
            """,
        discussion: """
            Without --since and --for the bundle has the whole dataset. With --since it has what \
            changed after that count, which is "through" of the bundle before, as 'tidemark bundle \
            show' tells. With --for it leaves out what that replica is known to have from \
            exchanges and bundles of its own. A file of that name is replaced.
            """)

    @OptionGroup var target: StoreArgument
    @Argument(help: "The bundle to write.", completion: .file()) var file: String
    @Option(help: ArgumentHelp("The dataset's name.", valueName: "name")) var dataset: String
    @Option(help: ArgumentHelp("Only what changed after this sync count.", valueName: "count"))
    var since: UInt64?
    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("Only what this replica is not known to have.", valueName: "replica"))
    var receiver: String?
    @OptionGroup var format: OutputOptions

    func validate() throws {
        if since != nil, receiver != nil {
            throw ValidationError("--since and --for exclude each other; leave one out")
        }
        if let receiver, ReplicaID(receiver) == nil {
            throw ValidationError(
                "\(receiver) is no replica's id; give its 32 hexadecimal digits, as "
                    + "'tidemark stats' shows them")
        }
    }

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openExisting(StoreOptions(compactsAutomatically: false))
        let summary: BundleSummary
        if let receiver = receiver.flatMap({ ReplicaID($0) }) {
            summary = try store.exportBundle(of: dataset, to: file, for: receiver)
        } else {
            summary = try store.exportBundle(
                of: dataset, to: file, since: SyncCount(rawValue: since ?? 0))
        }
        try store.close()
        if format.json {
            try output.write(JSONLine(summary).line)
        } else {
            try BundleListing(output: output).write(summary, path: file)
        }
    }
}
