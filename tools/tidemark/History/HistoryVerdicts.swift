import Tidemark
import TidemarkSync

/// Who won over whom among the versions of a key, and why: from the journal of settled conflicts
/// where that has it, else by what the versions themselves tell.
struct HistoryVerdicts {
    /// A sentence each, the newest first.
    private(set) var texts: [String] = []
    /// By what policy a write came about, where the journal says so.
    private(set) var policies: [Dot: String] = [:]

    /// Of the winners of settled conflicts, the versions that their writers made.
    static func asWritten(of key: [UInt8], in dataset: Dataset) throws -> [Dot: Version] {
        var versions: [Dot: Version] = [:]
        for conflict in try dataset.settledConflicts(of: key) {
            for side in [conflict.local.version, conflict.remote.version]
            where side.dot == conflict.write {
                // Of several conflicts that it won, what had seen least is what was written.
                let known = versions[side.dot]
                if known?.vector.covers(side.vector) ?? true { versions[side.dot] = side }
            }
        }
        return versions
    }

    init(_ graph: HistoryGraph, of key: [UInt8], in dataset: Dataset) throws {
        for waiting in try dataset.pendingConflicts(of: key) {
            let remote = waiting.conflict.remote.version
            texts.append(
                "\(remote.dot) of \(waiting.peer.shortDescription) waits beside this: "
                    + TerminalText.oneLine("\(waiting.reason)") + ".")
        }
        for held in try dataset.quarantined() where held.record.key == key {
            texts.append(
                "\(held.record.version.dot) is held: it is dated \(held.record.version.time), "
                    + "ahead of every clock.")
        }
        let settled = try dataset.settledConflicts(of: key)
        for conflict in settled { policies[conflict.write] = Self.name(of: conflict.policy) }
        let told = Set(settled.map { Set([$0.local.version.dot, $0.remote.version.dot]) })
        texts += settled.map { Self.text($0) }
        for victory in graph.victories {
            let winner = graph.nodes[victory.winner].record.version
            let loser = graph.nodes[victory.loser].record.version
            guard !told.contains([winner.dot, loser.dot]) else { continue }
            texts.append(Self.text(winner, over: loser))
        }
    }

    private static func text(_ conflict: SettledConflict) -> String {
        let (local, remote) = (conflict.local.version, conflict.remote.version)
        let sides: String =
            switch conflict.decision {
            case .local: "\(local.dot) won over \(remote.dot)"
            case .remote: "\(remote.dot) won over \(local.dot)"
            case .merged: "\(local.dot) and \(remote.dot) were merged into \(conflict.write)"
            case .deleted: "\(local.dot) and \(remote.dot) were deleted by \(conflict.write)"
            }
        let reason =
            conflict.policy == .lastWriterWins ? ", " + Self.lateness(local, remote) : ""
        return "\(sides): neither writer had seen the other; settled "
            + "by \(name(of: conflict.policy))\(reason), at \(conflict.time)."
    }

    private static func text(_ winner: Version, over loser: Version) -> String {
        let reason =
            winner.isLater(than: loser)
            ? "it is the later one, \(lateness(winner, loser))"
            : "it came later to this store, though it is dated before the other"
        return "\(winner.dot) took the place of \(loser.dot), which its writer had not seen: "
            + "\(reason); the journal says nothing of it."
    }

    /// `by 4:00`
    private static func lateness(_ one: Version, _ other: Version) -> String {
        let (early, late) = (min(one.time, other.time), max(one.time, other.time))
        let milliseconds = late.milliseconds - early.milliseconds
        guard milliseconds >= 1_000 else { return "by \(milliseconds) ms" }
        return "by \(Quantities.clock(seconds: Int(clamping: milliseconds / 1_000)))"
    }

    private static func name(of policy: SettledConflict.Policy) -> String {
        switch policy {
        case .lastWriterWins: "last writer wins"
        case .keepLocal: "keeping this side"
        case .keepRemote: "keeping the other side"
        case .autoMerge: "the merge of documents"
        case .mergeable: "the merge of mergeable values"
        case .custom: "the application's policy"
        case .application: "the application"
        case .replay: "a replay"
        }
    }
}
