import ArgumentParser
import Tidemark
import TidemarkSync

struct ConflictsResolveCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "resolve",
        abstract: "Settle what waits of a key, by a write that descends from all its versions.",
        discussion: """
            The next exchange hands it over. Where several versions of peers wait, --keep remote \
            takes the one that was written last. Prints the dot that names the write.
            """)

    enum Side: String, ExpressibleByArgument, CaseIterable {
        case local
        case remote
    }

    @OptionGroup var target: StoreArgument
    @Argument(help: "The dataset's name.") var dataset: String
    @OptionGroup var key: KeyArgument
    @Option(help: "Whose version is kept: this store's or the peer's.") var keep: Side?
    @Option(help: "A merged value.") var value: String?
    @Flag(help: "--value is given in base64.") var base64 = false
    @Flag(help: "Delete the record.") var delete = false
    @OptionGroup var writing: WritingOptions

    func validate() throws {
        let count = (keep == nil ? 0 : 1) + (value == nil ? 0 : 1) + (delete ? 1 : 0)
        guard count == 1 else {
            throw ValidationError("say one of --keep, --value and --delete")
        }
    }

    mutating func run(_ output: OutputStream) async throws {
        let keyBytes = try key.bytes()
        let resolution = try resolution()
        let store = try target.openExisting(writing.options)
        let dataset = try target.dataset(dataset, in: store)
        let isSettled = try dataset.settle(keyBytes, with: resolution)
        let record = try dataset.record(for: keyBytes, includingDeleted: true)
        try store.close()
        guard isSettled else {
            throw CommandFailure(
                .negative,
                "no conflict of \"\(key.key)\" waits in dataset \"\(dataset.name)\"; see "
                    + "'tidemark conflicts --waiting'")
        }
        try output.writeLine(record.map { "\($0.version.dot)" } ?? "settled")
    }

    private func resolution() throws -> Resolution {
        if delete { return .delete }
        if let value {
            guard base64 else { return .value(Array(value.utf8)) }
            guard let bytes = Base64.decode(value) else {
                throw CommandFailure(
                    .usage, "the value is not canonical base64; leave out --base64 if it is text")
            }
            return .value(bytes)
        }
        return keep == .remote ? .keepRemote : .keepLocal
    }
}
