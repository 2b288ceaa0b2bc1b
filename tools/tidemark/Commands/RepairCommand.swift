import ArgumentParser
import Tidemark

struct RepairCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "repair",
        abstract: "Save every whole record of a damaged store; alone, tell what that would be.",
        discussion: """
            Without --to or --in-place nothing is written: this tells what would be kept and what \
            is lost. Works without a manifest, and with damaged or missing files. What is kept \
            keeps its version, its history and its marks. A file that you may not read, or that \
            there is no descriptor or memory for, is no loss: the command ends with status 74.

            --to makes a new store and leaves the damaged one as it is. --in-place puts the new \
            store in the place of the damaged one, which is kept beside it as STORE.damaged: the \
            two exchange their names in one step where the file system can. What is mounted \
            cannot change its name; repair it with --to. The new store has a new replica id: \
            synchronise it with its peers, which bring back what they have. Status 2: something \
            is lost.
            """
                + Examples.section([
                    "tidemark repair /var/lib/notes",
                    "tidemark repair /var/lib/notes --to /mnt/new/notes",
                    "tidemark repair /var/lib/notes --in-place --json",
                ]))

    @OptionGroup var target: StoreArgument
    @Option(
        help: ArgumentHelp(
            "Make a store of what is whole in this directory, missing or empty.",
            valueName: "directory"),
        completion: .directory)
    var to: String?
    @Flag(help: "Put a store of what is whole in the place of the damaged one.")
    var inPlace = false
    @OptionGroup var format: OutputOptions

    func validate() throws {
        if to != nil, inPlace {
            throw ValidationError("--to and --in-place exclude each other; leave one out")
        }
    }

    mutating func run(_ output: OutputStream) async throws {
        let report: RepairReport
        let written: RepairedPlace?
        // Whoever writes the store would take files away that are being read.
        if inPlace {
            try checkIsStore()
            let place = try Publication.exchangeableName(of: target.store)
            let lock = try SystemStorage().lock(target.store)
            defer { withExtendedLifetime(lock) {} }
            let kept = try keptName(of: place)
            report = try await repair(to: place, keeping: kept)
            written = RepairedPlace(store: target.store, kept: kept)
        } else {
            try StoreLock.checkIsFree(at: target.store)
            if let to {
                report = try await repair(to: to, keeping: nil)
                written = RepairedPlace(store: to, kept: nil)
            } else {
                report = try planned()
                written = nil
            }
        }
        let listing = RepairListing(output, isJSON: format.json)
        do {
            try listing.write(report, written)
            try output.flush()
        } catch is OutputClosed where !report.isComplete {
            // Nobody reads on, but the exit status still has to tell.
        }
        guard report.isComplete else {
            let count = Quantities.counted(report.losses.count, "loss", plural: "losses")
            throw CommandFailure(
                .damage,
                written == nil
                    ? "\(count) if the store is repaired; restore a backup where one is new enough"
                    : "\(count); sync the new store with its peers, which may have what is lost")
        }
    }

    private func planned() throws -> RepairReport {
        let bar = ProgressBar("reading")
        defer { bar.finish() }
        return try missingStoreNamed {
            try Store.planRepair(at: target.store) { progress in
                bar.update(bytes: progress.bytesDone, of: progress.bytesTotal)
            }
        }
    }

    private func repair(
        to place: String, keeping kept: String?
    ) async throws -> RepairReport {
        let bar = ProgressBar("repairing")
        defer { bar.finish() }
        let store = target.store
        return try await StagedDirectory.make(place, keeping: kept) { path in
            try missingStoreNamed {
                try Store.repair(at: store, to: path) { progress in
                    bar.update(bytes: progress.bytesDone, of: progress.bytesTotal)
                }
            }
        }
    }

    private func missingStoreNamed(_ body: () throws -> RepairReport) throws -> RepairReport {
        do {
            return try body()
        } catch let error as StoreError where error.code == .notAStore {
            throw noStore
        }
    }

    /// Before a lock file is made in a directory that has nothing to do with us.
    private func checkIsStore() throws {
        let names = try SystemStorage().names(inExisting: target.store)
        let isAny = names.contains { name in
            name == "MANIFEST" || name.hasSuffix(".seg") || name.hasSuffix(".log")
        }
        guard isAny else { throw noStore }
    }

    private var noStore: CommandFailure {
        CommandFailure(.noInput, "no file of a store in \(target.store); check the path")
    }

    /// The first name beside the store that nothing has.
    private func keptName(of place: String) throws -> String {
        let parent = StagedDirectory.parent(of: place)
        let taken = Set(try SystemStorage().listDirectory(parent))
        let name = String(place.split(separator: "/").last ?? "")
        for number in 1..<1_000
        where !taken.contains(StagingName.kept(name, number: number)) {
            return StagingName.kept(place, number: number)
        }
        throw CommandFailure(
            .usage, "\(place) was repaired a thousand times; remove some of \(place).damaged-*")
    }
}

