/// Tells who leads a group commit whether others are about to join it.
///
/// Each thread waits for one commit at a time. So as many as waited for the last sync, together
/// with those who came while it went on, are the threads that write at present; the former come
/// again as soon as they are awake, and a sync that begins without them makes them wait for two.
/// PostgreSQL's `commit_delay` and MySQL's `binlog_group_commit_sync_delay` wait for a time that
/// somebody must set; here it is for as many as there were, and for half of what the last sync took
/// at most.
struct SyncGroups {
    /// Commits that have waited for a sync since the store was opened.
    private var arrivedCount: UInt64 = 0
    /// Of these, how many the last sync covered, and the one that goes on will.
    private var coveredCount: UInt64 = 0
    private var coveredNext: UInt64 = 0
    /// How many threads wrote when the last sync ended.
    private var expectedCount: UInt64 = 0
    /// In nanoseconds since some moment.
    private var leadSince: UInt64 = 0
    private var syncBegan: UInt64 = 0
    private var syncNanoseconds: UInt64 = 0

    mutating func arrive() {
        arrivedCount += 1
    }

    /// - Parameter clock: nanoseconds since some moment, as for the methods below; asked only if
    ///   the answer matters.
    mutating func lead(at clock: () -> UInt64) {
        if isAwaitingMore { leadSince = clock() }
    }

    private var isAwaitingMore: Bool { arrivedCount - coveredCount < expectedCount }

    /// Whether fewer wait now than wrote when the last sync ended, and it is not too long ago that
    /// somebody began to lead.
    func isGathering(at clock: () -> UInt64) -> Bool {
        // A clock that a test set back makes it too long ago.
        isAwaitingMore && clock() &- leadSince < syncNanoseconds / 2
    }

    mutating func beginSync(at now: UInt64) {
        coveredNext = arrivedCount
        syncBegan = now
    }

    mutating func endSync(at now: UInt64) {
        syncNanoseconds = now > syncBegan ? now - syncBegan : 0
        expectedCount = arrivedCount - coveredCount
        coveredCount = coveredNext
    }
}
