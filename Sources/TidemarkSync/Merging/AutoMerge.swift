import Tidemark

/// How two JSON documents become one.
///
/// The outcome depends on the two versions and their ancestor alone, not on who asks: the sides
/// are told apart by which one is earlier by hybrid time. So two replicas that settle the same
/// conflict apart come to the same bytes, and these are no new conflict.
///
/// ```swift
/// let options = SyncOptions(policy: .autoMerge(AutoMerge(sets: [["tags"]])))
/// ```
///
/// What neither set of rules can merge (a value that is not JSON, or beyond ``JSONLimits``) is
/// left to the last writer, and the ``MergeReport`` says why. A deletion yields to a change.
/// The article <doc:ConflictHandling> has the rules with examples.
public struct AutoMerge: Hashable, Sendable {
    /// Which rules decide.
    public enum Rules: Hashable, Sendable {
        /// Each side's changes since the ancestor. What only one side changed is taken, whatever
        /// it is; of lists, what each side added and removed. Where both changed a scalar the
        /// later stays, and the other is reported. Without an ancestor all counts as added.
        case threeWay
        /// AWS AppSync's: no ancestor; scalars keep the server's, lists append, sets unite, maps
        /// recurse, what the server has not is taken. Elements that both have are doubled.
        case appSync(server: Server)
    }

    /// Which side has the say under AppSync's rules.
    public enum Server: Hashable, Sendable {
        /// The version written first, as in AppSync the one that arrived first. Everywhere the
        /// same.
        case earlier
        /// The version written last. Everywhere the same.
        case later
        /// The other side of the exchange: for a hub that never asks itself. Replicas that ask
        /// each other would each take the other for the server, and settle apart differently.
        case remote
    }

    public var rules: Rules
    /// Lists that stand for sets: an element that is there is not added again.
    public var sets: Set<JSONPath>

    public init(rules: Rules = .threeWay, sets: Set<JSONPath> = []) {
        self.rules = rules
        self.sets = sets
    }
}

extension AutoMerge {
    /// What these rules make of a conflict: for a ``MergePolicy/custom(_:)`` that decides only
    /// some of it by itself.
    ///
    /// What the rules lose is not reported then; the handler has both sides.
    public func resolution(of conflict: Conflict) -> Resolution {
        switch settle(conflict).decision {
        case .later: conflict.byTime.earlierSide == .local ? .keepRemote : .keepLocal
        case .keep(.local): .keepLocal
        case .keep(.remote): .keepRemote
        case .value(let value): .value(value)
        case .delete: .delete
        }
    }

    /// - Returns: the outcome, and what was lost by it.
    func settle(_ conflict: Conflict) -> (decision: MergeDecision, notes: MergeNotes) {
        var notes = MergeNotes()
        let sides = conflict.byTime
        guard let earlier = sides.earlier.value, let later = sides.later.value else {
            return (settleDeletion(conflict, &notes), notes)
        }
        do throws(JSONError) {
            let documents = (
                try JSONValue(parsing: earlier), try JSONValue(parsing: later)
            )
            // What the ancestor was is of use only if it was JSON.
            let ancestor = conflict.ancestor?.value.flatMap { try? JSONValue(parsing: $0) }
            var merge = JSONMerge(sets: sets, earlierSide: sides.earlierSide, notes: notes)
            let merged: JSONValue
            switch rules {
            case .threeWay:
                merged = merge.merge(ancestor, documents.0, documents.1) ?? documents.1
            case .appSync(let server):
                let isEarlierServer =
                    switch server {
                    case .earlier: true
                    case .later: false
                    case .remote: sides.earlierSide == .remote
                    }
                merged = merge.appSync(documents, isEarlierServer: isEarlierServer)
            }
            notes = merge.notes
            // What a side has written as it is, blanks and all, if it says the same.
            let value =
                merged == documents.1 ? later : merged == documents.0 ? earlier : merged.encoded
            return (conflict.decision(for: value), notes)
        } catch {
            notes.obstacle = "a side is not JSON that can be merged: \(error)"
            notes.noteWhole(of: sides.earlierSide, isRemoval: false)
            return (.later, notes)
        }
    }

    /// One side is deleted: a deletion yields to a change, not to what is still the ancestor.
    private func settleDeletion(
        _ conflict: Conflict, _ notes: inout MergeNotes
    ) -> MergeDecision {
        guard rules == .threeWay, let kept = conflict.local.value ?? conflict.remote.value,
            let ancestor = conflict.ancestor?.value, Self.areEqual(ancestor, kept)
        else { return conflict.keepingTheLive(&notes) }
        return conflict.byTime.later.isDeleted ? .later : .delete
    }

    private static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left != right else { return true }
        guard let left = try? JSONValue(parsing: left) else { return false }
        return left == (try? JSONValue(parsing: right))
    }
}

extension Conflict {
    /// The sides in the order of last writer wins, which is the same on every replica.
    var byTime: (earlier: Record, later: Record, earlierSide: MergeReport.Side) {
        remote.version.isLater(than: local.version)
            ? (local, remote, .local) : (remote, local, .remote)
    }

    /// The later version need not be written again if it is what a merge comes to.
    func decision(for merged: [UInt8]) -> MergeDecision {
        let later = byTime.later
        return later.value == merged && later.expiresAt == mergedExpiry ? .later : .value(merged)
    }

    /// What was merged of two records expires when both have, and never if one never does.
    var mergedExpiry: UInt64? {
        guard let ours = local.expiresAt, let theirs = remote.expiresAt else { return nil }
        return max(ours, theirs)
    }

    /// For merges in which a deletion yields: the side that is not deleted.
    func keepingTheLive(_ notes: inout MergeNotes) -> MergeDecision {
        let sides = byTime
        guard local.isDeleted != remote.isDeleted else { return .later }
        notes.noteWhole(of: local.isDeleted ? .local : .remote, isRemoval: true)
        return sides.earlier.isDeleted ? .later : .keep(sides.earlierSide)
    }
}
