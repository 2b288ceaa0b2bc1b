import ArgumentParser
import Tidemark

struct CompactCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "compact",
        abstract: "Merge segments and drop what nobody needs any more.",
        discussion: """
            Without --dataset the whole store becomes one run of segments. With it only the \
            segments that hold the dataset, or the given keys of it, are written anew. With \
            --dry-run all of that is done but the writing: the figures are what would come of it, \
            and the store is only read, also beside a process that writes it.
            """
                + Examples.section([
                    "tidemark compact /var/lib/notes --dry-run",
                    "tidemark compact /var/lib/notes --history 2",
                    "tidemark compact /var/lib/notes --dataset orders --prefix 2024-",
                ]))

    @OptionGroup var target: StoreArgument
    @OptionGroup var retention: HistoryOption
    @Option(help: ArgumentHelp("Only this dataset.", valueName: "name")) var dataset: String?
    @OptionGroup var keys: KeyRangeOptions
    @Flag(help: "Tell what would be reclaimed, and write nothing.") var dryRun = false
    @OptionGroup var format: OutputOptions

    func validate() throws {
        if dataset == nil, !keys.isEmpty {
            throw ValidationError("keys are those of a dataset; name it with --dataset")
        }
    }

    mutating func run(_ output: OutputStream) async throws {
        let range = try keys.range()
        if dryRun { return try plan(range, output) }
        let store = try target.openExisting(
            StoreOptions(historyVersions: retention.history, compactsAutomatically: false))
        let before = try store.usage()
        let report = try compact(store, range)
        let after = try store.usage()
        try store.close()
        if format.json {
            try output.write(JSONLine(report).line)
        } else {
            try output.writeLine("before  \(summary(before))")
            try output.writeLine("after   \(summary(after))")
            try output.writeLine("dropped \(dropped(report))")
            try output.writeLine("freed   \(freed(report))")
        }
    }

    private func compact(_ store: Store, _ range: KeyRange) throws -> CompactionReport {
        let bar = ProgressBar("compacting")
        defer { bar.finish() }
        func tell(_ progress: CompactionProgress) {
            bar.update(bytes: progress.bytesDone, of: progress.bytesTotal)
        }
        guard let dataset else { return try store.compact(progress: tell) }
        return try target.dataset(dataset, in: store).compact(range, progress: tell)
    }

    private func plan(_ range: KeyRange, _ output: OutputStream) throws {
        let store = try target.openExisting(
            StoreOptions(isReadOnly: true, historyVersions: retention.history))
        let bar = ProgressBar("planning")
        let report: CompactionReport
        do {
            defer { bar.finish() }
            func tell(_ progress: CompactionProgress) {
                bar.update(bytes: progress.bytesDone, of: progress.bytesTotal)
            }
            if let dataset {
                let chosen = try target.dataset(dataset, in: store)
                report = try chosen.planCompaction(range, progress: tell)
            } else {
                report = try store.planCompaction(progress: tell)
            }
        }
        try store.close()
        if format.json {
            var line = JSONLine(report)
            line.add("isDryRun", true)
            try output.write(line.line)
        } else {
            try output.writeLine("now     \(summary(report.bytesBefore, report.segmentsBefore))")
            try output.writeLine("then    \(summary(report.bytesAfter, report.segmentsAfter))")
            try output.writeLine("drops   \(dropped(report))")
            try output.writeLine("frees   \(freed(report))")
        }
    }

    private func summary(_ bytes: UInt64, _ segments: Int) -> String {
        "\(Quantities.grouped(bytes)) bytes in \(Quantities.counted(segments, "segment"))"
    }

    private func freed(_ report: CompactionReport) -> String {
        "\(Quantities.grouped(report.bytesReclaimed)) bytes"
    }

    /// The active segment takes its space on disk in advance, so both figures count.
    private func summary(_ usage: StoreUsage) -> String {
        let inSegments = usage.segments.reduce(0) { $0 + $1.storedBytes }
        let stored = usage.valueFiles.reduce(inSegments) { $0 + $1.usedBytes }
        return "\(Quantities.grouped(stored)) bytes in "
            + Quantities.files(usage.segments.count, usage.valueFiles.count)
            + ", \(Quantities.grouped(usage.fileBytes)) bytes on disk"
    }

    private func dropped(_ report: CompactionReport) -> String {
        Quantities.counted(report.entriesDropped, "version") + ", of these "
            + Quantities.counted(report.tombstonesDropped, "deletion")
    }
}

extension JSONLine {
    fileprivate init(_ report: CompactionReport) {
        self.init()
        add("segmentsBefore", report.segmentsBefore)
        add("segmentsAfter", report.segmentsAfter)
        add("bytesBefore", report.bytesBefore)
        add("bytesAfter", report.bytesAfter)
        add("bytesReclaimed", report.bytesReclaimed)
        add("entriesDropped", report.entriesDropped)
        add("tombstonesDropped", report.tombstonesDropped)
    }
}
