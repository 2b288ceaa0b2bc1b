import ArgumentParser
import Tidemark

struct BackupCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Make or renew a backup of one moment of a store, also while it is written.",
        discussion: """
            The backup is a directory that can be read like a store. Segments never change, so \
            where the file system allows it a backup takes a second name of each, which costs no \
            space; --copy copies them, and so does another file system. Into a directory with an \
            earlier backup of the store only what is new goes, and the earlier one is whole until \
            the new one takes its place in one step.

            A first backup that is stopped leaves nothing behind, and an empty directory empty; \
            that may be a mount point. The store is not changed. The \
            audit file of a hub's console goes along.
            """
                + Examples.section([
                    "tidemark backup /var/lib/notes /var/lib/notes.backup",
                    "tidemark backup /var/lib/notes /mnt/other/notes --copy",
                    "tidemark verify /var/lib/notes.backup",
                ]))

    @OptionGroup var target: StoreArgument
    @Argument(
        help: "The backup's directory: missing, empty, or an earlier backup.",
        completion: .directory)
    var backup: String
    @Flag(help: "Copy segments: a second name guards against mistakes, not against the disk.")
    var copy = false
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openForReading()
        let bar = ProgressBar("backing up")
        let made: (BackupReport, auditBytes: UInt64?)
        do {
            defer { bar.finish() }
            made = try await write(store, bar)
        }
        let (report, auditBytes) = made
        try store.close()
        if format.json {
            var line = JSONLine(report)
            line.add("filesKept", report.filesKept)
            line.add("filesRemoved", report.filesRemoved)
            if let auditBytes { line.add("auditBytes", auditBytes) }
            line.add("backup", backup)
            try output.write(line.line)
        } else {
            let kept = report.filesKept > 0 ? ", \(Quantities.grouped(report.filesKept)) kept" : ""
            let removed =
                report.filesRemoved > 0
                ? ", \(Quantities.grouped(report.filesRemoved)) removed" : ""
            try output.writeLine(
                "\(Quantities.counted(report.filesLinked, "file")) linked, "
                    + "\(Quantities.grouped(report.filesCopied)) copied\(kept)\(removed)")
            try output.writeLine(
                "\(Quantities.bytes(report.bytesTotal)), of these "
                    + "\(Quantities.bytes(report.bytesCopied)) written")
            if let auditBytes { try output.writeLine(HubAudit.line(auditBytes)) }
            try output.writeLine("backup  \(TerminalText.escaped(backup))")
        }
    }

    /// A first backup is made under another name, within a directory that is there and empty. One
    /// that renews an earlier one is made in its place, where only what counts for nothing can be
    /// left behind, and the next one uses it.
    private func write(
        _ store: Store, _ bar: ProgressBar
    ) async throws -> (BackupReport, auditBytes: UInt64?) {
        func write(to path: String) throws -> (BackupReport, auditBytes: UInt64?) {
            let report = try store.backup(to: path, linksFiles: !copy) { progress in
                bar.update(bytes: progress.bytesDone, of: progress.bytesTotal)
            }
            return (report, try HubAudit.copy(from: target.store, to: path))
        }
        let names = try SystemStorage().names(inExisting: backup)
        guard names.isEmpty || Publication.isUnfinished(names) else {
            return try write(to: backup)
        }
        return try await StagedDirectory.make(backup) { path in try write(to: path) }
    }
}

extension JSONLine {
    /// What backups and restores have in common.
    init(_ report: BackupReport) {
        self.init()
        add("filesLinked", report.filesLinked)
        add("filesCopied", report.filesCopied)
        add("bytesCopied", report.bytesCopied)
        add("bytesTotal", report.bytesTotal)
    }
}
