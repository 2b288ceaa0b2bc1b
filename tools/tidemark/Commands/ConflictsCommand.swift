import ArgumentParser
import Tidemark
import TidemarkSync

struct ConflictsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conflicts",
        abstract: "Look into conflicts, try another policy on them, and settle those that wait.",
        discussion: """
            A conflict is two versions of one key, neither of which had seen the other. Those \
            that a merge policy settled are in the store's journal for a while; those that no \
            policy settles wait, and nothing of their dataset is pushed until somebody settles \
            them. Without a verb it is 'list'.
            """,
        subcommands: [
            ConflictsListCommand.self, ConflictsShowCommand.self, ConflictsReplayCommand.self,
            ConflictsResolveCommand.self,
        ],
        defaultSubcommand: ConflictsListCommand.self)
}

/// A conflict that waits or was settled, as commands show it.
struct ShownConflict {
    enum State {
        case waiting(PendingConflict)
        case settled(SettledConflict)
    }

    /// One of the versions that met, or the one that both descend from.
    struct Side {
        let version: Version
        let content: SettledConflict.Content
        let expiresAt: UInt64?

        init(_ record: Record) {
            version = record.version
            content = record.value.map { .value($0) } ?? .deleted
            expiresAt = record.expiresAt
        }

        init(_ side: SettledConflict.Side) {
            version = side.version
            content = side.content
            expiresAt = side.expiresAt
        }
    }

    let state: State
    let dataset: String
    let key: [UInt8]
    /// Since when it waits, or when it was settled.
    let time: HybridTime
    /// Who has, or had, the other version; nil if that is not known any more.
    let peer: ReplicaID?
    /// nil if there was none, or if it is not kept.
    let ancestor: Side?
    /// Why there is no ancestor to be shown; empty if there is one.
    let ancestorNote: String
    let local: Side
    let remote: Side

    private static let nonexistent = "(there was none)"
    private static let notKept = "(not kept)"

    init(_ pending: PendingConflict) {
        let conflict = pending.conflict
        state = .waiting(pending)
        dataset = conflict.dataset
        key = conflict.key
        time = pending.since
        peer = pending.peer
        ancestor = conflict.ancestor.map { Side($0) }
        switch conflict.ancestry {
        case .known: ancestorNote = ""
        case .nonexistent: ancestorNote = Self.nonexistent
        case .notKept: ancestorNote = Self.notKept
        }
        local = Side(conflict.local)
        remote = Side(conflict.remote)
    }

    init(_ settled: SettledConflict) {
        state = .settled(settled)
        dataset = settled.dataset
        key = settled.key
        time = settled.time
        peer = settled.peer
        ancestor = settled.ancestor.map { Side($0) }
        switch settled.ancestry {
        case .known: ancestorNote = ""
        case .nonexistent: ancestorNote = Self.nonexistent
        case .notKept: ancestorNote = Self.notKept
        }
        local = Side(settled.local)
        remote = Side(settled.remote)
    }

    var isWaiting: Bool {
        if case .waiting = state { true } else { false }
    }
}

extension SettledConflict.Content {
    /// What it held, as printable text of at most so many columns.
    func text(columnsMax: Int) -> String {
        switch self {
        case .value(let bytes):
            bytes.isEmpty ? "\"\"" : TerminalText.escaped(bytes, columnsMax: columnsMax)
        case .deleted: "(deleted)"
        case .leftOut(let byteCount):
            "(\(Quantities.counted(byteCount, "byte")), not in the journal)"
        }
    }

    var sizeText: String {
        switch self {
        case .value(let bytes): Quantities.counted(bytes.count, "byte")
        case .deleted: ""
        case .leftOut(let byteCount): Quantities.counted(byteCount, "byte")
        }
    }
}

extension JSONLine {
    init(_ conflict: ShownConflict) {
        self.init()
        add("state", conflict.isWaiting ? "waiting" : "settled")
        add("dataset", conflict.dataset)
        add("key", conflict.key)
        add(conflict.isWaiting ? "since" : "settledAt", date: conflict.time)
        if let peer = conflict.peer { add("peer", peer.description) }
        switch conflict.state {
        case .waiting(let pending):
            add("reason", pending.reason.description)
        case .settled(let settled):
            add("policy", settled.policy.rawValue)
            add("policyVersion", settled.policyVersion)
            add("decision", settled.decision.rawValue)
            add("write", write: settled.write)
            var outcome = JSONLine()
            outcome.add(settled.outcome)
            outcome.add(expiresAt: settled.outcomeExpiresAt)
            add("outcome", outcome)
        }
        if let ancestor = conflict.ancestor {
            add("ancestor", JSONLine(ancestor))
        } else {
            add("ancestor", nil as [UInt8]?)
        }
        add("local", JSONLine(conflict.local))
        add("remote", JSONLine(conflict.remote))
    }

    private init(_ side: ShownConflict.Side) {
        self.init()
        add(side.content)
        add(side.version)
        add(expiresAt: side.expiresAt)
    }

    private mutating func add(_ content: SettledConflict.Content) {
        add("value", content.value)
        add("isDeleted", content == .deleted)
        if case .leftOut(let byteCount) = content { add("valueBytes", byteCount) }
    }
}
