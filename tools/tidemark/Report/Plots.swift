import Tidemark

/// Plots as inline SVG. Colours are classes of the page's style sheet, so that they follow the
/// reader's choice of light or dark.
enum Plots {
    /// A part of a bar.
    struct Part {
        /// A class of the style sheet.
        let style: String
        let value: Double
    }

    struct Bar {
        let label: String
        let parts: [Part]
        /// Behind the bar.
        let note: String
    }

    private static let width = 720
    private static let labelWidth = 170
    private static let noteWidth = 150
    private static let barHeight = 18
    private static let plotHeight = 180
    private static let axisHeight = 34

    /// Horizontal bars, all to one scale, with their labels in front.
    static func bars(_ bars: [Bar], title: String) -> String {
        let most = bars.map { $0.parts.reduce(0) { $0 + $1.value } }.max() ?? 0
        let room = Double(width - labelWidth - noteWidth)
        var svg = opening(height: bars.count * barHeight + 4, title: title)
        for (index, bar) in bars.enumerated() {
            let top = index * barHeight
            svg += text(bar.label, x: labelWidth - 8, y: top + 13, anchor: "end")
            var left = Double(labelWidth)
            for part in bar.parts {
                let length = most > 0 ? room * part.value / most : 0
                svg += rectangle(part.style, x: left, y: Double(top + 2), length, 14)
                left += length
            }
            svg += text(bar.note, x: Int(left) + 6, y: top + 13, anchor: "start")
        }
        return svg + "</svg>\n"
    }

    /// Upright bars side by side, each a stack of the series.
    ///
    /// - Parameters:
    ///   - series: of equal lengths.
    ///   - labels: where they stand below the axis: the number of the bar, and the text.
    static func columns(
        _ series: [(style: String, values: [Double])], labels: [(index: Int, text: String)],
        title: String
    ) -> String {
        let count = series.first?.values.count ?? 0
        guard count > 0 else { return "" }
        let sums = (0..<count).map { index in series.reduce(0) { $0 + $1.values[index] } }
        let most = sums.max() ?? 0
        let step = Double(width - 60) / Double(count)
        var svg = opening(height: plotHeight + axisHeight, title: title)
        for index in 0..<count where sums[index] > 0 {
            var bottom = Double(plotHeight)
            for entry in series where entry.values[index] > 0 {
                // Something is visible of everything that is there.
                let height = max(1, Double(plotHeight - 20) * entry.values[index] / most)
                bottom -= height
                svg += rectangle(
                    entry.style, x: 50 + step * Double(index), y: bottom, max(1, step - 2), height)
            }
        }
        svg += "<path class=\"axis\" d=\"M50 \(plotHeight)H\(width - 10)\"/>"
        svg += text(Quantities.grouped(Int(min(most, 1e15))), x: 44, y: 26, anchor: "end")
        svg += text("0", x: 44, y: plotHeight, anchor: "end")
        for label in labels {
            let x = 50 + step * (Double(label.index) + 0.5)
            svg += text(label.text, x: Int(x), y: plotHeight + 18, anchor: "middle")
        }
        return svg + "</svg>\n"
    }

    /// Squares in rows and columns, the more filled the greater the share.
    static func matrix(_ matrix: VectorMatrix, title: String) -> String {
        let (cellWidth, cellHeight, left, top) = (46, 22, 110, 26)
        var svg = opening(height: top + matrix.rows.count * cellHeight + 6, title: title)
        for (column, writer) in matrix.writers.enumerated() {
            let x = left + column * cellWidth + cellWidth / 2
            svg += text(String(writer.shortDescription.prefix(6)), x: x, y: 16, anchor: "middle")
        }
        for (number, row) in matrix.rows.enumerated() {
            let y = top + number * cellHeight
            let name = row.replica.shortDescription + (row.isOwn ? " (own)" : "")
            svg += text(name, x: left - 8, y: y + 15, anchor: "end")
            for column in matrix.writers.indices {
                let share = matrix.share(row: number, writer: column)
                let x = Double(left + column * cellWidth)
                svg += rectangle(
                    "live", x: x, y: Double(y), Double(cellWidth - 2), Double(cellHeight - 2),
                    opacity: 0.15 + 0.6 * share)
                svg += text(
                    Quantities.grouped(row.counters[column]), x: Int(x) + cellWidth / 2, y: y + 15,
                    anchor: "middle")
            }
        }
        return svg + "</svg>\n"
    }

    /// Bars in rows and columns, all to one scale, with the bytes above each.
    static func crossing(_ crossing: SpaceCrossing, title: String) -> String {
        let (left, top, rowHeight, gap) = (labelWidth, 22, 32, 8)
        let step = (width - left) / max(1, crossing.columns.count)
        let scale = Double(step - gap) / Double(max(1, crossing.bytesMax))
        var svg = opening(height: top + crossing.rows.count * rowHeight + 6, title: title)
        for (column, name) in crossing.columns.enumerated() {
            let short = TerminalText.escaped(name, columnsMax: 11)
            // The whole name is shown to whoever points at it.
            svg +=
                "<text x=\"\(left + column * step)\" y=\"14\" text-anchor=\"start\">"
                + "<title>\(HTMLText.escaped(name))</title>\(HTMLText.marked(short))</text>"
        }
        for (number, row) in crossing.rows.enumerated() {
            let y = top + number * rowHeight
            let label = TerminalText.escaped(row.label, columnsMax: 22)
            svg += text(label, x: left - 8, y: y + 20, anchor: "end")
            for (column, cell) in row.cells.enumerated() where cell.all > 0 {
                let x = left + column * step
                svg += text(Quantities.bytes(cell.all), x: x, y: y + 12, anchor: "start")
                var start = Double(x)
                for (style, bytes) in [
                    ("live", cell.live), ("dead", cell.dead), ("keys", cell.unknown),
                ] where bytes > 0 {
                    // Something is visible of everything that is there.
                    let length = max(1, Double(bytes) * scale)
                    svg += rectangle(style, x: start, y: Double(y + 16), length, 10)
                    start += length
                }
            }
        }
        return svg + "</svg>\n"
    }

    // MARK: - Pieces

    private static func opening(height: Int, title: String) -> String {
        "<svg role=\"img\" viewBox=\"0 0 \(width) \(height)\">"
            + "<title>\(HTMLText.marked(title))</title>"
    }

    private static func rectangle(
        _ style: String, x: Double, y: Double, _ width: Double, _ height: Double,
        opacity: Double? = nil
    ) -> String {
        let faint = opacity.map { " fill-opacity=\"\(number($0))\"" } ?? ""
        return "<rect class=\"\(style)\" x=\"\(number(x))\" y=\"\(number(y))\" "
            + "width=\"\(number(width))\" height=\"\(number(height))\"\(faint)/>"
    }

    /// - Parameter text: escaped for a terminal already, or of our own.
    private static func text(_ text: String, x: Int, y: Int, anchor: String) -> String {
        "<text x=\"\(x)\" y=\"\(y)\" text-anchor=\"\(anchor)\">\(HTMLText.marked(text))</text>"
    }

    /// To the second place, which is finer than any screen.
    private static func number(_ value: Double) -> String {
        let hundredths = Int((min(max(value, 0), 1e9) * 100).rounded())
        let rest = hundredths % 100
        return rest == 0
            ? String(hundredths / 100)
            : "\(hundredths / 100).\(rest < 10 ? "0" : "")\(rest)"
    }
}
