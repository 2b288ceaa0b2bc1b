import ArgumentParser
import Tidemark

struct CompactCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "compact",
        abstract: "Merge all segments into one and drop what nobody needs any more.")

    @OptionGroup var target: StoreArgument
    @OptionGroup var retention: HistoryOption

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openExisting(
            StoreOptions(historyVersions: retention.history, compactsAutomatically: false))
        let before = try store.statistics()
        try store.compact()
        let after = try store.statistics()
        try store.close()
        try output.writeLine("before  \(summary(before))")
        try output.writeLine("after   \(summary(after))")
    }

    /// The active segment takes its space on disk in advance, so both figures count.
    private func summary(_ statistics: StoreStatistics) -> String {
        let stored = statistics.segments.reduce(0) { $0 + $1.storedBytes }
        return "\(Quantities.grouped(stored)) bytes in "
            + Quantities.counted(statistics.segments.count, "segment")
            + ", \(Quantities.grouped(statistics.fileBytes)) bytes on disk"
    }
}
