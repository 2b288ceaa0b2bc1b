internal import Synchronization

extension Engine {
    /// Opens or creates a store.
    static func open(
        at path: String, options: StoreOptions, storage: any Storage,
        observer: (any StoreObserver)? = nil
    ) throws(StoreError) -> Engine {
        let start = storage.monotonicNanoseconds()
        try options.check()
        let events = EventDelivery(observer, of: path)
        var wasMade = false
        let engine =
            options.isReadOnly
            ? try openReadOnly(at: path, options, storage, events)
            : try openForWriting(at: path, options, storage, events, &wasMade)
        engine.withLock { held in held.beginObservation(wasMade: wasMade, since: start) }
        if !options.isReadOnly, !options.runsInline { engine.startThreads() }
        return engine
    }

    private static func openForWriting(
        at path: String, _ options: StoreOptions, _ storage: any Storage,
        _ events: EventDelivery, _ wasMade: inout Bool
    ) throws(StoreError) -> Engine {
        let found = try storage.namesIfThere(in: path)
        let isThere = found?.contains(Manifest.fileName) ?? false
        guard isThere || options.createsIfMissing else { throw .notAStore(path) }
        let names = found ?? []
        guard !names.contains(BackupMark.fileName) else { throw .isBackup(path) }
        if !isThere { try checkIsFree(path, names, storage) }
        if found == nil {
            try storage.createDirectory(path)
            // Throws if it is a file.
            _ = try storage.listDirectory(path)
        }
        let lock = try storage.lock(path)
        if try !storage.listDirectory(path).contains(Manifest.fileName) {
            // Before the manifest, which says to whoever opens the store later that it was done.
            try storage.syncName(of: path, isNew: found == nil)
            let id = ReplicaID(high: storage.randomUInt64(), low: storage.randomUInt64())
            try Manifest(replicaID: id, identity: StoreIdentity(drawnFrom: storage)).write(
                in: path, storage: storage)
            wasMade = true
        } else {
            // The writer before may have been killed between a new manifest and its sync, and what
            // the former one needs goes below.
            try storage.syncDirectory(path)
        }
        let ownership = StoreOwnership(
            path, lock: lock,
            manifest: try storage.openFile("\(path)/\(Manifest.fileName)", .read))
        let engine = try load(
            path, options, storage, ownership, manifest(at: path, storage), events)
        let isCopied = engine.withLock { held in held.recovery.isCopied }
        try engine.beginFirstLogIfDue()
        // Before anything is written.
        if isCopied { try engine.renewCopiedReplicaID() }
        try engine.removeLeftovers()
        engine.resumeRoster()
        let bringsBack = try engine.withLock { (held) throws(StoreError) in
            try held.loadKeptParts()
            return held.recovery.bringsBack
        }
        // What came back from the logs may never have been durable, and what is done next builds
        // on it: records of a dataset whose deletion came back may go.
        if bringsBack { try engine.syncAll() }
        return engine
    }

    /// Whether a store may begin at a path: a directory that is missing or empty, beside which
    /// nothing stands that may be the store that belongs there. A repair in place that was killed
    /// between its steps, or a restore that is under way, must not find an empty store there that
    /// somebody takes for the whole one.
    ///
    /// - Parameter names: what is in the directory.
    private static func checkIsFree(
        _ path: String, _ names: [String], _ storage: any Storage
    ) throws(StoreError) {
        guard !names.contains(StagingName.within) else { throw .unfinished(path) }
        guard names.allSatisfy({ $0 == "LOCK" || $0 == Manifest.temporaryName }) else {
            throw .notAStore(path)
        }
        let beside = try storage.namesBeside(path)
        if let other = StagingName.leftover(of: FileName.last(of: path), among: beside) {
            throw .unfinished(path, beside: other)
        }
    }

    private func beginFirstLogIfDue() throws(StoreError) {
        let only = try withLock { (held) throws(StoreError) -> LogSegment? in
            guard held.active == nil else { return nil }
            let log = try held.beginFirstLog()
            return held.sealing.isEmpty ? log : nil
        }
        // No older log counts any more, whether there was none or nothing of it was whole.
        if let only { try updateManifest { $0.oldestLog = only.number } }
    }

