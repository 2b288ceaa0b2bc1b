import ArgumentParser
import Tidemark

struct StatsCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Show what a store holds, and how it lies on disk.",
        discussion: """
            With --json the first line tells of the store, then one line of each dataset and one \
            of each segment; the member "kind" tells which.
            """)

    @OptionGroup var target: StoreArgument
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openForReading()
        let statistics = try store.statistics()
        try store.close()
        if format.json {
            try writeJSON(statistics, output)
        } else {
            try writeText(statistics, output)
        }
    }

    private func writeText(_ statistics: StoreStatistics, _ output: OutputStream) throws {
        let path = TerminalText.escaped(target.store, columnsMax: output.columns - 9)
        try output.writeLine("store    \(path)")
        try output.writeLine("replica  \(statistics.replicaID)")
        try output.writeLine("format   \(statistics.formatVersion)")
        try output.writeLine(
            "on disk  \(Quantities.bytes(statistics.fileBytes)) in "
                + Quantities.counted(statistics.segments.count, "segment"))
        if !statistics.datasets.isEmpty {
            try output.writeLine()
            let table = DatasetTable(output)
            for dataset in statistics.datasets {
                try table.add(dataset)
            }
            try table.finish()
        }
        guard !statistics.segments.isEmpty else { return }
        try output.writeLine()
        let table = TableWriter(
            [
                Column("SEGMENT", flexibleDownTo: 12),
                Column("STATE"),
                Column("FILE", .right),
                Column("ENTRIES", .right),
                Column("DELETED", .right),
                Column("RAW", .right),
                Column("STORED", .right),
            ], output: output)
        for segment in statistics.segments {
            try table.add([
                TerminalText.escaped(segment.file),
                segment.isSealed ? "sealed" : "active",
                Quantities.bytes(segment.fileBytes),
                Quantities.grouped(segment.entryCount),
                Quantities.grouped(segment.tombstoneCount),
                Quantities.bytes(segment.rawBytes),
                Quantities.bytes(segment.storedBytes),
            ])
        }
        try table.finish()
    }

    private func writeJSON(_ statistics: StoreStatistics, _ output: OutputStream) throws {
        var line = JSONLine()
        line.add("kind", "store")
        line.add("replica", statistics.replicaID.description)
        line.add("formatVersion", statistics.formatVersion)
        line.add("fileBytes", statistics.fileBytes)
        line.add("datasets", statistics.datasets.count)
        line.add("segments", statistics.segments.count)
        try output.write(line.line)
        for dataset in statistics.datasets {
            var line = JSONLine(dataset)
            line.add("kind", "dataset")
            try output.write(line.line)
        }
        for segment in statistics.segments {
            var line = JSONLine()
            line.add("segment", segment.file)
            line.add("isSealed", segment.isSealed)
            line.add("fileBytes", segment.fileBytes)
            line.add("entries", segment.entryCount)
            line.add("tombstones", segment.tombstoneCount)
            line.add("rawBytes", segment.rawBytes)
            line.add("storedBytes", segment.storedBytes)
            line.add("kind", "segment")
            try output.write(line.line)
        }
    }
}
