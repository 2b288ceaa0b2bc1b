/// How far the logs are durable, and whether a thread sees to more of it.
///
/// Invariants: ``checkInvariants(active:)``. Thread rule: under the store's writer lock.
struct LogDurability {
    /// Everything before is on disk.
    private(set) var position = LogPosition(log: 0, offset: 0)
    /// Logs before the active one that are not known to be durable, oldest first.
    private(set) var unsynced: [LogSegment] = []
    private(set) var isSyncing = false
    private var groups = SyncGroups()

    /// Takes note of a log to which nothing is added any more.
    mutating func end(_ log: LogSegment) {
        unsynced.append(log)
    }

    /// Takes note that what a log had is sealed, and the log given up.
    mutating func noteSealed(_ log: LogSegment) {
        unsynced.removeAll { $0 === log }
    }

    // MARK: - Group commit

    /// Takes note of a commit that waits. False if it is durable already.
    mutating func arrive(for target: LogPosition) -> Bool {
        guard position < target else { return false }
        groups.arrive()
        return true
    }

    /// Takes the right to sync.
    ///
    /// - Parameter clock: nanoseconds since some moment, as for the methods below.
    mutating func lead(at clock: () -> UInt64) {
        precondition(!isSyncing, "two threads sync side by side")
        isSyncing = true
        groups.lead(at: clock)
    }

    /// Whether to wait for others who are about to join.
    func isGathering(at clock: () -> UInt64) -> Bool { groups.isGathering(at: clock) }

    /// Returns the logs that are to be synced before the active one.
    mutating func beginSync(at now: UInt64) -> [LogSegment] {
        groups.beginSync(at: now)
        return unsynced
    }

    /// Gives the right to sync back; nothing more is known.
    mutating func giveUp() {
        isSyncing = false
    }

    /// The same after a sync.
    ///
    /// - Parameters:
    ///   - older: what ``beginSync(at:)`` returned.
    ///   - offset: of the active log, up to which it was synced.
    mutating func endSync(
        of older: [LogSegment], _ active: LogSegment, through offset: Int, at now: UInt64
    ) {
        isSyncing = false
        for log in older { log.durable = log.appended }
        active.durable = offset
        position = max(position, LogPosition(log: active.number, offset: offset))
        unsynced.removeAll { candidate in older.contains { $0 === candidate } }
        groups.endSync(at: now)
    }

    // MARK: - Checking

    /// For tests: what always holds.
    ///
    /// - Parameter active: the log that is written to.
    func checkInvariants(active: LogSegment?) {
        for (log, next) in zip(unsynced, unsynced.dropFirst()) {
            precondition(log.number < next.number, "logs that are not durable are out of order")
        }
        for log in unsynced {
            precondition(log.durable <= log.appended, "more of a log is durable than there is")
        }
        guard let active else { return }
        precondition(active.durable <= active.appended, "more is durable than was written")
        precondition(
            unsynced.allSatisfy { $0.number < active.number }, "a log ended that is written to")
        precondition(
            position <= LogPosition(log: active.number, offset: active.appended),
            "more is durable than was written")
    }
}
