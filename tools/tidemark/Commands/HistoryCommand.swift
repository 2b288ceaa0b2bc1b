import ArgumentParser
import Tidemark
import TidemarkSync

struct HistoryCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Show the retained versions of a key, who won over whom, and why.",
        discussion: """
            The newest first, each with the write's name, its date and its author, and with the \
            value under it. Lines lead from each version to those that it descends from: a version \
            descends from another if its writer had seen it. Two lines that never meet are two \
            writers who had not seen each other; what became of that is told behind the graph.

            --full shows everything of each version, with its version vector as SEEN.

            A version may be stored more than once, as when it was joined with what it had won \
            over. It is shown once; --all-copies tells the log or segment that each copy lies in.
            """)

    @OptionGroup var target: StoreArgument
    @Argument(help: "The dataset's name.") var dataset: String
    @OptionGroup var key: KeyArgument
    @Flag(help: "All that is known of each version.") var full = false
    @Flag(help: "Where each copy of a version lies, too.") var allCopies = false
    @Flag(help: "The graph in the language of Graphviz.") var dot = false
    @Flag(help: "The graph as a drawing that stands by itself.") var svg = false
    @Option(help: ArgumentHelp("The newest versions, so many at most.", valueName: "n"))
    var limit = 100
    @OptionGroup var format: OutputOptions

    /// So many versions are compared each with each in no time.
    private static let limitMax = 500

    func validate() throws {
        guard (1...Self.limitMax).contains(limit) else {
            throw ValidationError("--limit is \(limit), and must be 1...\(Self.limitMax)")
        }
        guard [full, dot, svg, format.json].filter({ $0 }).count <= 1 else {
            throw ValidationError("--full, --dot, --svg and --json exclude each other")
        }
    }

    mutating func run(_ output: OutputStream) async throws {
        let keyBytes = try key.bytes()
        let store = try target.openForReading()
        let dataset = try target.dataset(self.dataset, in: store)
        let versions = try dataset.history(of: keyBytes, limit: limit)
        guard !versions.isEmpty else {
            throw CommandFailure(
                .negative,
                "no version of \"\(key.key)\" in dataset \"\(self.dataset)\"; "
                    + "see 'tidemark scan'")
        }
        let graph = HistoryGraph(
            versions, asWritten: try HistoryVerdicts.asWritten(of: keyBytes, in: dataset))
        let verdicts = try HistoryVerdicts(graph, of: keyBytes, in: dataset)
        let copies = StoredCopies(allCopies ? try dataset.keptVersions(of: keyBytes) : [])
        try store.close()
        let title = "\(self.dataset)/\(TerminalText.escaped(keyBytes, columnsMax: 60))"
        if format.json {
            for number in graph.nodes.indices {
                try output.write(JSONLine(graph, number, verdicts, copies).line)
            }
        } else if dot || svg {
            for line in dot ? graph.dot(title: title) : graph.svg(title: title) {
                try output.writeLine(line)
            }
        } else if full {
            try HistoryListing(output, copies).writeAll(versions)
        } else {
            try HistoryListing(output, copies).write(graph)
            try HistoryListing(output, copies).write(verdicts)
        }
    }
}

/// Where the copies of versions lie, if that is asked for.
struct StoredCopies {
    private let versions: [KeptVersion]

    init(_ versions: [KeptVersion]) {
        self.versions = versions
    }

    /// Of a version, the newest copy first. Empty if nobody asked.
    func places(of record: Record) -> [String] {
        versions.filter {
            $0.version.dot == record.version.dot
                && $0.isDeletion == (record.value == nil && !record.isDropped)
        }.map(\.place)
    }
}

/// Versions as people read them.
struct HistoryListing {
    private static let labelColumns = 8
    private static let valueLinesMax = 4

    private let output: OutputStream
    private let copies: StoredCopies

    init(_ output: OutputStream, _ copies: StoredCopies) {
        self.output = output
        self.copies = copies
    }

    // MARK: - As a graph

    func write(_ graph: HistoryGraph) throws {
        for row in graph.rows {
            let record = graph.nodes[row.node].record
            let margins = graph.margins(of: row)
            if let above = margins.above { try write(above, "") }
            let lines = lines(record)
            try write(margins.node, lines[0])
            for (number, line) in lines.dropFirst().enumerated() {
                try write(number == 0 ? margins.below ?? margins.rest : margins.rest, line)
            }
        }
    }

    private func write(_ margin: String, _ text: String) throws {
        var line = TerminalText.truncated("\(margin) \(text)", to: output.columns)
        while line.last == " " { line.removeLast() }
        let graph = line.prefix(margin.count)
        try output.writeLine(
            output.colored(String(graph), .accent) + line.dropFirst(graph.count))
    }