    /// - Parameter manifest: of the files to be opened.
    static func load(
        _ path: String, _ options: StoreOptions, _ storage: any Storage,
        _ ownership: StoreOwnership?, _ manifest: Manifest, _ events: EventDelivery
    ) throws(StoreError) -> Engine {
        let cache = BlockCache(
            bytesMax: MemoryBudget(options).blockCacheBytes, events: events)
        let engine = Engine(
            EngineParts(
                path: path, options: options, storage: storage, manifest: manifest, cache: cache,
                ownership: ownership, events: events), manifest)
        var segments: [(segment: SealedSegment, run: UInt64)] = []
        for entry in manifest.segments {
            let file = engine.filePath(FileName.sealed(entry.number))
            let segment: SealedSegment
            do {
                segment = try SealedSegment(
                    number: entry.number, path: file, identity: manifest.identity, storage: storage,
                    cache: cache, valueFiles: engine.valueFiles)
            } catch let error where error.code == .notAStore {
                throw Malformed("a segment that the manifest names is missing or no segment")
                    .error(in: file, at: nil)
            }
            guard segment.fileSize == entry.fileSize else {
                throw Malformed(
                    "the segment has \(segment.fileSize) bytes where the manifest says "
                        + "\(entry.fileSize)"
                ).error(in: segment.path, at: segment.fileSize)
            }
            segments.append((segment, entry.run))
        }
        var runs: [SegmentRun] = []
        var rest = segments[...]
        while let first = rest.first {
            let run = rest.prefix { $0.run == first.run }
            runs.append(SegmentRun(run.map(\.segment)))
            rest = rest.dropFirst(run.count)
        }
        engine.views.replace { $0.with(runs: runs) }
        try engine.withLock { (held) throws(StoreError) in try held.recoverLogs() }
        return engine
    }
}

extension EngineParts {
    /// - Throws: `notAStore` naming the directory, not the file.
    static func manifest(
        at path: String, _ storage: any Storage
    ) throws(StoreError) -> Manifest {
        do {
            return try Manifest.read(in: path, storage: storage)
        } catch let error where error.code == .notAStore {
            throw .notAStore(path)
        }
    }
}

extension EngineState {
    fileprivate func beginFirstLog() throws(StoreError) -> LogSegment {
        let log = try makeLog(
            number: fileNumbers.draw(), capacity: options.segmentBytes, reserving: 0,
            isPrepared: false)
        begin(log, after: sealing.newestLog ?? 0)
        makeActive(Memtable(log: log, sequenceBase: sequence, recycler: recycler))
        return log
    }

    func makeActive(_ memtable: Memtable) {
        active = memtable
        catalog.begin(memtable.era)
        views.replace { $0.with(memtables: [memtable] + $0.memtables) }
    }

    /// Those of the files that belong to nothing: a crash has left them behind, or what they were
    /// made for is over.
    fileprivate func leftovers(among names: [String]) -> [String] {
        let segments = Set(manifest.segments.map(\.number))
        let values = Set(currentView.valueFiles.map(\.number))
        return names.filter { name in
            if let number = FileName.number(in: name, ending: ".seg") {
                return !segments.contains(number)
            }
            if let number = FileName.number(in: name, ending: ".log") {
                return number != active?.log.number && sealing.job(ofLog: number) == nil
            }
            if let number = FileName.number(in: name, ending: ".val") {
                return !values.contains(number)
            }
            return name == Manifest.temporaryName || name == KeptRoster.temporaryName
        }
    }
}

extension Engine {
    private func removeLeftovers() throws(StoreError) {
        let names = try storage.listDirectory(path)
        for name in withLock({ held in held.leftovers(among: names) }) {
            try storage.remove(filePath(name))
        }
    }

    private func startThreads() {
        var threads = [
            BackgroundThread { [self] in runSealing() },
            BackgroundThread { [self] in runSealing() },
            BackgroundThread { [self] in runPreparing() },
            BackgroundThread { [self] in runCompaction() },
        ]
        if hasScout { threads.append(BackgroundThread { [self] in runScouting() }) }
        withLock { held in held.threads = threads }
    }

