import ArgumentParser
import Tidemark

struct InspectCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect",
        abstract: "Show the whole store at a glance: space, datasets, peers.",
        discussion: """
            Answers at once whatever the store's size: counts come from the tables of the \
            segments, and what is live of a segment from a sample of its blocks, marked with a ~. \
            'tidemark stats' counts everything.

            The MAP of a segment shows it from its beginning to its end: # where nearly all is \
            live, + and - where more or less than a half is, . where nearly all was superseded, \
            deleted or left by a dataset that is gone.

            Of each peer: how many datasets it is BEHIND in, the CHANGES that it is not known to \
            have, and the deletions that are HELD until it has.
            """)

    @OptionGroup var target: StoreArgument
    @Flag(help: "List every dataset, and count all that lags hold.") var all = false
    @OptionGroup var format: OutputOptions

    /// What is looked at so that the answer comes at once.
    private static let datasetsMax = 1_000
    private static let changesMax = 100_000
    /// Into which the bar divides what there is to count.
    private static let barSteps: UInt64 = 1_000_000
    /// Rows of a table that fit a screen.
    private static let rowsMax = 20

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openForReading()
        let bar = ProgressBar("counting", unit: "changes")
        defer { bar.finish() }
        let survey = try store.spaceSurvey(cellsMax: format.json ? 32 : InspectTables.mapColumns)
        let lags = try store.peerLags(
            datasetsMax: all ? .max : Self.datasetsMax,
            changesMax: all ? .max : Self.changesMax
        ) { changeCount, share in
            let steps = UInt64(Double(Self.barSteps) * share)
            bar.update(bytes: steps, of: Self.barSteps, items: changeCount)
        }
        bar.finish()
        let replica = store.replicaID
        try store.close()
        if format.json {
            try InspectLines(output).write(replica, survey, lags.peers, isWhole: lags.isWhole)
            return
        }
        let tables = InspectTables(output, rowsMax: all ? .max : Self.rowsMax)
        try tables.writeHead(path: target.store, replica, survey)
        try tables.write(survey.datasets)
        try tables.write(survey.segments, isExact: survey.isExact)
        try tables.write(survey.valueFiles)
        try tables.write(lags.peers, isWhole: lags.isWhole)
    }
}

/// The store at a glance, for people.
struct InspectTables {
    static let mapColumns = 24
    /// As wide as the label of a line of the head.
    private static let labelColumns = 9

    private let output: OutputStream
    private let rowsMax: Int

    /// - Parameter rowsMax: rows of a table, of which the largest are shown.
    init(_ output: OutputStream, rowsMax: Int) {
        self.output = output
        self.rowsMax = rowsMax
    }

    func writeHead(path: String, _ replica: ReplicaID, _ survey: SpaceSurvey) throws {
        let room = output.columns - Self.labelColumns
        try write("store", TerminalText.escaped(path, columnsMax: room))
        try write("replica", replica.description)
        try write("format", "\(Store.formatVersion)")
        let logs = survey.segments.filter { !$0.isSealed }.count
        let sealed = survey.segments.count - logs
        let files = [
            Quantities.counted(sealed, "segment"), Quantities.counted(logs, "log"),
            Quantities.counted(survey.valueFiles.count, "value file"),
        ]
        try write(
            "on disk", "\(Quantities.bytes(survey.fileBytes)) in \(files.joined(separator: ", "))")
        if let space = survey.spaceAmplification {
            let mark = survey.isExact ? "" : "~"
            try write("space", "\(mark)\(Quantities.ratio(space)) bytes on disk for each live one")
        }
    }

    private func write(_ label: String, _ text: String) throws {
        let padding = String(repeating: " ", count: Self.labelColumns - label.count)
        try output.writeLine(label + padding + text)
    }

    func write(_ datasets: [SpaceSurvey.Dataset]) throws {
        let users = datasets.filter { $0.name.map { !$0.hasPrefix("~") } ?? false }
        let table = TableWriter(
            [
                Column("DATASET", flexibleDownTo: 12),
                Column("LIVE", .right),
                Column("VERSIONS", .right),
                Column("DELETIONS", .right),
                Column("KEYS", .right),
                Column("VALUES", .right),
                Column("SYNC COUNT", .right),
            ], output: output)
        try output.writeLine()
        let shown = largest(users) { $0.keyBytes + $0.valueBytes }
        for dataset in shown { try table.add(row(dataset, dataset.name ?? "")) }
        for (name, group) in [
            ("(the store's own)", datasets.filter { $0.name?.hasPrefix("~") ?? false }),
            ("(deleted datasets)", datasets.filter { $0.name == nil }),
        ] where !group.isEmpty {
            try table.add(Self.sum(group, name))
        }
        try table.finish()
        try writeRest(of: users.count, shown.count, "dataset")
    }

