import Tidemark

/// The graph for other programs: Graphviz and browsers.
extension HistoryGraph {
    /// In the language of Graphviz.
    func dot(title: String) -> [String] {
        var lines = [
            "digraph history {", "  label=\(Self.quoted(title));", "  rankdir=BT;",
            "  node [shape=box, fontname=\"sans-serif\"];",
        ]
        for (number, node) in nodes.enumerated() {
            let text = Self.labels(of: node.record).map { Self.escapedForDOT($0) }
                .joined(separator: "\\l")
            lines.append("  v\(number) [label=\"\(text)\\l\"];")
        }
        for (number, node) in nodes.enumerated() {
            for parent in node.parents { lines.append("  v\(number) -> v\(parent);") }
        }
        for victory in victories {
            lines.append(
                "  v\(victory.winner) -> v\(victory.loser) "
                    + "[style=dashed, constraint=false, label=\"won over\"];")
        }
        return lines + ["}"]
    }

    private static func quoted(_ text: String) -> String { "\"\(escapedForDOT(text))\"" }

    /// Text without control characters, as ``TerminalText`` gives it, within quotes.
    private static func escapedForDOT(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    }

    /// What is said of a version in a drawing.
    private static func labels(of record: Record) -> [String] {
        let author = TerminalText.escaped(record.version.author, columnsMax: 24)
        return [
            "\(record.version.dot)" + (author.isEmpty ? "" : " \(author)"),
            "\(record.version.time)",
            record.value.map { TerminalText.escaped($0, columnsMax: 40) } ?? "(deleted)",
        ]
    }

    /// A drawing that stands by itself.
    func svg(title: String) -> [String] {
        let (laneWidth, rowHeight, margin) = (28, 64, 24)
        func x(_ lane: Int) -> Int { margin + lane * laneWidth }
        func y(_ row: Int) -> Int { margin + 40 + row * rowHeight }
        let textX = x(laneCount) + 8
        let (width, height) = (textX + 420, y(nodes.count))
        var lines = [
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(width) \(height)\" "
                + "width=\"\(width)\" height=\"\(height)\" font-family=\"sans-serif\" "
                + "font-size=\"13\">",
            "<title>\(Self.escapedForXML(title))</title>",
            "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>",
            "<text x=\"\(margin)\" y=\"\(margin)\" font-weight=\"bold\">"
                + "\(Self.escapedForXML(title))</text>",
        ]
        for (number, node) in nodes.enumerated() {
            for parent in node.parents {
                let (from, to) = (node.lane, nodes[parent].lane)
                // Along the outer of the two lanes, so that no line runs through another version.
                let bend = max(from, to)
                lines.append(
                    "<polyline fill=\"none\" stroke=\"#567\" stroke-width=\"2\" points=\""
                        + "\(x(from)),\(y(number)) \(x(bend)),\(y(number) + rowHeight / 3) "
                        + "\(x(bend)),\(y(parent) - rowHeight / 3) \(x(to)),\(y(parent))\"/>")
            }
        }
        for (number, node) in nodes.enumerated() {
            let fill = node.record.isDeleted ? "#fff" : "#2a6"
            lines.append(
                "<circle cx=\"\(x(node.lane))\" cy=\"\(y(number))\" r=\"6\" fill=\"\(fill)\" "
                    + "stroke=\"#2a6\" stroke-width=\"2\"/>")
            for (line, text) in Self.labels(of: node.record).enumerated() {
                lines.append(
                    "<text x=\"\(textX)\" y=\"\(y(number) - 10 + 17 * line)\">"
                        + "\(Self.escapedForXML(text))</text>")
            }
        }
        return lines + ["</svg>"]
    }

    static func escapedForXML(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
            .replacing(">", with: "&gt;").replacing("\"", with: "&quot;")
    }
}
