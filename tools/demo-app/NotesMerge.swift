import Tidemark
import TidemarkSync

/// Merges two lists of notes, one note on each line, as both writers meant it.
///
/// The ancestor tells an added note from one that the other side has removed: a note stays if
/// nobody removed it, and comes in if either side added it. The outcome is the same whichever side
/// is the local one.
enum NotesMerge {
    static func settle(_ conflict: Conflict) -> Resolution {
        let ancestor = lines(conflict.ancestor)
        let local = lines(conflict.local)
        let remote = lines(conflict.remote)
        let kept = ancestor.filter { local.contains($0) && remote.contains($0) }
        let added = Set(local + remote).subtracting(ancestor).sorted()
        return .value(Array((kept + added).joined(separator: "\n").utf8))
    }

    private static func lines(_ record: Record?) -> [String] {
        (record?.valueText ?? "").split(separator: "\n").map(String.init)
    }
}