    private func row(_ dataset: SpaceSurvey.Dataset, _ name: String) -> [String] {
        let isExact = dataset.found.all >= dataset.entryCount
        let live = dataset.liveEstimate.map { (isExact ? "" : "~") + Quantities.grouped($0) }
        return [
            TerminalText.escaped(name), live ?? "?", Quantities.grouped(dataset.entryCount),
            Quantities.grouped(dataset.tombstoneCount), Quantities.bytes(dataset.keyBytes),
            Quantities.bytes(dataset.valueBytes), Quantities.grouped(dataset.syncCount.rawValue),
        ]
    }

    private static func sum(_ group: [SpaceSurvey.Dataset], _ name: String) -> [String] {
        [
            name, "", Quantities.grouped(group.reduce(0) { $0 + $1.entryCount }),
            Quantities.grouped(group.reduce(0) { $0 + $1.tombstoneCount }),
            Quantities.bytes(group.reduce(0) { $0 + $1.keyBytes }),
            Quantities.bytes(group.reduce(0) { $0 + $1.valueBytes }), "",
        ]
    }

    func write(_ segments: [SpaceSurvey.Segment], isExact: Bool) throws {
        let table = TableWriter(
            [
                Column("SEGMENT", flexibleDownTo: 10),
                Column("FILE", .right),
                Column("VERSIONS", .right),
                Column("DELETIONS", .right),
                Column("LIVE", .right),
                Column("MAP"),
            ], output: output)
        try output.writeLine()
        let shown = largest(segments) { $0.fileBytes }
        for segment in shown {
            try table.add([
                TerminalText.escaped(segment.file), Quantities.bytes(segment.fileBytes),
                Quantities.grouped(segment.entryCount), Quantities.grouped(segment.tombstoneCount),
                Self.percent(segment), Self.map(of: segment.cells),
            ])
        }
        try table.finish()
        try writeRest(of: segments.count, shown.count, "segment")
    }

    private static func percent(_ segment: SpaceSurvey.Segment) -> String {
        guard let share = segment.found.liveShare else { return "-" }
        return (segment.isExact ? "" : "~") + "\(Int((100 * share).rounded(.down)))%"
    }

    /// A character for each stretch.
    static func map(of cells: [SpaceSurvey.Counts]) -> String {
        let marks = cells.map { cell -> Character in
            guard let share = cell.liveShare else { return " " }
            switch share {
            case 0.9...: return "#"
            case 0.5...: return "+"
            case 0.1...: return "-"
            default: return "."
            }
        }
        return "[\(String(marks))]"
    }

    func write(_ valueFiles: [StoreUsage.ValueFile]) throws {
        guard !valueFiles.isEmpty else { return }
        let table = TableWriter(
            [
                Column("VALUE FILE", flexibleDownTo: 12), Column("FILE", .right),
                Column("VALUES", .right), Column("USED", .right),
            ], output: output)
        try output.writeLine()
        let shown = largest(valueFiles) { $0.fileBytes }
        for file in shown {
            try table.add([
                TerminalText.escaped(file.file), Quantities.bytes(file.fileBytes),
                Quantities.grouped(file.valueCount), Quantities.bytes(file.usedBytes),
            ])
        }
        try table.finish()
        try writeRest(of: valueFiles.count, shown.count, "value file")
    }

    func write(_ peers: [PeerLag], isWhole: Bool) throws {
        try output.writeLine()
        guard !peers.isEmpty else {
            return try output.writeLine("no peers: nothing was ever exchanged")
        }
        let table = TableWriter(
            [
                Column("PEER"), Column("DATASETS", .right), Column("BEHIND", .right),
                Column("CHANGES", .right), Column("HELD"),
            ], output: output)
        let shown = largest(peers) { $0.lag }
        for peer in shown {
            let held =
                peer.tombstonesHeld == 0
                ? "nothing"
                : "\(Quantities.counted(peer.tombstonesHeld, "deletion")), "
                    + Quantities.bytes(peer.tombstoneBytesHeld)
            try table.add([
                peer.replica.shortDescription, Quantities.grouped(peer.datasetCount),
                Quantities.grouped(peer.behindCount), Quantities.grouped(peer.lag),
                peer.retiredCount == peer.datasetCount ? "retired" : held,
            ])
        }
        try table.finish()
        try writeRest(of: peers.count, shown.count, "peer")
        if !isWhole {
            try output.writeLine("There may be more behind each; --all counts everything.")
        }
    }

