extension Engine {
    /// Everything that is counted, as of one moment.
    func counters() -> StoreCounters { withLock { held in held.counters() } }
}

extension EngineState {
    fileprivate func counters() -> StoreCounters {
        var result = StoreCounters()
        result.opening = counted.opening
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

extension EngineState {
    fileprivate func checkInvariants() {
        durability.checkInvariants(active: active?.log)
        datasetNumbers.checkInvariants()
        sealing.checkInvariants()
        supply.checkInvariants(active: active?.log.number ?? 0)
        catalog.checkInvariants()
        precondition(
            sealing.newestLog.map { $0 < active?.log.number ?? .max } ?? true,
            "a log waits to be sealed that is not older than the active one")
        let log = active?.log.number ?? 0
        precondition(
            supply.log.map { fileNumbers.next > max(log, $0.number) } ?? true,
            "a number is given out twice")
    }
}

extension Store {
    /// For tests: whether all holds that always holds of what the engine keeps in memory. Traps if
    /// it does not.
    package func checkInvariants() {
        engine.withLock { held in held.checkInvariants() }
    }
}
