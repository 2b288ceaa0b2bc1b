import Tidemark

/// Prints differences as they are found, and at the end how many there were.
final class DifferenceListing {
    private let output: OutputStream
    private let isJSON: Bool
    private let showsDataset: Bool
    private let table: TableWriter
    private var counts: [RecordDifference.Kind: Int] = [:]
    /// Keys that may differ, of which nobody can tell any more.
    var uncertainCount = 0

    /// - Parameters:
    ///   - titles: of the two states.
    ///   - showsDataset: whether keys stand behind their dataset's name.
    init(
        _ output: OutputStream, isJSON: Bool, titles: (String, String), showsDataset: Bool
    ) {
        self.output = output
        self.isJSON = isJSON
        self.showsDataset = showsDataset
        table = TableWriter(
            [
                Column(" "),
                Column(showsDataset ? "DATASET/KEY" : "KEY", flexibleDownTo: 12),
                Column(titles.0, flexibleDownTo: 12),
                Column(titles.1, flexibleDownTo: 12),
                Column("IS"),
            ], output: output)
    }

    var count: Int { counts.values.reduce(0, +) }

    func add(_ difference: RecordDifference) throws {
        counts[difference.kind, default: 0] += 1
        if isJSON {
            try output.write(JSONLine(difference).line)
        } else {
            let columns = output.columns
            let key = TerminalText.escaped(difference.key, columnsMax: columns)
            let dataset = TerminalText.escaped(difference.dataset, columnsMax: 40)
            let relation = difference.relation?.rawValue ?? ""
            try table.add([
                difference.kind.mark,
                showsDataset ? "\(dataset)/\(key)" : key,
                text(of: difference.before, columns),
                text(of: difference.after, columns),
                difference.isCertain ? relation : relation.isEmpty ? "?" : "\(relation)?",
            ])
        }
    }

    private func text(of record: Record?, _ columns: Int) -> String {
        guard let value = record?.value else { return "" }
        // An empty value is not a missing one.
        return value.isEmpty ? "\"\"" : TerminalText.escaped(value, columnsMax: columns)
    }

    func finish() throws {
        try table.finish()
        if isJSON {
            var line = JSONLine()
            line.add("kind", "summary")
            for kind in RecordDifference.Kind.allCases {
                line.add(kind.rawValue, counts[kind] ?? 0)
            }
            line.add("uncertain", uncertainCount)
            return try output.write(line.line)
        }
        let parts = RecordDifference.Kind.allCases.compactMap { kind in
            counts[kind].map { "\(Quantities.grouped($0)) \(kind.rawValue)" }
        }
        try output.writeLine(parts.isEmpty ? "no difference" : parts.joined(separator: ", "))
        if uncertainCount > 0 {
            try output.writeLine(
                "\(Quantities.counted(uncertainCount, "more key")) may differ: versions of that "
                    + "time are not kept")
        }
    }
}

extension JSONLine {
    fileprivate init(_ difference: RecordDifference) {
        self.init()
        add("kind", difference.kind.rawValue)
        add("dataset", difference.dataset)
        add("key", difference.key)
        if let before = difference.before { add("before", JSONLine(before)) }
        if let after = difference.after { add("after", JSONLine(after)) }
        if let relation = difference.relation { add("relation", relation.rawValue) }
        add("isCertain", difference.isCertain)
    }
}
