import Tidemark

/// One self-contained page: no script, and nothing from elsewhere.
struct ReportPage {
    private static let segmentsMax = 40
    private static let crossedMax = 24
    private static let datasetsMax = 20

    private let data: ReportData
    private let output: OutputStream

    init(_ data: ReportData, _ output: OutputStream) {
        self.data = data
        self.output = output
    }

    func write() throws {
        try output.write(Self.head)
        try writeOverview()
        try writeSegments()
        try writeDatasets()
        try writeCrossing()
        try writeTimelines()
        try writeMatrices()
        try writeSizes()
        try writeConflicts()
        try output.write("</main>\n</body>\n</html>\n")
    }

    // MARK: - Parts

    private func writeOverview() throws {
        let survey = data.survey
        let users = survey.datasets.filter { $0.name.map { !$0.hasPrefix("~") } ?? false }
        let live = users.reduce(0) { $0 + ($1.liveEstimate ?? 0) }
        let facts: [(String, String)] = [
            ("Store", HTMLText.escaped(data.path, charactersMax: 200)),
            ("Replica", data.replica.description),
            ("Looked at", HybridTime(milliseconds: data.now, counter: 0).description),
            ("On disk", Quantities.bytes(survey.fileBytes)),
            ("Datasets", Quantities.grouped(data.datasetCount)),
            ("Live records", (survey.isExact ? "" : "about ") + Quantities.grouped(live)),
            (
                "Space",
                "\(Quantities.ratio(survey.spaceAmplification)) bytes on disk for each live one"
            ),
        ]
        try output.write("<h1>Tidemark store</h1>\n<dl>\n")
        for (name, value) in facts {
            try output.write("<dt>\(name)</dt><dd>\(value)</dd>\n")
        }
        try output.write("</dl>\n<p class=\"note\">\(HTMLText.marked(samplingNote))</p>\n")
    }

    /// How exact it all is.
    private var samplingNote: String {
        let sample = data.sample
        var note =
            sample.isWhole
            ? "Sizes and times are of all \(Quantities.grouped(sample.entriesTotal)) versions."
            : "Sizes and times are estimates from a sample of "
                + "\(Quantities.grouped(sample.entriesSampled)) of the "
                + "\(Quantities.grouped(sample.entriesTotal)) versions, taken block by block."
        if !data.survey.isExact {
            note += " What is live of each segment is estimated from a sample, too."
        }
        if sample.blocksDamaged > 0 {
            note +=
                " \(Quantities.counted(sample.blocksDamaged, "damaged block")) passed over: run "
                + "'tidemark verify'."
        }
        if data.datasetCount > ReportData.datasetsMax {
            note +=
                " Exchanges, conflicts and vectors are of the first "
                + "\(Quantities.grouped(ReportData.datasetsMax)) datasets."
        }
        return note
    }

    private func writeSegments() throws {
        let segments = data.survey.segments
        let shown = largest(segments, Self.segmentsMax) { $0.fileBytes }
        var bars = shown.map { segment in
            let live = min(Double(segment.liveBytesEstimate), Double(segment.contentBytes))
            let share = segment.contentBytes == 0 ? 0 : live / Double(segment.contentBytes)
            let bytes = Double(segment.fileBytes)
            return Plots.Bar(
                label: TerminalText.escaped(segment.file, columnsMax: 22),
                parts: [
                    Plots.Part(style: "live", value: bytes * share),
                    Plots.Part(style: "dead", value: bytes * (1 - share)),
                ],
                note: "\(Quantities.bytes(segment.fileBytes)), \(Int(share * 100)) % live")
        }
        for file in largest(data.survey.valueFiles, Self.segmentsMax, by: { $0.fileBytes }) {
            let used = Double(min(file.usedBytes, file.fileBytes))
            bars.append(
                Plots.Bar(
                    label: TerminalText.escaped(file.file, columnsMax: 22),
                    parts: [
                        Plots.Part(style: "live", value: used),
                        Plots.Part(style: "dead", value: Double(file.fileBytes) - used),
                    ],
                    note: "\(Quantities.bytes(file.fileBytes)), values"))
        }
        try section("Space by file", legend: [("live", "live"), ("dead", "not live, or overhead")])
        try output.write(Plots.bars(bars, title: "Bytes of each file, and what of them is live"))
        try writeLeftOut(segments.count - shown.count, "segment")
    }

