import ArgumentParser
import Tidemark

struct StatsCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Show what a store holds, and how it lies on disk.",
        discussion: """
            LIVE of a segment are the records whose newest version is in it, DEAD the versions \
            that compaction may drop, and SPACE are the bytes on disk for each byte of keys and \
            values that is live there.

            With --json the first line tells of the store, then one line of each dataset, one \
            of each segment and one of each value file; the member "kind" tells which. USED of a \
            value file ("usedBytes") are the bytes of the values that some version of a record \
            has; the others come back with compaction once they are more than a half.
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
                + Quantities.files(statistics.segments.count, statistics.valueFiles.count))
        if let space = statistics.spaceAmplification {
            try output.writeLine(
                "space    \(Quantities.ratio(space)) bytes on disk for each that is live")
        }
        if !statistics.datasets.isEmpty {
            try output.writeLine()
            let table = DatasetTable(output)
            for dataset in statistics.datasets {
                try table.add(dataset)
            }
            try table.finish()
        }
        try write(statistics.segments, output)
        try write(statistics.valueFiles, output)
    }

    private func write(_ segments: [StoreStatistics.Segment], _ output: OutputStream) throws {
        guard !segments.isEmpty else { return }
        try output.writeLine()
        let table = TableWriter(
            [
                Column("SEGMENT", flexibleDownTo: 12),
                Column("STATE"),
                Column("FILE", .right),
                Column("RAW", .right),
                Column("LIVE", .right),
                Column("DEAD", .right),
                Column("DELETED", .right),
                Column("SPACE", .right),
            ], output: output)
        for segment in segments {
            try table.add([
                TerminalText.escaped(segment.file),
                segment.isSealed ? "sealed" : "active",
                Quantities.bytes(segment.fileBytes),
                Quantities.bytes(segment.rawBytes),
                Quantities.grouped(segment.liveCount),
                Quantities.grouped(segment.deadCount),
                Quantities.grouped(segment.tombstoneCount),
                Quantities.ratio(segment.spaceAmplification),
            ])
        }
        try table.finish()
    }

    private func write(_ valueFiles: [StoreUsage.ValueFile], _ output: OutputStream) throws {
        guard !valueFiles.isEmpty else { return }
        try output.writeLine()
        let table = TableWriter(
            [
                Column("VALUE FILE", flexibleDownTo: 12),
                Column("FILE", .right),
                Column("VALUES", .right),
                Column("USED", .right),
            ], output: output)
        for file in valueFiles {
            try table.add([
                TerminalText.escaped(file.file),
                Quantities.bytes(file.fileBytes),
                Quantities.grouped(file.valueCount),
                Quantities.bytes(file.usedBytes),
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
        line.add("spaceAmplification", ratio: statistics.spaceAmplification)
        line.add("datasets", statistics.datasets.count)
        line.add("segments", statistics.segments.count)
        line.add("valueFiles", statistics.valueFiles.count)
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
            line.add("live", segment.liveCount)
            line.add("dead", segment.deadCount)
            line.add("liveBytes", segment.liveBytes)
            line.add("spaceAmplification", ratio: segment.spaceAmplification)
            line.add("rawBytes", segment.rawBytes)
            line.add("storedBytes", segment.storedBytes)
            line.add("kind", "segment")
            try output.write(line.line)
        }
        for file in statistics.valueFiles {
            var line = JSONLine()
            line.add("valueFile", file.file)
            line.add("fileBytes", file.fileBytes)
            line.add("values", file.valueCount)
            line.add("usedBytes", file.usedBytes)
            line.add("kind", "valueFile")
            try output.write(line.line)
        }
    }
}
