import Tidemark

extension MergeableKind {
    /// The merge of both sides; what cannot be merged is left to the last writer.
    static func settle(_ conflict: Conflict) -> (decision: MergeDecision, notes: MergeNotes) {
        var notes = MergeNotes()
        guard let local = conflict.local.value, let remote = conflict.remote.value else {
            return (conflict.keepingTheLive(&notes), notes)
        }
        do throws(MergeableError) {
            return (conflict.decision(for: try merged(local, remote)), notes)
        } catch {
            notes.obstacle = "a side cannot be merged: \(error.problem)"
            notes.noteWhole(of: conflict.byTime.earlierSide, isRemoval: false)
            return (.later, notes)
        }
    }
}

extension MergePolicy {
    /// Conflicts of a type of one's own. A deletion yields to a change; bytes that are no such
    /// value stop the exchange.
    public static func merging<Value: MergeableValue>(_ type: Value.Type) -> MergePolicy {
        .custom { conflict in
            guard let local = conflict.local.value else { return .keepRemote }
            guard let remote = conflict.remote.value else { return .keepLocal }
            return .value(try MergeableKind.merged(local, remote, as: type))
        }
    }
}
