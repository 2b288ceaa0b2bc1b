import ArgumentParser
import Tidemark
import TidemarkSync

struct ConflictsShowCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show the conflicts of a key: ancestor, local and remote side by side.",
        discussion: """
            ANCESTOR is the newest version that both sides descend from, LOCAL this store's, \
            REMOTE the peer's. Conflicts that wait come first, then those in the journal, the \
            newest first.
            """)

    private static let labelColumns = 9

    @OptionGroup var target: StoreArgument
    @Argument(help: "The dataset's name.") var dataset: String
    @OptionGroup var key: KeyArgument
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let keyBytes = try key.bytes()
        let store = try target.openForReading()
        let dataset = try target.dataset(dataset, in: store)
        let conflicts =
            try dataset.pendingConflicts(of: keyBytes).map { ShownConflict($0) }
            + dataset.settledConflicts(of: keyBytes).map { ShownConflict($0) }
        try store.close()
        guard !conflicts.isEmpty else {
            throw CommandFailure(
                .negative,
                "no conflict of \"\(key.key)\" in dataset \"\(dataset.name)\" is known; see "
                    + "'tidemark conflicts'")
        }
        for (index, conflict) in conflicts.enumerated() {
            if format.json {
                try output.write(JSONLine(conflict).line)
            } else {
                try output.write(index == 0 ? "" : "\n")
                try write(conflict, output)
            }
        }
    }

    private func write(_ conflict: ShownConflict, _ output: OutputStream) throws {
        let room = output.columns - Self.labelColumns
        try write("dataset", TerminalText.escaped(conflict.dataset, columnsMax: room), output)
        try write("key", TerminalText.escaped(conflict.key, columnsMax: room), output)
        if let peer = conflict.peer { try write("peer", "\(peer)", output) }
        switch conflict.state {
        case .waiting(let pending):
            try write("waits", "since \(conflict.time)", output)
            let reason = TerminalText.escaped(pending.reason.description)
            try write("because", reason, output)
        case .settled(let settled):
            try write("settled", "at \(conflict.time)", output)
            let version = settled.policyVersion == 0 ? "" : ", version \(settled.policyVersion)"
            try write("by", settled.policy.rawValue + version, output)
        }
        try output.writeLine()
        try writeSides(of: conflict, output)
        if case .settled(let settled) = conflict.state {
            try output.writeLine()
            try write("came to", "\(settled.decision.rawValue), write \(settled.write)", output)
            try write("value", settled.outcome.text(columnsMax: room * 4), output)
        }
    }

    private func writeSides(of conflict: ShownConflict, _ output: OutputStream) throws {
        let layout = SideBySide(3, columnsMax: output.columns)
        let sides = [conflict.ancestor, conflict.local, conflict.remote]
        func row(_ label: String, _ text: (ShownConflict.Side) -> String) throws {
            let cells = sides.map { $0.map(text) ?? "" }
            guard cells.contains(where: { !$0.isEmpty }) else { return }
            for line in layout.lines(label, cells) { try output.writeLine(line) }
        }
        for line in layout.lines("", ["ANCESTOR", "LOCAL", "REMOTE"]) {
            try output.writeLine(line)
        }
        if !conflict.ancestorNote.isEmpty {
            for line in layout.lines("", [conflict.ancestorNote, "", ""]) {
                try output.writeLine(line)
            }
        }
        try row("dot") { "\($0.version.dot)" }
        // Without the Z, so that it fits into a third of 80 columns.
        try row("time") { String("\($0.version.time)".filter { $0 != "Z" }) }
        try row("author") {
            TerminalText.escaped($0.version.author, columnsMax: layout.cellCharactersMax)
        }
        try row("until") { side in
            side.expiresAt.map { "\(HybridTime(milliseconds: $0, counter: 0))" } ?? ""
        }
        try row("size") { $0.content.sizeText }
        try row("value") { $0.content.text(columnsMax: layout.cellCharactersMax) }
    }

    private func write(_ label: String, _ text: String, _ output: OutputStream) throws {
        var label = label
        let room = output.columns - Self.labelColumns
        for line in TerminalText.wrapped(text, columnsMax: room) {
            let padding = String(repeating: " ", count: Self.labelColumns - label.count)
            try output.writeLine(label + padding + line)
            label = ""
        }
    }
}