    private func writeDatasets() throws {
        let datasets = data.survey.datasets.filter { $0.keyBytes + $0.valueBytes > 0 }
        let shown = largest(datasets, Self.datasetsMax) { $0.keyBytes + $0.valueBytes }
        let bars = shown.map { dataset in
            Plots.Bar(
                label: dataset.name.map { TerminalText.escaped($0, columnsMax: 22) }
                    ?? "(deleted datasets)",
                parts: [
                    Plots.Part(style: "keys", value: Double(dataset.keyBytes)),
                    Plots.Part(style: "live", value: Double(dataset.valueBytes)),
                ],
                note: Quantities.counted(dataset.entryCount, "version"))
        }
        try section("Space by dataset", legend: [("keys", "keys"), ("live", "values")])
        try output.write(
            Plots.bars(bars, title: "Bytes of keys and values of each dataset, all versions"))
        try writeLeftOut(datasets.count - shown.count, "dataset")
    }

    /// Each dataset's bytes in each segment: the heaviest of both, and all others in one row and
    /// one column, so that every byte is in the plot once.
    private func writeCrossing() throws {
        let crossing = SpaceCrossing(data.survey, rowsMax: Self.crossedMax)
        var legend: [(style: String, text: String)] = [
            ("live", "live"), ("dead", "superseded or deleted"),
        ]
        if crossing.hasUnknown { legend.append(("keys", "not in the sample")) }
        try section("Space by segment and dataset", legend: legend)
        guard !crossing.rows.isEmpty else { return try output.write("<p>No dataset.</p>\n") }
        try output.write(
            "<p class=\"note\">Bytes of keys and values before compression, in each segment.</p>\n")
        try output.write(
            Plots.crossing(crossing, title: "Bytes of each dataset in each segment"))
    }

    private func writeTimelines() throws {
        try section("Writes over time", legend: [("live", "puts"), ("dead", "deletions")])
        try write(data.writes, title: "Versions that are kept, by when they were written")
        try section("Changes exchanged", legend: [("live", "pulled"), ("keys", "pushed here")])
        try write(
            data.exchanges, styles: ["live", "keys"], title: "Changes that exchanges brought")
    }

    private func writeConflicts() throws {
        try section("Conflicts over time", legend: [("live", "settled"), ("dead", "waiting")])
        try write(data.conflicts, title: "Conflicts by when they were settled, or met")
        try output.write(
            "<p>\(Quantities.grouped(data.settledCount)) in the journal, "
                + "\(Quantities.grouped(data.waitingCount)) waiting.</p>\n")
    }

    private func write(
        _ timeline: Timeline, styles: [String] = ["live", "dead"], title: String
    ) throws {
        guard !timeline.isEmpty else { return try output.write("<p>None is kept.</p>\n") }
        let series = zip(styles, timeline.series).map { (style: $0, values: $1.bins) }
        let labels = [0, Timeline.binCount / 2, Timeline.binCount - 1].map { index in
            let step = timeline.stepMilliseconds
            return (index: index, text: Timeline.label(timeline.start + step * UInt64(index)))
        }
        try output.write(Plots.columns(series, labels: labels, title: title))
        let step = Age.text(milliseconds: timeline.stepMilliseconds)
        var note = "A bar stands for \(timeline.stepMilliseconds < 1_000 ? "under 1 s" : step)."
        if timeline.futureWeight >= 1 {
            let count = Quantities.grouped(Int(min(timeline.futureWeight, 1e15).rounded()))
            note += " Dated in the future, and left out: \(count)."
        }
        try output.write("<p class=\"note\">\(HTMLText.marked(note))</p>\n")
    }

