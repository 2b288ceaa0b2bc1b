/// How much a store has done since it was opened, and how it stands now.
///
/// Counts only grow while the store is open. They are kept where the writer's lock is held anyway,
/// so that they cost a write a few instructions. Reads are not counted: readers share next to
/// nothing that they write to, and a count would make them. Who needs their number counts where it
/// reads.
public struct StoreCounters: Hashable, Sendable {
    // MARK: Since opening

    /// Commits: writes, batches, transactions, changes of datasets, pages that came from a peer.
    public package(set) var commits = 0
    /// Values that were written, by this replica or another.
    public package(set) var puts = 0
    /// Deletions that were written, by this replica or another, and by the sweep of what expired.
    public package(set) var deletes = 0
    /// Bytes that went into logs.
    public package(set) var bytesLogged: UInt64 = 0
    /// Syncs of the log; one may serve many commits.
    public package(set) var syncs = 0
    public package(set) var syncTime = Duration.zero
    public package(set) var longestSync = Duration.zero
    /// How often a writer had to wait because sealing was behind, and for how long in sum.
    public package(set) var writerWaits = 0
    public package(set) var writerWaitTime = Duration.zero
    /// Those of these waits in which a writer went on in small steps, as sealing did; in the others
    /// the log or its memtable was full, and as many waited to be sealed as may.
    public package(set) var pacedWaits = 0
    public package(set) var pacedWaitTime = Duration.zero
    /// How often a writer had to wait for a log that was not made yet, and for how long in sum.
    public package(set) var newLogWaits = 0
    public package(set) var newLogWaitTime = Duration.zero
    public package(set) var logsSealed = 0
    public package(set) var sealTime = Duration.zero
    /// What sealing consists of: to put entries into their order, to write them as they stand in
    /// it, to write the indexes and open the segments, to wait until the disk has them, and to
    /// replace the manifest once all logs before are sealed. The disk may also be waited for while
    /// entries are written. Two logs may be sealed side by side: then these times overlap.
    public package(set) var sealSortTime = Duration.zero
    public package(set) var sealWriteTime = Duration.zero
    public package(set) var sealIndexTime = Duration.zero
    public package(set) var sealSyncTime = Duration.zero
    public package(set) var sealInstallTime = Duration.zero
    /// Bytes of the segments that logs became.
    public package(set) var bytesSealed: UInt64 = 0
    /// Merges that were completed.
    public package(set) var merges = 0
    public package(set) var mergeTime = Duration.zero
    /// Bytes of segments that merges read, and of those that they wrote.
    public package(set) var bytesMergedIn: UInt64 = 0
    public package(set) var bytesMergedOut: UInt64 = 0
    /// Versions of records that merges dropped.
    public package(set) var entriesDropped = 0
    /// Walks over all datasets for records that have expired.
    public package(set) var expirySweeps = 0
    public package(set) var recordsExpired = 0
    /// Searches for a key's place in memory, by writers, that took 128 steps or more. 0 unless
    /// somebody chooses keys by the secret of the store.
    public package(set) var longKeySearches = 0
    /// Places in files where damage was found.
    public package(set) var damages = 0
    /// Events that the observer was too slow for.
    public package(set) var eventsLost = 0

    // MARK: Now

    /// Sealed runs, each of which a read may have to look into, and the segments they consist of.
    public package(set) var runCount = 0
    public package(set) var segmentCount = 0
    /// Bytes of the files of sealed segments.
    public package(set) var segmentBytes: UInt64 = 0
    /// Logs that are not sealed: the active one, and those that wait for it.
    public package(set) var logCount = 0
    /// Bytes written to them, and versions of records in them.
    public package(set) var logBytes: UInt64 = 0
    public package(set) var logEntries = 0
    /// Datasets of which something is in memory.
    public package(set) var datasetsInMemory = 0
    /// Whether an earlier failure keeps the store from writing.
    public package(set) var isWriterStopped = false

    package init() {}

    /// Of a store that has done nothing.
    package static let none = StoreCounters()
    /// Tells this opening of a store from others of the process.
    package var opening: UInt64 = 0
}

extension Store {
    /// What has been counted since opening, as of one moment. O(segments); takes the writer's lock
    /// for about a microsecond. May be called once the store is closed.
    public func counters() -> StoreCounters {
        engine.counters()
    }
}
