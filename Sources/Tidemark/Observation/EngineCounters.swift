internal import Synchronization

/// What the engine counts. Everything under the store's writer lock.
struct EngineCounters {
    private static let openings = Atomic<UInt64>(0)

    /// Tells this opening from all others of the process: 1 or more. No time, since two openings
    /// have the same one by a clock that stands.
    let opening = openings.wrappingAdd(1, ordering: .relaxed).newValue
    var commits = 0
    var puts = 0
    var deletes = 0
    /// Bytes of logs that have been sealed since opening, less what was in logs at opening.
    var bytesSealedAway: Int64 = 0
    var syncs = 0
    var syncNanoseconds: UInt64 = 0
    var syncNanosecondsMax: UInt64 = 0
    var writerWaits = 0
    var writerWaitNanoseconds: UInt64 = 0
    var pacedWaits = 0
    var pacedWaitNanoseconds: UInt64 = 0
    var newLogWaits = 0
    var newLogWaitNanoseconds: UInt64 = 0
    var logsSealed = 0
    var sealNanoseconds: UInt64 = 0
    var sealPhases = SealPhases()
    var bytesSealed: UInt64 = 0
    var merges = 0
    var mergeNanoseconds: UInt64 = 0
    /// That merges were to rest for the sake of the bound on what they write.
    var mergeRestMilliseconds: UInt64 = 0
    var bytesMergedIn: UInt64 = 0
    var bytesMergedOut: UInt64 = 0
    var entriesDropped = 0
    var expirySweeps = 0
    var recordsExpired = 0
    /// In memtables that are gone.
    var longKeySearches = 0
}

/// How long the parts of sealing took, in nanoseconds.
struct SealPhases {
    var sort: UInt64 = 0
    var write: UInt64 = 0
    var index: UInt64 = 0
    var sync: UInt64 = 0
    var install: UInt64 = 0

    mutating func add(_ other: SealPhases) {
        sort &+= other.sort
        write &+= other.write
        index &+= other.index
        sync &+= other.sync
        install &+= other.install
    }
}

extension StoreCounters {
    /// What writers waited for, and what sealing consisted of.
    mutating func take(waitsAndPhasesOf counted: EngineCounters) {
        writerWaits = counted.writerWaits
        writerWaitTime = Duration.ofNanoseconds(counted.writerWaitNanoseconds)
        pacedWaits = counted.pacedWaits
        pacedWaitTime = Duration.ofNanoseconds(counted.pacedWaitNanoseconds)
        newLogWaits = counted.newLogWaits
        newLogWaitTime = Duration.ofNanoseconds(counted.newLogWaitNanoseconds)
        logsSealed = counted.logsSealed
        sealTime = Duration.ofNanoseconds(counted.sealNanoseconds)
        sealSortTime = Duration.ofNanoseconds(counted.sealPhases.sort)
        sealWriteTime = Duration.ofNanoseconds(counted.sealPhases.write)
        sealIndexTime = Duration.ofNanoseconds(counted.sealPhases.index)
        sealSyncTime = Duration.ofNanoseconds(counted.sealPhases.sync)
        sealInstallTime = Duration.ofNanoseconds(counted.sealPhases.install)
    }
}
