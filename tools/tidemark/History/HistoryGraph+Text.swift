/// The graph in the characters of a terminal, in the manner of `git log --graph`.
extension HistoryGraph {
    /// Lines of a node: what stands to the left of its text.
    struct Margins {
        /// Lanes that join the node's, above it; nil if none does.
        let above: String?
        /// The line with the node itself, `*`.
        let node: String
        /// Lanes that begin at the node's, under its first line of text; nil if none does.
        let below: String?
        /// Further lines of the node's text.
        let rest: String
    }

    func margins(of row: Row) -> Margins {
        let lane = nodes[row.node].lane
        var node = lanes(row.before)
        set("*", at: lane, in: &node)
        var above: [Character]?
        if !row.joined.isEmpty {
            var line = lanes(row.before)
            for joined in row.joined {
                connect(lane, joined, end: "'", in: &line)
                set(" ", at: joined, in: &node)
            }
            above = line
        }
        var below: [Character]?
        if !row.opened.isEmpty {
            var line = lanes(row.after)
            for opened in row.opened { connect(lane, opened, end: ".", in: &line) }
            below = line
        }
        return Margins(
            above: above.map { String($0) }, node: String(node), below: below.map { String($0) },
            rest: String(lanes(row.after)))
    }

    private func lanes(_ inUse: [Bool]) -> [Character] {
        (0..<laneCount).flatMap { lane -> [Character] in
            [lane < inUse.count && inUse[lane] ? "|" : " ", " "]
        }
    }

    private func set(_ mark: Character, at lane: Int, in line: inout [Character]) {
        guard 2 * lane < line.count else { return }
        line[2 * lane] = mark
    }

    /// A stroke from one lane to another, over those in between.
    private func connect(_ from: Int, _ to: Int, end: Character, in line: inout [Character]) {
        let places = 2 * min(from, to)...2 * max(from, to)
        for place in places where place < line.count {
            switch line[place] {
            case " ": line[place] = "-"
            case "|" where place != 2 * from && place != 2 * to: line[place] = "+"
            default: break
            }
        }
        set("|", at: from, in: &line)
        set(end, at: to, in: &line)
    }
}
