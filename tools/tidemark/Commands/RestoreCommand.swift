import ArgumentParser
import Tidemark

struct RestoreCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Make a store of a backup, or of what it held at a past moment.",
        discussion: """
            STORE is a backup, or any store that can be opened: it is only read. The new store \
            has a new replica id, because the old one may go on writing. Synchronise it \
            afterwards: what was written since the backup comes back from the peers that have it.

            With --at the new store holds what could be read at that moment, as far back as \
            history is kept. Its peers bring back what came later, so keep it from them where \
            that is not wanted. The audit file of a hub's console goes along, with all of its \
            lines. An empty directory that is there, as a mount point is, stays the same one.
            """
                + Examples.section([
                    "tidemark restore /backup/notes --to /var/lib/notes",
                    "tidemark restore /backup/notes --to then --at 2026-03-02T09:00:00Z",
                ]))

    @OptionGroup var target: StoreArgument
    @Option(
        help: ArgumentHelp("The new store's directory, missing or empty.", valueName: "directory"),
        completion: .directory)
    var to: String
    @Option(help: ArgumentHelp("A moment, as 2026-03-02T09:00:00.000Z.", valueName: "time"))
    var at: String?
    @Flag(help: "Share segments with the backup where the file system allows it.")
    var link = false
    @OptionGroup var format: OutputOptions

    func validate() throws {
        if let at, Timestamp.milliseconds(Array(at.utf8)) == nil {
            throw ValidationError("--at is \(at); give a time in UTC, as 2026-03-02T09:00:00Z")
        }
        if at != nil, link {
            throw ValidationError("--link and --at exclude each other; leave one out")
        }
    }

    mutating func run(_ output: OutputStream) async throws {
        // Names what is missing as every other command does.
        try target.openForReading().close()
        if let at, let milliseconds = Timestamp.milliseconds(Array(at.utf8)) {
            let moment = HybridTime(milliseconds: milliseconds, counter: .max)
            try await restore(moment, output)
        } else {
            try await restore(output)
        }
    }

    private func restore(_ output: OutputStream) async throws {
        let bar = ProgressBar("restoring")
        let (backup, linksFiles) = (target.store, link)
        let made: (BackupReport, auditBytes: UInt64?)
        do {
            defer { bar.finish() }
            made = try await StagedDirectory.make(to) {
                path -> (BackupReport, auditBytes: UInt64?) in
                let report = try Store.restore(
                    from: backup, to: path, linksFiles: linksFiles
                ) { progress in
                    bar.update(bytes: progress.bytesDone, of: progress.bytesTotal)
                }
                return (report, try HubAudit.copy(from: backup, to: path))
            }
        }
        let (report, auditBytes) = made
        if format.json {
            var line = JSONLine(report)
            if let auditBytes { line.add("auditBytes", auditBytes) }
            line.add("store", to)
            try output.write(line.line)
        } else {
            let linked = report.filesLinked
            try output.writeLine(
                "\(Quantities.counted(report.filesCopied, "file")) copied"
                    + (linked > 0 ? ", \(Quantities.grouped(linked)) linked" : "")
                    + ", \(Quantities.bytes(report.bytesTotal))")
            if let auditBytes { try output.writeLine(HubAudit.line(auditBytes)) }
            try output.writeLine("new store  \(TerminalText.escaped(to))")
        }
    }

    private func restore(_ moment: HybridTime, _ output: OutputStream) async throws {
        let bar = ProgressBar("restoring")
        let backup = target.store
        let restored: RestoredMoment
        do {
            defer { bar.finish() }
            restored = try await StagedDirectory.make(to) { path -> RestoredMoment in
                let restored = try Store.restore(
                    from: backup, to: path, at: moment
                ) { progress in
                    bar.update(bytes: progress.bytesDone, of: progress.bytesTotal)
                }
                _ = try HubAudit.copy(from: backup, to: path)
                return restored
            }
        }
        if format.json {
            try writeLines(restored, output)
        } else {
            try writeTable(restored, output)
        }
    }

    private func writeTable(_ restored: RestoredMoment, _ output: OutputStream) throws {
        let table = TableWriter(
            [
                Column("DATASET", flexibleDownTo: 16), Column("RECORDS", .right),
                Column("DELETIONS", .right),
            ], output: output)
        for dataset in restored.datasets {
            try table.add([
                TerminalText.escaped(dataset.name), Quantities.grouped(dataset.recordCount),
                Quantities.grouped(dataset.tombstoneCount),
            ])
        }
        try table.finish()
        if !restored.datasets.isEmpty { try output.writeLine() }
        for name in restored.datasetsGone {
            try output.writeLine(
                "not there: \(TerminalText.escaped(name, columnsMax: 40)), which was deleted since")
        }
        try output.writeLine("as of      \(at ?? "")")
        try output.writeLine("new store  \(TerminalText.escaped(to))")
    }

    private func writeLines(_ restored: RestoredMoment, _ output: OutputStream) throws {
        for dataset in restored.datasets {
            var line = JSONLine()
            line.add("kind", "dataset")
            line.add("dataset", dataset.name)
            line.add("records", dataset.recordCount)
            line.add("tombstones", dataset.tombstoneCount)
            try output.write(line.line)
        }
        var line = JSONLine()
        line.add("kind", "summary")
        line.add("store", to)
        line.add("at", at ?? "")
        line.add("deletedSince", texts: restored.datasetsGone)
        try output.write(line.line)
    }
}
