import ArgumentParser
import Tidemark
import TidemarkSync

struct ConflictsReplayCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Tell what another policy would have made of the conflicts in the journal.",
        discussion: """
            Nothing is written. Each conflict is decided by what met then, with the ancestor that \
            was known then. NOW is "current" where the record still is what the conflict came to.
            """)

    enum Policy: String, ExpressibleByArgument, CaseIterable {
        case lww
        case local
        case remote
        case auto
        case mergeable

        var policy: MergePolicy {
            switch self {
            case .lww: .lastWriterWins
            case .local: .keepLocal
            case .remote: .keepRemote
            case .auto: .autoMerge(AutoMerge())
            case .mergeable: .mergeable
            }
        }
    }

    @OptionGroup var target: StoreArgument
    @Argument(help: "The dataset's name.") var dataset: String
    @Option(
        help: ArgumentHelp(
            "The policy to try: the later version, this side's, the other side's, JSON merged "
                + "member by member, or the laws of mergeable values."))
    var policy: Policy
    @Option(help: ArgumentHelp("Only conflicts of this key.", valueName: "key")) var key: String?
    @Flag(help: "--key is given in base64.") var base64Key = false
    @Flag(help: "Only those that would come to something else.") var different = false
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let wanted = try key.map { try keyBytes($0, isBase64: base64Key) }
        let store = try target.openForReading()
        let replayed = try await target.dataset(dataset, in: store).replayConflicts(
            with: policy.policy, of: wanted)
        try store.close()
        let table = TableWriter(
            [
                Column("SETTLED"),
                Column("CAME TO"),
                Column("WOULD BE"),
                Column("NOW"),
                Column("KEY", flexibleDownTo: 8),
                Column("VALUE", flexibleDownTo: 8),
            ], output: output)
        for conflict in replayed where !different || conflict.isDifferent {
            if format.json {
                try output.write(JSONLine(conflict).line)
            } else {
                try table.add(cells(of: conflict, output.columns))
            }
        }
        try table.finish()
        try writeSummary(of: replayed, output)
    }

    private func cells(of conflict: ReplayedConflict, _ columns: Int) -> [String] {
        let settled = conflict.settled
        let time = HybridTime(milliseconds: settled.time.milliseconds, counter: 0)
        var value = ""
        if case .other(_, let bytes) = conflict.verdict {
            value = bytes.map { TerminalText.escaped($0, columnsMax: columns) } ?? "(deleted)"
        }
        return [
            time.description, settled.decision.rawValue, conflict.verdictName,
            conflict.isCurrent ? "current" : "changed",
            TerminalText.escaped(settled.key, columnsMax: columns), value,
        ]
    }

    private func writeSummary(
        of replayed: [ReplayedConflict], _ output: OutputStream
    ) throws {
        let differentCount = replayed.count { $0.isDifferent }
        if format.json {
            var line = JSONLine()
            line.add("kind", "summary")
            line.add("conflicts", replayed.count)
            line.add("different", differentCount)
            try output.write(line.line)
        } else {
            try output.writeLine(
                "\(Quantities.grouped(differentCount)) of "
                    + "\(Quantities.counted(replayed.count, "conflict")) would be different")
        }
    }
}

extension ReplayedConflict {
    fileprivate var isDifferent: Bool {
        if case .other = verdict { true } else { false }
    }

    /// `same`, `undecided`, `not kept`, or whose version it would come to.
    fileprivate var verdictName: String {
        switch verdict {
        case .same: "same"
        case .other(let decision, _): decision.rawValue
        case .undecided: "undecided"
        case .notKept: "not kept"
        }
    }
}

extension JSONLine {
    fileprivate init(_ conflict: ReplayedConflict) {
        self.init()
        add("kind", "conflict")
        add("dataset", conflict.settled.dataset)
        add("key", conflict.settled.key)
        add("settledAt", date: conflict.settled.time)
        add("policy", conflict.settled.policy.rawValue)
        add("decision", conflict.settled.decision.rawValue)
        switch conflict.verdict {
        case .same: add("verdict", "same")
        case .other(let decision, let value):
            add("verdict", "different")
            add("newDecision", decision.rawValue)
            add("newValue", value)
        case .undecided(let reason):
            add("verdict", "undecided")
            add("reason", reason.description)
        case .notKept: add("verdict", "notKept")
        }
        add("isCurrent", conflict.isCurrent)
    }
}
