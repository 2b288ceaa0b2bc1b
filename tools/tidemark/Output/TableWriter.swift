/// A column of a table.
struct Column {
    enum Alignment {
        case left
        case right
    }

    let title: String
    let alignment: Alignment
    /// A flexible column gives way, down to this many columns of the screen, so that the row fits;
    /// nil for one that is shown whole as long as there is any other way.
    let flexibleDownTo: Int?

    init(_ title: String, _ alignment: Alignment = .left, flexibleDownTo: Int? = nil) {
        self.title = title
        self.alignment = alignment
        self.flexibleDownTo = flexibleDownTo
    }
}

/// Writes rows as aligned columns that never exceed the given width.
///
/// The widths come from the first rows alone, so that a table of a million rows starts at once and
/// takes no memory. A later row with a longer number takes room from its flexible columns.
final class TableWriter {
    private static let sampleRowsMax = 200
    private let columns: [Column]
    private let columnsMax: Int
    private let gap: Int
    private let output: OutputStream
    private var sample: [[String]] = []
    private var widths: [Int]?
    private var rowCount = 0

    /// - Parameters:
    ///   - columnsMax: the screen's columns; the output's own width if nil.
    ///   - gap: blanks between two columns.
    init(_ columns: [Column], output: OutputStream, columnsMax: Int? = nil, gap: Int = 2) {
        self.columns = columns
        self.output = output
        self.gap = gap
        self.columnsMax = columnsMax ?? output.columns
    }

    /// Adds a row; its cells are escaped already.
    func add(_ cells: [String]) throws {
        rowCount += 1
        if let widths {
            try write(cells, widths)
        } else {
            sample.append(cells)
            if sample.count == Self.sampleRowsMax {
                try finish()
            }
        }
    }

    /// Writes what is held back. A table without rows writes nothing, not even titles.
    func finish() throws {
        guard widths == nil, !sample.isEmpty else { return }
        let titles = columns.map(\.title)
        let natural = columns.indices.map { index in
            (sample.map { $0[index] } + [titles[index]]).map(TerminalText.width(of:)).max() ?? 0
        }
        let fitting = fitted(natural)
        widths = fitting
        try write(titles, fitting)
        for cells in sample {
            try write(cells, fitting)
        }
        sample = []
    }

    /// The same at the end of a list that people act on.
    ///
    /// - Parameters:
    ///   - empty: what there is none of, in place of a table without rows.
    ///   - next: the commands to go on with, behind the last row.
    func finish(empty: String, next: String) throws {
        try finish()
        try output.writeLine(rowCount == 0 ? empty : next)
    }

    /// Narrows the flexible columns, the widest first, until the row fits; then, if it must be,
    /// every column.
    private func fitted(_ natural: [Int]) -> [Int] {
        var widths = natural
        var excess = widths.reduce(0, +) + gap * (columns.count - 1) - columnsMax
        for isLastResort in [false, true] {
            while excess > 0 {
                let narrowable = columns.indices.filter { index in
                    let least = isLastResort ? 1 : columns[index].flexibleDownTo ?? .max
                    return widths[index] > least
                }
                guard let widest = narrowable.max(by: { widths[$0] < widths[$1] }) else { break }
                widths[widest] -= 1
                excess -= 1
            }
        }
        return widths
    }

    private func write(_ cells: [String], _ widths: [Int]) throws {
        var rowWidths = widths
        if columns.indices.contains(where: { needsMore(cells, widths, $0) }) {
            rowWidths = fitted(
                columns.indices.map { index in
                    needsMore(cells, widths, index)
                        ? TerminalText.width(of: cells[index]) : widths[index]
                })
        }
        var line = ""
        for (index, cell) in cells.enumerated() {
            let text = TerminalText.truncated(cell, to: rowWidths[index])
            let padding = String(
                repeating: " ", count: rowWidths[index] - TerminalText.width(of: text))
            line += index == 0 ? "" : String(repeating: " ", count: gap)
            line += columns[index].alignment == .left ? text + padding : padding + text
        }
        // No blanks at the end of a line: they wrap on narrow terminals and trouble comparisons.
        while line.last == " " {
            line.removeLast()
        }
        try output.writeLine(line)
    }

    private func needsMore(_ cells: [String], _ widths: [Int], _ index: Int) -> Bool {
        columns[index].flexibleDownTo == nil && TerminalText.width(of: cells[index]) > widths[index]
    }
}
