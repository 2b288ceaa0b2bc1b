internal import Synchronization

/// Everything of an engine that changes with writes, and what may be done with it. Whoever has it
/// holds the engine's lock: ``Engine`` hands it out under the lock alone, and since it is not
/// Sendable nobody can take it along to another thread.
///
/// Who has to wait gives the lock up meanwhile: with ``wait()`` for others, with ``unlocked(_:)``
/// for a disk. After that everything may be otherwise.
final class EngineState: EngineParts {
    /// Of the engine, whose lock this is.
    private let monitor: Monitor
    /// Made before it, and never without it.
    private unowned(unsafe) var owner: Engine?

    var catalog: DatasetCatalog
    var datasetNumbers: DatasetNumbers
    var manifest: Manifest { didSet { noteOwnIDs() } }
    var replicaID: ReplicaID { didSet { noteOwnIDs() } }
    var clock: HybridClock
    var sequence: UInt64 = 0
    var fileNumbers: FileNumbers
    /// A taking over that was cut off and may go on.
    var restingAdoption: SegmentAdoption?
    /// Of takings over that ended with an earlier opening.
    var keptParts: [KeptPart] = []
    var active: Memtable?
    var sealing = SealQueue()
    var supply = LogSupply()
    /// How far the active log may be filled for now: see ``updatePace()``.
    var pace = WriterPace.free
    var turn = CompactionTurn()
    var expiry: ExpirySchedule
    var scouting = ScoutOrders()
    /// What the scout waits for, and who waits for the scout.
    let scoutChanged = Monitor.Condition()
    /// Whether a writer puts a large block into the active log, or has it made room for one, and
    /// has given up the lock meanwhile.
    var isWritingWithoutLock = false
    /// The time of the last write before.
    var lastBeforeWriter = HybridTime(rawValue: 0)
    /// What threads wait for that want to write meanwhile, or need the log as it is.
    let writerDone = Monitor.Condition()
    var durability = LogDurability()
    /// What threads wait for that want their commits durable, and nobody else.
    let durabilityChanged = Monitor.Condition()
    /// Why nothing more is accepted; the first failure stands.
    var failure: StoreError? { didSet { noteHindrance() } }
    /// Why nothing can be read any more, while the store is open.
    var unreadable: StoreError? { didSet { noteHindrance() } }
    /// See ``Store/openingID``; nil as long as nobody has asked for it.
    var openingID: UInt64?
    var isClosed = false { didSet { noteHindrance() } }
    /// Whether any of these stands in a writer's way, so that one look mostly is enough.
    private var isHindered = false
    /// Closing has begun: what is under way makes haste, or gives up.
    var isClosing = false
    /// Closing has given up the lock.
    var hasLetGo = false
    var threads: [BackgroundThread] = []
    var counted = EngineCounters()
    var recovery = RecoveryFindings()

    init(_ parts: EngineParts, _ manifest: Manifest, _ monitor: Monitor) {
        self.monitor = monitor
        self.manifest = manifest
        replicaID = manifest.replicaID
        fileNumbers = FileNumbers(next: manifest.nextNumber)
        datasetNumbers = DatasetNumbers(next: manifest.nextDataset)
        expiry = ExpirySchedule(first: manifest.expiresFrom)
        clock = HybridClock(last: HybridTime(rawValue: manifest.clock))
        catalog = DatasetCatalog(keptMax: parts.options.keptDatasetStatesMax)
        super.init(sharing: parts)
    }

    func belong(to engine: Engine) {
        unsafe owner = engine
    }

    var engine: Engine {
        guard let engine = unsafe owner else { preconditionFailure("a state without its engine") }
        return engine
    }

    // MARK: - Waiting

    /// Gives up the lock until somebody broadcasts, and takes it again. Check the condition anew.
    func wait() { monitor.wait() }

    /// The same until somebody broadcasts to those who wait for that.
    func wait(for condition: Monitor.Condition) { monitor.wait(for: condition) }

