/// A moment to read a dataset as of: a place in its own order of change, or a time.
///
/// What the two mean, and how far back they reach, says the article <doc:History>.
public enum PastMoment: Hashable, Sendable {
    /// When that change was the dataset's last one, in the order of change of this replica: the
    /// exact state that could be read here then. A record that expires is there until the change
    /// that deleted it.
    case syncCount(SyncCount)
    /// For each key the last version that is stamped with this time or an earlier one, by the
    /// clock of its writer. Of a dataset that is written here alone that is the exact state of that
    /// time; a version from elsewhere counts from when it was written, not from when it came.
    case time(HybridTime)

    /// The last moment of a millisecond, counted since 1970-01-01 UTC.
    public static func milliseconds(_ milliseconds: UInt64) -> PastMoment {
        .time(HybridTime(endOfMillisecond: milliseconds))
    }
}

/// From when on, both included, a dataset can be read as of a past moment.
public struct HistoryStart: Hashable, Sendable {
    public let syncCount: SyncCount
    public let time: HybridTime
}