    /// Those that weigh most, in the order in which they came.
    private func largest<Row, Weight: Comparable>(
        _ rows: [Row], by weight: (Row) -> Weight
    ) -> [Row] {
        guard rows.count > rowsMax else { return rows }
        let chosen = rows.indices.sorted { weight(rows[$0]) > weight(rows[$1]) }.prefix(rowsMax)
        return chosen.sorted().map { rows[$0] }
    }

    private func writeRest(of count: Int, _ shown: Int, _ noun: String) throws {
        guard count > shown else { return }
        try output.writeLine(
            "and \(Quantities.counted(count - shown, "smaller \(noun)")); --all shows them")
    }
}

/// The same as JSON lines, everything in it.
struct InspectLines {
    private let output: OutputStream

    init(_ output: OutputStream) {
        self.output = output
    }

    func write(
        _ replica: ReplicaID, _ survey: SpaceSurvey, _ peers: [PeerLag], isWhole: Bool
    ) throws {
        var store = JSONLine()
        store.add("kind", "store")
        store.add("replica", replica.description)
        store.add("formatVersion", Store.formatVersion)
        store.add("fileBytes", survey.fileBytes)
        store.add("spaceAmplification", ratio: survey.spaceAmplification)
        store.add("isExact", survey.isExact)
        store.add("datasets", survey.datasets.count)
        store.add("segments", survey.segments.count)
        store.add("valueFiles", survey.valueFiles.count)
        store.add("peers", peers.count)
        store.add("areLagsWhole", isWhole)
        try output.write(store.line)
        for dataset in survey.datasets { try output.write(line(dataset).line) }
        for segment in survey.segments { try output.write(line(segment).line) }
        for file in survey.valueFiles {
            var line = JSONLine()
            line.add("kind", "valueFile")
            line.add("valueFile", file.file)
            line.add("fileBytes", file.fileBytes)
            line.add("values", file.valueCount)
            line.add("usedBytes", file.usedBytes)
            try output.write(line.line)
        }
        for peer in peers { try output.write(line(peer).line) }
    }

    private func line(_ dataset: SpaceSurvey.Dataset) -> JSONLine {
        var line = JSONLine()
        line.add("kind", "dataset")
        if let name = dataset.name { line.add("dataset", name) }
        line.add("entries", dataset.entryCount)
        line.add("tombstones", dataset.tombstoneCount)
        line.add("keyBytes", dataset.keyBytes)
        line.add("valueBytes", dataset.valueBytes)
        line.add("syncCount", dataset.syncCount.rawValue)
        if let live = dataset.liveEstimate { line.add("live", live) }
        line.add("isExact", dataset.found.all >= dataset.entryCount)
        return line
    }

    private func line(_ segment: SpaceSurvey.Segment) -> JSONLine {
        var line = JSONLine()
        line.add("kind", "segment")
        line.add("segment", segment.file)
        line.add("isSealed", segment.isSealed)
        line.add("fileBytes", segment.fileBytes)
        line.add("entries", segment.entryCount)
        line.add("tombstones", segment.tombstoneCount)
        line.add("contentBytes", segment.contentBytes)
        line.add("liveBytes", segment.liveBytesEstimate)
        line.add("liveShare", ratio: segment.found.liveShare)
        line.add("isExact", segment.isExact)
        line.add("map", InspectTables.map(of: segment.cells))
        return line
    }

    private func line(_ peer: PeerLag) -> JSONLine {
        var line = JSONLine()
        line.add("kind", "peer")
        line.add("replica", peer.replica.description)
        line.add("datasets", peer.datasetCount)
        line.add("behind", peer.behindCount)
        line.add("retired", peer.retiredCount)
        line.add("changes", peer.lag)
        line.add("tombstonesHeld", peer.tombstonesHeld)
        line.add("tombstoneBytesHeld", peer.tombstoneBytesHeld)
        return line
    }
}
