import ArgumentParser
import Tidemark

struct DeleteCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete",
        abstract: "Delete the record of a key.",
        discussion: """
            Leaves a tombstone, so that the deletion reaches every replica, and prints the dot \
            that names the write. Exits with 1, and writes nothing, if there is no such record.
            """)

    @OptionGroup var target: StoreArgument
    @Argument(help: "The dataset's name.") var dataset: String
    @OptionGroup var key: KeyArgument
    @OptionGroup var writing: WritingOptions

    mutating func run(_ output: OutputStream) async throws {
        let keyBytes = try key.bytes()
        // Opened for writing, but not created: nothing can be deleted from what is not there.
        let store = try target.openExisting(writing.options)
        let dataset = try target.dataset(dataset, in: store)
        guard try dataset.contains(keyBytes) else {
            try store.close()
            throw CommandFailure(
                .negative,
                "no record \"\(key.key)\" in dataset \"\(dataset.name)\"; nothing was changed")
        }
        let dot = try dataset.delete(keyBytes)
        try store.close()
        try output.writeLine("\(dot)")
    }
}
