import ArgumentParser
import Tidemark
import TidemarkSync

struct ConflictsListCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List conflicts: those that wait, then those in the journal, the newest first.",
        discussion: """
            WHEN is since when a conflict waits, or when it was settled; BY is the policy that \
            settled it, and CAME TO whose version it came to. The journal has what was merged; \
            what the last writer won is in it only where the application asks for that.
            """)

    @OptionGroup var target: StoreArgument
    @OptionGroup var selection: DatasetSelection
    @Flag(help: "Only those that wait.") var waiting = false
    @Flag(help: "Only those that were settled.") var settled = false
    @OptionGroup var limit: LimitOption
    @OptionGroup var format: OutputOptions

    func validate() throws {
        if waiting, settled {
            throw ValidationError("--waiting and --settled exclude each other; leave one out")
        }
    }

    mutating func run(_ output: OutputStream) async throws {
        let store = try target.openForReading()
        let table = TableWriter(
            [
                Column("STATE"),
                Column("WHEN"),
                Column("BY"),
                Column("CAME TO"),
                Column(selection.isOne ? "KEY" : "DATASET/KEY", flexibleDownTo: 8),
            ], output: output)
        var count = 0
        func show(_ find: (Dataset, _ limit: Int) throws -> [ShownConflict]) throws {
            try selection.forEach(of: target, in: store) { dataset in
                let left = limit.limit.map { max(0, $0 - count) } ?? .max
                for conflict in try find(dataset, left) {
                    count += 1
                    if format.json {
                        try output.write(JSONLine(conflict).line)
                    } else {
                        try table.add(cells(of: conflict, output.columns))
                    }
                }
            }
        }
        if !settled {
            try show { dataset, limit in
                try dataset.pendingConflicts(limit: limit).map { ShownConflict($0) }
            }
        }
        if !waiting {
            try show { dataset, limit in
                try dataset.settledConflicts(limit: limit).map { ShownConflict($0) }
            }
        }
        if !format.json {
            try table.finish(
                empty: wordsForNone,
                next: "'tidemark conflicts show' explains one"
                    + (settled ? "" : ", 'resolve' settles one that waits"))
        }
        try store.close()
    }

    private var wordsForNone: String {
        if waiting { return "no conflict waits" }
        if settled { return "the journal has no conflict" }
        return "no conflict waits, and the journal has none"
    }

    private func cells(of conflict: ShownConflict, _ columns: Int) -> [String] {
        let time = HybridTime(milliseconds: conflict.time.milliseconds, counter: 0)
        let key = TerminalText.escaped(conflict.key, columnsMax: columns)
        let dataset = TerminalText.escaped(conflict.dataset, columnsMax: 40)
        var (policy, decision) = ("", "")
        if case .settled(let settled) = conflict.state {
            (policy, decision) = (settled.policy.rawValue, settled.decision.rawValue)
        }
        return [
            conflict.isWaiting ? "waiting" : "settled", time.description, policy, decision,
            selection.isOne ? key : "\(dataset)/\(key)",
        ]
    }
}