    private func writeMatrices() throws {
        try section("Who has seen whose writes", legend: [])
        guard !data.matrices.isEmpty else { return try output.write("<p>No dataset.</p>\n") }
        try output.write(
            "<p class=\"note\">A row for this store and each peer as last met, a column for each "
                + "writer: the last write seen of it. The paler, the further behind.</p>\n")
        for matrix in data.matrices {
            let name = HTMLText.escaped(matrix.dataset)
            try output.write("<h3>\(name)</h3>\n")
            try output.write(
                Plots.matrix(matrix, title: "Version vectors of the replicas of a dataset"))
            try writeLeftOut(matrix.rowsLeftOut, "peer")
            try writeLeftOut(matrix.writersLeftOut, "writer")
        }
    }

    private func writeSizes() throws {
        for (title, histogram) in [("Key sizes", data.keySizes), ("Value sizes", data.valueSizes)] {
            try section(title, legend: [])
            let classes = histogram.classes
            guard !classes.isEmpty else {
                try output.write("<p>None.</p>\n")
                continue
            }
            let every = max(1, classes.count / 10)
            let labels = classes.enumerated().filter { $0.offset % every == 0 }.map {
                (index: $0.offset, text: Quantities.bytes($0.element.least))
            }
            try output.write(
                Plots.columns(
                    [(style: "live", values: classes.map(\.weight))], labels: labels,
                    title: "Versions by size, in classes of powers of two"))
        }
    }

    // MARK: - Pieces

    private func section(_ title: String, legend: [(style: String, text: String)]) throws {
        try output.write("<h2>\(HTMLText.marked(title))</h2>\n")
        guard !legend.isEmpty else { return }
        let entries = legend.map {
            "<span><i class=\"\($0.style)\"></i>\(HTMLText.marked($0.text))</span>"
        }
        try output.write("<p class=\"legend\">\(entries.joined())</p>\n")
    }

    private func writeLeftOut(_ count: Int, _ noun: String) throws {
        guard count > 0 else { return }
        let rest = Quantities.counted(count, "more \(noun)")
        try output.write("<p class=\"note\">And \(rest).</p>\n")
    }

    /// Those that weigh most, in the order in which they came.
    private func largest<Row, Weight: Comparable>(
        _ rows: [Row], _ countMax: Int, by weight: (Row) -> Weight
    ) -> [Row] {
        guard rows.count > countMax else { return rows }
        return rows.indices.sorted { weight(rows[$0]) > weight(rows[$1]) }.prefix(countMax)
            .sorted().map { rows[$0] }
    }

    /// Up to the beginning of the content. The policy lets a reader's browser ask for nothing and
    /// run nothing, whatever a key or a name is.
    private static let head = """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
        style-src 'unsafe-inline'">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>Tidemark store</title>
        <style>
        :root { --ink: #1b1f24; --soft: #59636e; --paper: #ffffff; --line: #d0d7de;
          --live: #1f6feb; --dead: #d1242f; --keys: #9a6700; }
        @media (prefers-color-scheme: dark) {
          :root { --ink: #e6edf3; --soft: #9198a1; --paper: #0d1117; --line: #3d444d;
            --live: #58a6ff; --dead: #ff7b72; --keys: #d29922; }
        }
        body { margin: 0; background: var(--paper); color: var(--ink);
          font: 15px/1.5 system-ui, sans-serif; }
        main { max-width: 780px; margin: 0 auto; padding: 16px; }
        h2 { margin: 32px 0 8px; border-bottom: 1px solid var(--line); }
        dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; }
        dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
        svg { width: 100%; height: auto; }
        svg text { font: 11px ui-monospace, monospace; fill: var(--ink); }
        .axis { stroke: var(--line); fill: none; }
        rect.live { fill: var(--live); } rect.dead { fill: var(--dead); }
        rect.keys { fill: var(--keys); }
        .note { color: var(--soft); font-size: 13px; }
        .legend span { margin-right: 16px; }
        .legend i { display: inline-block; width: 12px; height: 12px; margin-right: 6px; }
        .legend .live { background: var(--live); } .legend .dead { background: var(--dead); }
        .legend .keys { background: var(--keys); }
        @media print { main { max-width: none; } }
        </style>
        </head>
        <body>
        <main>

        """
}
