import ArgumentParser
import Tidemark

struct CompactCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "compact",
        abstract: "Merge segments and drop what nobody needs any more.",
        discussion: """
            Without --dataset the whole store becomes one run of segments. With it only the \
            segments that hold the dataset, or the given keys of it, are written anew.
            """)

    @OptionGroup var target: StoreArgument
    @OptionGroup var retention: HistoryOption
    @Option(help: ArgumentHelp("Only this dataset.", valueName: "name")) var dataset: String?
    @OptionGroup var keys: KeyRangeOptions
    @OptionGroup var format: OutputOptions

    func validate() throws {
        if dataset == nil, !keys.isEmpty {
            throw ValidationError("keys are those of a dataset; name it with --dataset")
        }
    }

    mutating func run(_ output: OutputStream) async throws {
        let range = try keys.range()
        let store = try target.openExisting(
            StoreOptions(historyVersions: retention.history, compactsAutomatically: false))
        let before = try store.usage()
        let report: CompactionReport
        if let dataset {
            report = try target.dataset(dataset, in: store).compact(range)
        } else {
            report = try store.compact()
        }
        let after = try store.usage()
        try store.close()
        if format.json {
            try output.write(JSONLine(report).line)
        } else {
            try output.writeLine("before  \(summary(before))")
            try output.writeLine("after   \(summary(after))")
            try output.writeLine("dropped \(dropped(report))")
        }
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
