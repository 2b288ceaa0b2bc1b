extension Engine {
    /// Everything that is counted, as of one moment.
    func counters() -> StoreCounters {
        monitor.lock()
        defer { monitor.unlock() }
        var result = StoreCounters()
        result.opening = counted.openedAt
        result.commits = counted.commits
        result.puts = counted.puts
        result.deletes = counted.deletes
        result.syncs = counted.syncs
        result.syncTime = Duration.ofNanoseconds(counted.syncNanoseconds)
        result.longestSync = Duration.ofNanoseconds(counted.syncNanosecondsMax)
        result.take(waitsAndPhasesOf: counted)
        result.bytesSealed = counted.bytesSealed
        result.merges = counted.merges
        result.mergeTime = Duration.ofNanoseconds(counted.mergeNanoseconds)
        result.bytesMergedIn = counted.bytesMergedIn
        result.bytesMergedOut = counted.bytesMergedOut
        result.entriesDropped = counted.entriesDropped
        result.expirySweeps = counted.expirySweeps
        result.recordsExpired = counted.recordsExpired
        (result.eventsLost, result.damages) = events.counts

        let view = currentView
        result.runCount = view.runs.count
        for segment in view.segments {
            result.segmentCount += 1
            result.segmentBytes += segment.fileSize
        }
        result.logCount = view.memtables.count
        result.longKeySearches = counted.longKeySearches
        for memtable in view.memtables {
            result.logBytes += UInt64(memtable.log.appended)
            result.logEntries += memtable.count
            result.longKeySearches += memtable.longSearches
        }
        result.bytesLogged = UInt64(
            clamping: counted.bytesSealedAway + Int64(result.logBytes))
        result.datasetsInMemory = catalog.count
        result.isWriterStopped = failure != nil
        return result
    }
}

extension Store {
    /// For tests: whether all holds that always holds of what the engine keeps in memory. Traps if
    /// it does not.
    package func checkInvariants() {
        engine.monitor.withLock {
            engine.durability.checkInvariants(active: engine.active?.log)
            engine.datasetNumbers.checkInvariants()
        }
    }
}
