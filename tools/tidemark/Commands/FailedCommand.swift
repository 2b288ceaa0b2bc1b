import ArgumentParser
import Tidemark
import TidemarkSync

struct FailedCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "failed",
        abstract: "Look into records that could not be exchanged, try them again or drop them.",
        discussion: """
            A record that one side refuses, or that is too large for a message, is left out so \
            that the rest can be exchanged. Without a verb it is 'list'.
            """,
        subcommands: [FailedListCommand.self, FailedRetryCommand.self, FailedDropCommand.self],
        defaultSubcommand: FailedListCommand.self)
}

struct FailedListCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the records that could not be exchanged, the oldest failure first.",
        discussion: """
            WAY is "in" for a version of the peer that was refused here, "out" for one of this \
            store that the peer refused. TRIES are attempts so far, LAST is how long ago the last \
            one was. A record that is "due" is tried again with the next exchange.
            """)

    @OptionGroup var target: StoreArgument
    @OptionGroup var selection: DatasetSelection
    @Flag(help: "Show those that were dropped, too.") var dropped = false
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openForReading()
        let now = SystemStorage().wallClockMilliseconds()
        let table = TableWriter(
            [
                Column("WAY"),
                Column("PEER"),
                Column("STATE"),
                Column("TRIES", .right),
                Column("LAST", .right),
                Column(selection.isOne ? "KEY" : "DATASET/KEY", flexibleDownTo: 12),
                Column("WHY", flexibleDownTo: 12),
            ], output: output)
        try selection.forEach(of: target, in: store) { dataset in
            for failed in try dataset.failedRecords(includingDropped: dropped) {
                if format.json {
                    try output.write(JSONLine(failed).line)
                } else {
                    try table.add(cells(of: failed, now: now, output.columns))
                }
            }
        }
        if !format.json {
            try table.finish(
                empty: "no record has failed",
                next: "'tidemark failed retry' tries one again, 'drop' gives it up")
        }
        try store.close()
    }

    private func cells(of failed: FailedRecord, now: UInt64, _ columns: Int) -> [String] {
        let key = TerminalText.escaped(failed.key, columnsMax: columns)
        let dataset = TerminalText.escaped(failed.dataset, columnsMax: 40)
        return [
            failed.direction == .incoming ? "in" : "out",
            failed.peer.shortDescription,
            failed.state.rawValue,
            Quantities.grouped(failed.attempts),
            Age.text(since: failed.last.milliseconds, now: now),
            selection.isOne ? key : "\(dataset)/\(key)",
            TerminalText.escaped(failed.message, columnsMax: columns),
        ]
    }
}

struct FailedRetryCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Have the next exchange try records again.",
        discussion: """
            One that was refused here is asked for by its key, one that the peer refused is sent \
            by itself.
            """)

    @OptionGroup var target: StoreArgument
    @OptionGroup var records: FailedRecordArguments
    @OptionGroup var writing: WritingOptions

    mutating func run(_ output: OutputStream) async throws {
        let count = try records.change(target, writing.options) {
            (dataset, failed) throws(StoreError) in
            try dataset.retry(failed)
        }
        try output.writeLine("\(Quantities.counted(count, "record")) due")
    }
}

struct FailedDropCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "drop",
        abstract: "Give records up: they are not tried again.",
        discussion: """
            The two sides stay different in such a key until it gets another version on either \
            side. Nothing is deleted.
            """)

    @OptionGroup var target: StoreArgument
    @OptionGroup var records: FailedRecordArguments
    @OptionGroup var writing: WritingOptions

    mutating func run(_ output: OutputStream) async throws {
        let count = try records.change(target, writing.options) {
            (dataset, failed) throws(StoreError) in
            try dataset.drop(failed)
        }
        try output.writeLine("\(Quantities.counted(count, "record")) dropped")
    }
}

/// Which failed records of a dataset.
struct FailedRecordArguments: ParsableArguments {
    @Argument(help: "The dataset's name.") var dataset: String
    @Argument(help: "The record's key.") var key: String?
    @Flag(help: "The key is given in base64, for keys that are not text.") var base64Key = false
    @Flag(help: "All that failed in the dataset.") var all = false

    func validate() throws {
        guard (key != nil) != all else {
            throw ValidationError("name the key of a record, or say --all")
        }
    }

    /// Changes what is named, and tells how many records those were.
    func change(
        _ target: StoreArgument, _ options: StoreOptions,
        _ change: (Dataset, FailedRecord) throws(StoreError) -> Bool
    ) throws -> Int {
        let wanted = try key.map { try keyBytes($0, isBase64: base64Key) }
        let store = try target.openExisting(options)
        let dataset = try target.dataset(dataset, in: store)
        var count = 0
        for failed in try dataset.failedRecords() where wanted == nil || failed.key == wanted {
            count += try change(dataset, failed) ? 1 : 0
        }
        try store.close()
        if let key, count == 0 {
            throw CommandFailure(
                .negative,
                "no record \"\(key)\" has failed in dataset \"\(dataset.name)\"; see "
                    + "'tidemark failed'")
        }
        return count
    }
}

extension JSONLine {
    fileprivate init(_ failed: FailedRecord) {
        self.init()
        add("dataset", failed.dataset)
        add("key", failed.key)
        add("direction", failed.direction.rawValue)
        add("peer", failed.peer.description)
        add("write", write: failed.write)
        add("state", failed.state.rawValue)
        add("code", failed.code.description)
        add("message", failed.message)
        add("attempts", failed.attempts)
        add("since", date: failed.since)
        add("last", date: failed.last)
    }
}