    private func lines(_ record: Record) -> [String] {
        let version = record.version
        let author = TerminalText.escaped(version.author, columnsMax: 20)
        let unsent = record.isDirty ? "  (no peer has it yet)" : ""
        var lines = [
            "\(version.dot)  \(version.time)" + (author.isEmpty ? "" : "  \(author)") + unsent
        ]
        if record.isDropped {
            lines.append("(let go here: outside of the part that is kept)")
        } else if let value = record.value {
            let size = value.count > 60 ? ", \(Quantities.counted(value.count, "byte"))" : ""
            lines.append(TerminalText.escaped(value, columnsMax: 60) + size)
        } else {
            lines.append("(deleted)")
        }
        if let expiresAt = record.expiresAt {
            lines.append("expires \(HybridTime(milliseconds: expiresAt, counter: 0))")
        }
        for place in copies.places(of: record) { lines.append("in \(place)") }
        return lines
    }

    /// What became of versions whose writers had not seen each other.
    func write(_ verdicts: HistoryVerdicts) throws {
        guard !verdicts.texts.isEmpty else { return }
        try output.writeLine()
        for text in verdicts.texts {
            for (number, line) in Self.words(text, columnsMax: output.columns - 2).enumerated() {
                try output.writeLine((number == 0 ? "" : "  ") + line)
            }
        }
    }

    private static func words(_ text: String, columnsMax: Int) -> [String] {
        var lines: [String] = [""]
        for word in text.split(separator: " ").map(String.init) {
            let last = lines[lines.count - 1]
            let joined = last.isEmpty ? word : "\(last) \(word)"
            if TerminalText.width(of: joined) > columnsMax, !last.isEmpty {
                lines.append(TerminalText.truncated(word, to: columnsMax))
            } else {
                lines[lines.count - 1] = TerminalText.truncated(joined, to: columnsMax)
            }
        }
        return lines
    }

    // MARK: - In full

    func writeAll(_ versions: [Record]) throws {
        for (index, record) in versions.enumerated() {
            try output.write(index == 0 ? "" : "\n")
            try writeAll(of: record)
        }
    }

    private func writeAll(of record: Record) throws {
        let room = output.columns - Self.labelColumns
        let version = record.version
        try writeField("dot", "\(version.dot)")
        try writeField("time", "\(version.time)")
        if !version.author.isEmpty {
            try writeField("author", TerminalText.escaped(version.author, columnsMax: room))
        }
        try writeField("seen", TerminalText.truncated("\(version.vector)", to: room))
        let note = record.isDirty ? ", no peer has it yet" : ""
        try writeField("count", "\(record.syncCount)\(note)")
        if let expiresAt = record.expiresAt {
            try writeField("expires", "\(HybridTime(milliseconds: expiresAt, counter: 0))")
        }
        for place in copies.places(of: record) { try writeField("in", place) }
        guard let value = record.value else { return try writeField("value", "(deleted)") }
        try writeField("size", Quantities.counted(value.count, "byte"))
        // A few lines of it: where two versions differ is often not at the start.
        let text = TerminalText.escaped(value, columnsMax: room * Self.valueLinesMax)
        var label = "value"
        for line in TerminalText.wrapped(text, columnsMax: room) {
            try writeField(label, line)
            label = ""
        }
    }

    private func writeField(_ label: String, _ text: String) throws {
        let padding = String(repeating: " ", count: Self.labelColumns - label.count)
        try output.writeLine(label + padding + text)
    }
}

extension JSONLine {
    /// A version with what it descends from, and which others it won over.
    init(
        _ graph: HistoryGraph, _ number: Int, _ verdicts: HistoryVerdicts, _ copies: StoredCopies
    ) {
        let node = graph.nodes[number]
        self.init(node.record)
        add("parents", Self.dots(node.parents.map { graph.nodes[$0].record.version.dot }))
        let losers = graph.victories.filter { $0.winner == number }
        add("wonOver", Self.dots(losers.map { graph.nodes[$0.loser].record.version.dot }))
        if let policy = verdicts.policies[node.record.version.dot] { add("policy", policy) }
        let places = copies.places(of: node.record)
        if !places.isEmpty { add("files", texts: places) }
    }

    /// By the replicas of the writes.
    private static func dots(_ dots: [Dot]) -> JSONLine {
        var line = JSONLine()
        for dot in dots { line.add(dot.replica.description, dot.counter) }
        return line
    }
}
