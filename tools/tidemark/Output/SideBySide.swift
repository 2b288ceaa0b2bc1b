/// Texts beside each other, each wrapped into its own column, with a label in front of the rows.
///
///                ANCESTOR                LOCAL                   REMOTE
///     dot        5e1f00aa:1              5e1f00aa:4              77ab01cd:2
struct SideBySide {
    private static let labelColumns = 7
    private static let linesMax = 12

    private let cellColumns: Int

    /// - Parameters:
    ///   - count: of the columns beside the label: 1...
    ///   - columnsMax: of the screen.
    init(_ count: Int, columnsMax: Int) {
        cellColumns = max(1, (columnsMax - Self.labelColumns - (count - 1)) / count)
    }

    /// How much of a text is ever shown.
    var cellCharactersMax: Int { cellColumns * Self.linesMax }

    /// The lines of one row; what does not fit into a dozen lines is cut, with an ellipsis.
    ///
    /// - Parameter cells: printable texts.
    func lines(_ label: String, _ cells: [String]) -> [String] {
        let wrapped = cells.map { cell in
            TerminalText.wrapped(
                TerminalText.truncated(cell, to: cellCharactersMax), columnsMax: cellColumns)
        }
        let count = min(Self.linesMax, wrapped.map(\.count).max() ?? 0)
        return (0..<count).map { number in
            var line = padded(number == 0 ? label : "", to: Self.labelColumns)
            for (index, column) in wrapped.enumerated() {
                let text = number < column.count ? column[number] : ""
                line += (index == 0 ? "" : " ") + padded(text, to: cellColumns)
            }
            while line.last == " " { line.removeLast() }
            return line
        }
    }

    private func padded(_ text: String, to columns: Int) -> String {
        text + String(repeating: " ", count: max(0, columns - TerminalText.width(of: text)))
    }
}
