import ArgumentParser
import Tidemark

struct PutCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "put",
        abstract: "Store a value under a key; store and dataset are created if missing.",
        discussion: "Prints the dot that names the write: the replica's id and its counter.")

    @OptionGroup var target: StoreArgument
    @Argument(help: "The dataset's name.") var dataset: String
    @OptionGroup var key: KeyArgument
    @Argument(help: "The value; read from standard input, byte for byte, if left out.")
    var value: String?
    @Flag(help: "The value is given in base64.") var base64 = false
    @OptionGroup var writing: WritingOptions

    mutating func run(_ output: OutputStream) async throws {
        let keyBytes = try key.bytes()
        let valueBytes = try valueBytes()
        let store = try Store.open(at: target.store, options: writing.options)
        let dot = try store.dataset(dataset).put(valueBytes, for: keyBytes)
        try store.close()
        try output.writeLine("\(dot)")
    }

    private func valueBytes() throws -> [UInt8] {
        guard base64 else {
            if let value { return Array(value.utf8) }
            return try InputFile(path: InputFile.standardInputPath)
                .readAll(bytesMax: Limits.valueBytesMax)
        }
        let text: String
        if let value {
            text = value
        } else {
            let input = try InputFile(path: InputFile.standardInputPath)
                .readAll(bytesMax: Limits.valueBytesMax * 2)
            // Encoders end their lines, and wrap long ones.
            text = String(decoding: input.filter { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self)
        }
        guard let bytes = Base64.decode(text) else {
            throw CommandFailure(
                .usage, "the value is not canonical base64; leave out --base64 if it is text")
        }
        return bytes
    }
}