/// Where a repair has put what it saved.
struct RepairedPlace {
    let store: String
    /// Where the damaged store is now, if it was moved.
    let kept: String?
}

/// What a repair kept and what is lost, or would be.
struct RepairListing {
    /// Beside the name of a file, an offset and a length there is room for this.
    private static let textColumns = 40

    private let output: OutputStream
    private let isJSON: Bool

    init(_ output: OutputStream, isJSON: Bool) {
        self.output = output
        self.isJSON = isJSON
    }

    /// - Parameter place: nil if nothing was written.
    func write(_ report: RepairReport, _ place: RepairedPlace?) throws {
        if isJSON {
            try writeLines(report, place)
        } else {
            try writeTables(report, place)
        }
    }

    private func writeTables(_ report: RepairReport, _ place: RepairedPlace?) throws {
        let kept = Quantities.grouped(report.entriesSaved)
        let files = Quantities.counted(report.filesRead, "file")
        let blocks = Quantities.counted(report.blocksRead, "whole block")
        let datasets = TableWriter(
            [
                Column("DATASET", flexibleDownTo: 16),
                Column(place == nil ? "WOULD KEEP" : "KEPT", .right),
                Column(place == nil ? "WOULD LOSE" : "LOST", .right),
                Column("NEW VERSIONS", .right),
            ], output: output)
        for dataset in report.datasets {
            let mark = dataset.isNameMadeUp ? " (name made up)" : ""
            try datasets.add([
                TerminalText.escaped(dataset.name) + mark,
                Quantities.grouped(dataset.entriesSaved), Quantities.grouped(dataset.entriesLost),
                Quantities.grouped(dataset.versionsLost),
            ])
        }
        try datasets.finish()
        try write(report.losses)
        if !report.datasets.isEmpty || !report.losses.isEmpty { try output.writeLine() }
        try output.writeLine(
            "\(kept) versions in \(blocks) of \(files); "
                + (report.isComplete
                    ? "nothing is lost"
                    : Quantities.counted(report.losses.count, "loss", plural: "losses")))
        guard let place else {
            return try output.writeLine("nothing was written: give --to or --in-place")
        }
        try output.writeLine("new store     \(TerminalText.escaped(place.store))")
        try output.writeLine("its replica   \(report.replicaID)")
        if let kept = place.kept {
            try output.writeLine("the old one   \(TerminalText.escaped(kept))")
        }
    }

    func write(_ losses: [RepairReport.Loss]) throws {
        guard !losses.isEmpty else { return }
        let table = TableWriter(
            [
                Column("FILE"), Column("OFFSET", .right), Column("BYTES", .right),
                Column("LOST", flexibleDownTo: 24),
            ], output: output)
        try output.writeLine()
        for loss in losses {
            let datasets =
                loss.datasets.isEmpty ? "" : " (\(loss.datasets.joined(separator: ", ")))"
            var cells = [
                TerminalText.escaped(loss.file),
                loss.offset.map { Quantities.grouped($0) } ?? "",
                loss.byteCount == 0 ? "" : Quantities.grouped(loss.byteCount),
            ]
            let text = TerminalText.oneLine(loss.what + datasets)
            for line in TerminalText.wrappedWords(text, columnsMax: Self.textColumns) {
                try table.add(cells + [line])
                cells = ["", "", ""]
            }
        }
        try table.finish()
    }

    private func writeLines(_ report: RepairReport, _ place: RepairedPlace?) throws {
        for dataset in report.datasets {
            var line = JSONLine()
            line.add("kind", "dataset")
            line.add("dataset", dataset.name)
            line.add("kept", dataset.entriesSaved)
            line.add("lost", dataset.entriesLost)
            line.add("newVersions", dataset.versionsLost)
            line.add("isNameMadeUp", dataset.isNameMadeUp)
            try output.write(line.line)
        }
        for loss in report.losses { try output.write(JSONLine(loss).line) }
        var line = JSONLine()
        line.add("kind", "summary")
        line.add("isDryRun", place == nil)
        line.add("files", report.filesRead)
        line.add("blocks", report.blocksRead)
        line.add("kept", report.entriesSaved)
        line.add("losses", report.losses.count)
        if let place {
            line.add("store", place.store)
            line.add("replica", report.replicaID.description)
            if let kept = place.kept { line.add("damagedStore", kept) }
        }
        try output.write(line.line)
    }
}

extension RepairReport {
    fileprivate var entriesSaved: Int { datasets.reduce(0) { $0 + $1.entriesSaved } }
}

extension JSONLine {
    init(_ loss: RepairReport.Loss) {
        self.init()
        add("kind", "loss")
        add("loss", loss.kind.rawValue)
        add("file", loss.file)
        if let offset = loss.offset { add("offset", offset) }
        add("bytes", loss.byteCount)
        add("datasets", texts: loss.datasets)
        add("message", loss.what)
    }
}
