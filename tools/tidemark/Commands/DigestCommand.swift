import ArgumentParser
import Tidemark

struct DigestCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "digest",
        abstract: "Print a digest of each dataset, or tell whether two stores hold the same.",
        discussion: """
            Two replicas have the same digest of a dataset if both hold the same live records at \
            the same versions, in whatever order these came. With two stores it exits with 1 if \
            any dataset differs; 'tidemark diff' then tells in which records.
            """)

    @OptionGroup var target: StoreArgument
    @Argument(
        help: ArgumentHelp("The directory of another store.", valueName: "other-store"),
        completion: .directory)
    var other: String?
    @OptionGroup var selection: DatasetSelection
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openForReading()
        if let other {
            try compare(store, with: other, output)
        } else {
            try list(store, output)
        }
        try store.close()
    }

    // MARK: - One store

    private func list(_ store: Store, _ output: OutputStream) throws {
        let table = TableWriter(
            [Column("DATASET", flexibleDownTo: 12), Column("DIGEST")], output: output)
        let progress = ComparisonProgress(
            of: [store], "digesting", datasets: selection.dataset)
        defer { progress.finish() }
        for name in try selection.names(in: store) {
            let digest = try target.dataset(name, in: store).digest(tell: progress.add)
            progress.finish()
            if format.json {
                var line = JSONLine()
                line.add("dataset", name)
                line.add("digest", "\(digest)")
                try output.write(line.line)
            } else {
                try table.add([TerminalText.escaped(name), "\(digest)"])
            }
        }
        try table.finish()
    }

    // MARK: - Two stores

    private func compare(_ first: Store, with path: String, _ output: OutputStream) throws {
        let second = try StoreArgument(path: path).openForReading()
        let table = TableWriter(
            [
                Column("DATASET", flexibleDownTo: 12), Column("FIRST"), Column("SECOND"),
                Column("STATE"),
            ], output: output)
        let progress = ComparisonProgress(
            of: [first, second], "digesting", datasets: selection.dataset)
        defer { progress.finish() }
        var differingCount = 0
        for name in try selection.names(in: first, or: second) {
            let pair = DigestPair(
                dataset: name,
                first: try first.existingDataset(name)?.digest(tell: progress.add),
                second: try second.existingDataset(name)?.digest(tell: progress.add))
            progress.finish()
            guard pair.first != nil || pair.second != nil else {
                throw DatasetSelection.missing(name)
            }
            differingCount += pair.isEqual ? 0 : 1
            if format.json {
                try output.write(JSONLine(pair).line)
            } else {
                try table.add([
                    TerminalText.escaped(name), DigestPair.shortText(pair.first),
                    DigestPair.shortText(pair.second), pair.isEqual ? "equal" : "differs",
                ])
            }
        }
        try table.finish()
        try second.close()
        guard differingCount == 0 else {
            try output.flush()
            throw CommandFailure(
                .negative,
                "\(Quantities.counted(differingCount, "dataset")) not the same; see "
                    + "'tidemark diff'")
        }
    }
}

/// The digests of a dataset in two stores; nil where there is no such dataset.
private struct DigestPair {
    let dataset: String
    let first: ConvergenceDigest?
    let second: ConvergenceDigest?

    /// An empty dataset and none are the same: nothing can be read in either.
    var isEqual: Bool { first ?? .nothing == second ?? .nothing }

    /// The first half of the digits, enough for the eye; `-` for no dataset.
    static func shortText(_ digest: ConvergenceDigest?) -> String {
        digest.map { String("\($0)".prefix(16)) } ?? "-"
    }
}

extension ConvergenceDigest {
    /// That of a dataset without records.
    fileprivate static let nothing = ConvergenceDigest()
}

extension JSONLine {
    fileprivate init(_ pair: DigestPair) {
        self.init()
        add("dataset", pair.dataset)
        if let first = pair.first { add("first", "\(first)") }
        if let second = pair.second { add("second", "\(second)") }
        add("isEqual", pair.isEqual)
    }
}
