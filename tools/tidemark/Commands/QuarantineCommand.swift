import ArgumentParser
import Tidemark
import TidemarkSync

struct QuarantineCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quarantine",
        abstract: "Look into, let in or drop writes that are dated in the future.",
        discussion: """
            A write of another replica that is dated too far ahead of this machine's clock is held \
            until its date has come. 'release' lets it count now, 'discard' never; with the next \
            exchanges either decision reaches every replica.
            """,
        subcommands: [
            QuarantineListCommand.self, QuarantineReleaseCommand.self,
            QuarantineDiscardCommand.self,
        ])
}

struct QuarantineListCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the writes of a dataset that are held.",
        discussion: """
            WRITE names the write, for 'release' and 'discard'. DATED is what its author's clock \
            said, and BYTES the size of its value; "deletes" is a deletion.
            """)

    @OptionGroup var target: StoreArgument
    @Argument(help: "The dataset's name.") var dataset: String
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openForReading()
        let writes = try target.dataset(dataset, in: store).quarantined()
        try store.close()
        let table = TableWriter(
            [
                Column("WRITE"),
                Column("DATED"),
                Column("BYTES", .right),
                Column("AUTHOR", flexibleDownTo: 8),
                Column("KEY", flexibleDownTo: 8),
            ], output: output)
        let sorted = writes.sorted { $0.record.version.dot < $1.record.version.dot }
        for write in sorted {
            if format.json {
                try output.write(JSONLine(write).line)
            } else {
                let record = write.record
                try table.add([
                    "\(record.version.dot)",
                    "\(record.version.time)",
                    record.value.map { Quantities.grouped($0.count) } ?? "deletes",
                    TerminalText.escaped(record.version.author, columnsMax: output.columns),
                    TerminalText.escaped(record.key, columnsMax: output.columns),
                ])
            }
        }
        if !format.json {
            try table.finish(
                empty: "no write of the dataset is held",
                next: "'tidemark quarantine release' lets one count now, 'discard' never")
        }
    }
}

/// What both verbs that decide have in common.
struct HeldWriteArguments: ParsableArguments {
    @Argument(help: "The dataset's name.") var dataset: String
    @Argument(
        help: ArgumentHelp(
            "The write: the first digits of its replica's id, a colon and its counter."))
    var write: String?
    @Flag(help: "All that is held of the dataset.") var all = false

    func validate() throws {
        guard (write != nil) != all else {
            throw ValidationError("name one write, or say --all")
        }
        if let write, Self.parts(write) == nil {
            throw ValidationError(
                "\(write) names no write; give REPLICA:COUNTER as 'tidemark quarantine list' does")
        }
    }

    private static func parts(_ text: String) -> (replica: String, counter: UInt64)? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].count >= 8, let counter = UInt64(parts[1]) else {
            return nil
        }
        return (String(parts[0]), counter)
    }

    /// Decides what is named, and tells how many writes those were.
    func settle(
        _ target: StoreArgument, _ options: StoreOptions, _ verb: String, _ output: OutputStream,
        _ decide: (Dataset, QuarantinedWrite) throws(StoreError) -> Void
    ) throws {
        let store = try target.openExisting(options)
        let dataset = try target.dataset(dataset, in: store)
        let writes = try dataset.quarantined().filter(isMeant)
        if let write {
            guard writes.count == 1 else {
                try store.close()
                let problem =
                    writes.isEmpty ? "no write \(write) is held" : "\(write) names several writes"
                throw CommandFailure(
                    .negative, "\(problem) in dataset \"\(dataset.name)\"; see 'quarantine list'")
            }
        }
        for write in writes { try decide(dataset, write) }
        try store.close()
        try output.writeLine("\(Quantities.counted(writes.count, "write")) \(verb)")
    }

    private func isMeant(_ held: QuarantinedWrite) -> Bool {
        guard let write, let (replica, counter) = Self.parts(write) else { return all }
        let dot = held.record.version.dot
        return dot.counter == counter && dot.replica.description.hasPrefix(replica)
    }
}

struct QuarantineReleaseCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "release",
        abstract: "Let a held write count now.",
        discussion: "Its value becomes a new write of this store, which has seen it.")

    @OptionGroup var target: StoreArgument
    @OptionGroup var held: HeldWriteArguments
    @OptionGroup var writing: WritingOptions

    mutating func run(_ output: OutputStream) async throws {
        try held.settle(target, writing.options, "released", output) {
            (dataset, write) throws(StoreError) in
            try dataset.release(write)
        }
    }
}

struct QuarantineDiscardCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "discard",
        abstract: "Let a held write never count.",
        discussion: "The present record is written anew, having seen it.")

    @OptionGroup var target: StoreArgument
    @OptionGroup var held: HeldWriteArguments
    @OptionGroup var writing: WritingOptions

    mutating func run(_ output: OutputStream) async throws {
        try held.settle(target, writing.options, "discarded", output) {
            (dataset, write) throws(StoreError) in
            try dataset.discard(write)
        }
    }
}

extension JSONLine {
    init(_ write: QuarantinedWrite) {
        self.init(write.record)
        add("dataset", write.dataset)
        add("dueAt", HybridTime(milliseconds: write.dueAt, counter: 0).description)
    }
}