    /// Stops the background work, makes everything durable and gives up the lock.
    ///
    /// After a failure nothing more is synced: what a failed sync left in doubt no second one
    /// settles. Whether anything is in doubt is told.
    ///
    /// The lock is given up only when nothing of this opening writes any more: not while another
    /// thread compacts, and not by a second call that comes while the first is still at it.
    func close() throws(StoreError) {
        let isFirst = withLock { held in
            defer { held.isClosing = true }
            return !held.isClosing
        }
        guard isFirst else {
            // Whoever closes from within the work that is waited for is not kept waiting.
            return withLock { held in
                while !held.hasLetGo, !held.turn.isMine { held.wait() }
            }
        }
        var result: Result<Void, StoreError> = .success(())
        let isWriter = withLock { held in
            guard !held.isClosed, !options.isReadOnly else { return false }
            guard let failure = held.failure else { return true }
            if held.hasUnsynced { result = .failure(.closedInDoubt(failure)) }
            return false
        }
        if isWriter {
            result = Result { () throws(StoreError) in
                try withLock { (held) throws(StoreError) in try held.sealForClose() }
                try syncWithMark(isMarkDurable: true)
            }
        }
        let threads = withLock { held in
            held.awaitWriter()
            held.isClosed = true
            published.refusesReaders.store(true, ordering: .releasing)
            held.broadcast()
            held.scoutChanged.broadcast()
            defer { held.threads = [] }
            return held.threads
        }
        for thread in threads {
            thread.join()
        }
        withLock { held in
            while held.turn.isTaken, !held.turn.isMine { held.wait() }
        }
        if isWriter, options.runsInline { sealInline() }
        waiters.close()
        if isWriter, case .success = result {
            result = Result { () throws(StoreError) in try releaseSpace() }
        }
        withLock { held in held.restingAdoption = nil }
        ownership?.release()
        withLock { held in
            held.hasLetGo = true
            held.broadcast()
        }
        if case .failure(let error) = result { events.end(.closed(error)) }
        events.end(.closed(nil))
        try result.get()
    }
}

extension EngineState {
    /// Operations beyond this many bytes are sealed at closing, so that opening need not read them
    /// from the log. What is left takes about a millisecond to read.
    private static let closeLogBytesMax = 256 << 10

    fileprivate func sealForClose() throws(StoreError) {
        awaitWriter()
        guard !isClosed, failure == nil, let active,
            active.log.appended > Self.closeLogBytesMax
        else { return }
        try rotate()
        while !sealing.isEmpty, failure == nil {
            awaitBackground()
        }
        try checkWritable()
    }
}

extension Engine {
    /// After the threads have ended: what was reserved ahead goes back to the file system, and how
    /// far the log was durable is noted, so that what is missing later is known for what it is.
    private func releaseSpace() throws(StoreError) {
        let (log, known) = withLock { held in (held.active?.log, held.manifest) }
        if let log {
            try log.releaseSpace()
            let (durable, size) = (UInt64(log.durable), UInt64(log.reserved))
            if known.closedLog != log.number || known.closedAt != durable
                || known.closedSize != size
            {
                try updateManifest {
                    $0.closedLog = log.number
                    $0.closedAt = durable
                    $0.closedSize = size
                }
            }
        }
        if let prepared = withLock({ held in held.supply.empty() }) {
            try storage.remove(prepared.path)
        }
        try removeLeftovers()
        keepRoster()
    }
}

extension StoreError {
    /// - Parameter cause: what stopped the writer.
    fileprivate static func closedInDoubt(_ cause: StoreError) -> StoreError {
        StoreError(
            .writerStopped,
            "the store is closed, but not all that was written is known to be durable, since an "
                + "earlier write failed; remedy the cause and open the store again. The cause: "
                + cause.message,
            location: cause.location, systemError: cause.systemError)
    }

    static func notAStore(_ path: String) -> StoreError {
        StoreError(
            .notAStore,
            "the directory holds no store; check the path, or open with `createsIfMissing` an "
                + "empty or missing directory",
            location: Location(path: path))
    }
}

extension StoreOptions {
    /// - Throws: `invalidArgument` naming the option and its range.
    package func check() throws(StoreError) {
        try require(
            author.utf8.count <= Limits.authorBytesMax,
            "the option author has \(author.utf8.count) bytes; allowed are "
                + "\(0...Limits.authorBytesMax)")
        try require(
            Limits.segmentBytes.contains(segmentBytes),
            "the option segmentBytes is \(segmentBytes); allowed are \(Limits.segmentBytes)")
        try checkMemory()
        try require(
            Limits.largeValueBytes.contains(largeValueBytes),
            "the option largeValueBytes is \(largeValueBytes); allowed are "
                + "\(Limits.largeValueBytes)")
        try require(
            compactionBytesPerSecond >= 0,
            "the option compactionBytesPerSecond is \(compactionBytesPerSecond); it may not be "
                + "negative, and 0 is no bound")
        try require(
            Limits.historyVersions.contains(historyVersions),
            "the option historyVersions is \(historyVersions); allowed are "
                + "\(Limits.historyVersions)")
        try require(
            Limits.historyAge.contains(historyAge),
            "the option historyAge is \(historyAge); allowed are \(Limits.historyAge)")
        try require(
            Limits.tombstoneAge.contains(tombstoneAge),
            "the option tombstoneAge is \(tombstoneAge); allowed are \(Limits.tombstoneAge)")
        try require(
            Limits.clockAheadMax.contains(clockAheadMax),
            "the option clockAheadMax is \(clockAheadMax); allowed are \(Limits.clockAheadMax)")
    }
}