    /// The same as ``wait()``, but for no longer than so many milliseconds.
    func wait(milliseconds: UInt64) { monitor.wait(milliseconds: milliseconds) }

    /// Lets others have the lock, and the processor, if they want it.
    func yield() { monitor.yield() }

    /// Wakes everybody who waits, but for those with a condition of their own.
    func broadcast() { monitor.broadcast() }

    /// Gives up the lock for the time of a body, which therefore cannot see the state.
    func unlocked<Result, Failure: Error>(
        _ body: @Sendable (Engine) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try unlockedForWriter { () throws(Failure) in try body(engine) }
    }

    /// Gives up the lock while one thread goes on with the log, which all others leave alone until
    /// it is back: ``awaitWriter()``. For ``withoutLock(if:_:)`` and ``unlocked(_:)`` alone.
    func unlockedForWriter<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        monitor.unlock()
        defer { monitor.lock() }
        return try body()
    }

    /// Takes the lock again for a moment, within ``unlockedForWriter(_:)``.
    func relocked(_ body: () -> Void) {
        monitor.withLock(body)
    }

    // MARK: - What stands in the way

    /// - Throws: `closed`; why nothing can be read.
    func checkOpen() throws(StoreError) {
        guard isHindered else { return }
        guard !isClosed else { throw .closed(path) }
        guard unreadable != nil else { return }
        keepReadable()
        if let unreadable { throw unreadable }
    }

    /// Notes that the state of a dataset changed in what concerns its peers.
    @inline(__always)
    func touch(_ state: DatasetState) {
        guard !state.isNoted else { return }
        catalog.noteChange(of: state)
    }

    private func noteHindrance() {
        isHindered = isClosed || failure != nil || unreadable != nil
    }

    private func noteOwnIDs() {
        published.show(ownIDs: [replicaID] + manifest.formerReplicaIDs)
    }

    /// After a failure after which the kernel may let go of what it could not write: all logs that
    /// are not sealed are kept in memory as they are, and read on only if they are what was
    /// appended. Where that cannot be known now, for want of memory or since the disk does not
    /// answer, readers are turned away, and each tries again.
    ///
    /// The kernel may drop a page that it could not write, and the next look at it reads an older
    /// one from the disk (Rebello et al., "Can Applications Recover from fsync Failures?", 2020).
    func keepReadable() {
        guard unreadable?.code != .corruption else { return }
        if isWritingWithoutLock, let failure {
            // What is being written must not be moved: readers wait for that in their own way.
            unreadable = failure
            return published.refusesReaders.store(true, ordering: .releasing)
        }
        do {
            for log in sealing.logs + (active.map { [$0.log] } ?? []) {
                try log.detach()
                try log.checkIsWhole()
            }
            unreadable = nil
            if !isClosed { published.refusesReaders.store(false, ordering: .releasing) }
        } catch {
            unreadable = error
            published.refusesReaders.store(true, ordering: .releasing)
            if error.code == .corruption { events.tellDamage(error) }
        }
    }

    /// - Throws: as ``checkOpen()``; `readOnly`; `writerStopped`.
    func checkWritable() throws(StoreError) {
        guard isHindered || options.isReadOnly else { return }
        try checkOpen()
        guard !options.isReadOnly else {
            throw StoreError(
                .readOnly, "the store was opened read-only; open it for writing",
                location: StoreError.Location(path: path))
        }
        if let failure {
            throw StoreError(
                .writerStopped,
                "an earlier write failed and nothing more is accepted; close the store, remedy "
                    + "the cause and open it again. The cause: \(failure.message)",
                location: failure.location, systemError: failure.systemError)
        }
    }

    /// Takes note of a failed write or sync: it is final.
    func stopWriting(_ error: StoreError) {
        if failure == nil {
            failure = error
            events.tell(.writerStopped(error))
            if error.code == .inputOutput || error.code == .corruption { keepReadable() }
        }
        broadcast()
        durabilityChanged.broadcast()
    }
}
