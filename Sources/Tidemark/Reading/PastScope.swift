// Reading as of a past moment.
//
// Versions of a key lie next to each other, newest first, so the one that was the newest then is
// the first that is not later. The answer is right as long as no merge has dropped a version that
// was visible then. A version v that another one, w, superseded can be needed only for moments
// before w; so each merge notes the greatest sync count and time of any such w (`HistoryLoss`), and
// whoever asks for an earlier moment is refused. A dataset that was deleted took all with it: the
// same holds for the moment of its deletion.

/// What a reader of the past sees of one dataset.
struct PastScope {
    let moment: Moment
    let dataset: DatasetID
    let dirtiness: Dirtiness
    /// No version after this is seen.
    let syncCountMax: UInt64
    /// No version stamped later is seen.
    let timeMax: UInt64
    /// By which records have expired; 0 if they are seen until the change that deletes them.
    let now: UInt64

    /// Before every version of a key that is seen.
    func position(of key: ByteView) -> EntryPosition {
        EntryPosition(dataset: dataset, key: key, syncCount: syncCountMax)
    }

    func shows(_ entry: Entry) -> Bool {
        guard entry.sequence <= moment.sequenceMax else { return false }
        let stamp = entry.stamp
        return stamp.syncCount <= syncCountMax && stamp.effectTime(of: entry.kind) <= timeMax
    }
}
