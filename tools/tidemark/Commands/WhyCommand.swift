import ArgumentParser
import Tidemark

struct WhyCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "why",
        abstract: "Tell why bytes are still on disk, and what would free them.",
        discussion: """
            Of a key: every version of it that is on disk, with the file that it lies in and what \
            keeps it there. Of a file (000003.seg, 000004.log or 000003.val): how much of it is \
            live, and what keeps the rest. Keys are looked for in all datasets unless --dataset \
            names one; --is-key says that what looks like a file's name is a key.

            What a store keeps depends on the history that whoever merges its segments asks for: \
            --history says how many versions that is. A snapshot in a running process may keep \
            more, until it is let go.
            """)

    @OptionGroup var target: StoreArgument
    @Argument(help: "A key, or the name of a segment, log or value file.") var subject: String
    @Option(help: ArgumentHelp("The key of this dataset alone.", valueName: "name"))
    var dataset: String?
    @Flag(help: "The key is given in base64.") var base64Key = false
    @Flag(help: "It is a key, whatever it looks like.") var isKey = false
    @OptionGroup var retention: HistoryOption
    @OptionGroup var format: OutputOptions

    private var isFile: Bool {
        guard !isKey, !base64Key, dataset == nil else { return false }
        return [".seg", ".log", ".val"].contains { subject.hasSuffix($0) }
            && subject.dropLast(4).allSatisfy(\.isNumber)
    }

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openExisting(
            StoreOptions(isReadOnly: true, historyVersions: retention.history))
        let answer = WhyAnswer(output, isJSON: format.json, path: target.store)
        if isFile {
            try answer.write(file: try SegmentFile.name(subject, in: target.store), of: store)
        } else {
            try write(key: try keyBytes(subject, isBase64: base64Key), of: store, answer)
        }
        try store.close()
    }

    private func write(key: [UInt8], of store: Store, _ answer: WhyAnswer) throws {
        if let dataset { _ = try target.dataset(dataset, in: store) }
        var isFound = false
        for name in try dataset.map({ [$0] }) ?? store.datasetNames() {
            guard let dataset = try store.existingDataset(name) else { continue }
            let versions = try dataset.keptVersions(of: key)
            guard !versions.isEmpty else { continue }
            isFound = true
            try answer.write(versions, of: key, in: name)
        }
        guard isFound else {
            throw CommandFailure(
                .negative,
                "no version of \"\(subject)\" is on disk; see 'tidemark scan' for keys and "
                    + "'tidemark inspect' for files")
        }
        try answer.writeRemedies()
    }
}
