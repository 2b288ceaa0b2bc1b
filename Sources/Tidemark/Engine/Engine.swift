internal import Synchronization

/// The state behind a ``Store``: what is where, who may touch it, and in which order.
///
/// Thread rule. One lock, `monitor`, guards everything that changes with writes. It is held while
/// a commit is encoded and published, but not while a large one is encoded, and never while anyone
/// waits for a disk, apart from making a log that nobody prepared. Readers of the present take no
/// lock that a writer holds for long. Five threads work in the background: two seal logs, one makes
/// them ahead of need, one compacts, and one goes after long rows of deletions.
///
/// Order of a commit: room in the log, versions, bytes in the log, checksum, memtable, sequence
/// published, lock released, and then the wait for durability if it was asked for.
final class Engine: @unchecked Sendable {
    // Unchecked: every mutable member below says which lock it belongs to.

    let path: String
    let options: StoreOptions
    let budget: MemoryBudget
    let storage: any Storage
    let identity: StoreIdentity
    let cache: BlockCache
    let valueFiles: ValueFiles
    let waiters = ChangeWaiters()
    let monitor = Monitor()
    /// Held while the manifest is replaced, so that two replacements never mix. Taken first.
    let manifestLock = Monitor()
    let views: ViewGate
    let recycler = LogRecycler()
    /// For rests of a given length, under no lock.
    let pacing = Monitor()
    let gaps = GapMemory()
    let sumTables = SumTables()
    /// Entries with a greater sequence are not yet, or not wholly, committed.
    let visibleSequence = Atomic<UInt64>(0)
    /// Whether the store is closed or cannot be read, for readers, who take no lock.
    let refusesReaders = Atomic<Bool>(false)
    let events: EventDelivery
    /// nil for a reader, who has no lock.
    let ownership: StoreOwnership?
    /// Of the sync module: what is in memory only, for as long as the store is open.
    let settledExchanges = Mutex<[SettledExchange]>([])
    let heldLooks = HeldLooks()
    /// Own ids, the present one first. For readers, who take no lock.
    private let knownOwnIDs: Mutex<[ReplicaID]>
    /// See ``Store/takeRenewalForStranger()``.
    let hasRenewedForStranger = Atomic<Bool>(false)

    // All of the following under `monitor`.
    var catalog: DatasetCatalog
    var datasetNumbers: DatasetNumbers
    var manifest: Manifest { didSet { noteOwnIDs() } }
    var replicaID: ReplicaID { didSet { noteOwnIDs() } }
    var clock: HybridClock
    var sequence: UInt64 = 0
    var nextNumber: UInt64
    /// A taking over that was cut off and may go on.
    var restingAdoption: SegmentAdoption?
    /// Of takings over that ended with an earlier opening.
    var keptParts: [KeptPart] = []
    var active: Memtable?
    var sealQueue: [SealJob] = []
    var preparedLog: LogSegment?
    /// The table of the next memtable, made with its log, once it is known how large it should be.
    var preparedKeys: KeyTable?
    /// Of the memtable before the active one.
    var keyCountBefore = 0
    var isPreparing = false
    /// How far the active log may be filled for now: see ``updatePace(_:)``.
    var pace = WriterPace.free
    /// Logs that are being sealed, or of which what they held in memory is being let go.
    var sealingCount = 0
    /// Of these, those that are sealed in the memory of merging, which does not begin meanwhile.
    var mergeShareLoans = 0
    /// The thread that has the right to compact, 0 if none has.
    var compactor: UInt = 0
    var isCompacting: Bool { compactor != 0 }
    var isCompactionWanted = false
    var expiry: ExpirySchedule
    /// The deletions that came last.
    var deletionRow = DeletionRow()
    /// What the scout is to do next; of several requests the last, with what joins it.
    var scoutRequest: ScoutRequest?
    var isScouting = false
    /// What the scout waits for, and who waits for the scout.
    let scoutChanged = Monitor.Condition()
    /// Whether a writer puts a large block into the active log, or has it made room for one, and
    /// has given up `monitor` meanwhile.
    var isWritingWithoutLock = false
    /// The time of the last write before.
    var lastBeforeWriter = HybridTime(rawValue: 0)
    /// What threads wait for that want to write meanwhile, or need the log as it is.
    let writerDone = Monitor.Condition()
    var durability = LogDurability()
    /// What threads wait for that want their commits durable, and nobody else.
    let durabilityChanged = Monitor.Condition()
    /// Why nothing more is accepted; the first failure stands.
    var failure: StoreError?
    /// Why nothing can be read any more, while the store is open.
    var unreadable: StoreError?
    /// See ``Store/openingID``; nil as long as nobody has asked for it.
    var openingID: UInt64?
    var isClosed = false
    /// Closing has begun: what is under way makes haste, or gives up.
    var isClosing = false
    /// Closing has given up the lock.
    var hasLetGo = false
    var threads: [BackgroundThread] = []
    var counted = EngineCounters()
    var recovery = RecoveryFindings()

    init(
        path: String, options: StoreOptions, storage: any Storage, manifest: Manifest,
        cache: BlockCache, ownership: StoreOwnership?, events: EventDelivery
    ) {
        self.path = path
        budget = MemoryBudget(options)
        var options = options
        options.segmentEntriesMax = budget.segmentEntriesMax
        self.options = options
        self.storage = storage
        identity = manifest.identity
        self.manifest = manifest
        self.cache = cache
        valueFiles = ValueFiles(identity: manifest.identity, storage: storage, events: events)
        self.ownership = ownership
        self.events = events
        replicaID = manifest.replicaID
        knownOwnIDs = Mutex([manifest.replicaID] + manifest.formerReplicaIDs)
        nextNumber = manifest.nextNumber
        datasetNumbers = DatasetNumbers(next: manifest.nextDataset)
        expiry = ExpirySchedule(first: manifest.expiresFrom)
        clock = HybridClock(last: HybridTime(rawValue: manifest.clock))
        views = ViewGate(
            ReadView(memtables: [], runs: [], keyHash: manifest.identity.keyHash))
        catalog = DatasetCatalog(keptMax: options.keptDatasetStatesMax)
    }

    var currentView: ReadView { views.current }

    /// Notes that the state of a dataset changed in what concerns its peers. Under `monitor`.
    @inline(__always)
    func touch(_ state: DatasetState) {
        guard !state.isNoted else { return }
        catalog.noteChange(of: state)
    }

    /// Own ids, the present one first. From any thread.
    var ownIDs: [ReplicaID] { knownOwnIDs.withLock { $0 } }

    private func noteOwnIDs() {
        let ids = [replicaID] + manifest.formerReplicaIDs
        knownOwnIDs.withLock { $0 = ids }
    }

    func filePath(_ name: String) -> String { "\(path)/\(name)" }

    /// Under `monitor`.
    func checkOpen() throws(StoreError) {
        guard !isClosed else { throw .closed(path) }
        guard unreadable != nil else { return }
        keepReadable()
        if let unreadable { throw unreadable }
    }

    /// Tells a reader whom ``refusesReaders`` turns away why. Takes `monitor`.
    ///
    /// - Throws: `closed`; what cannot be read, if that is still so.
    func checkReadable() throws(StoreError) {
        monitor.lock()
        defer { monitor.unlock() }
        try checkOpen()
    }

    /// After a failure after which the kernel may let go of what it could not write: all logs that
    /// are not sealed are kept in memory as they are, and read on only if they are what was
    /// appended. Where that cannot be known now, for want of memory or since the disk does not
    /// answer, readers are turned away, and each tries again. Under `monitor`.
    ///
    /// The kernel may drop a page that it could not write, and the next look at it reads an older
    /// one from the disk (Rebello et al., "Can Applications Recover from fsync Failures?", 2020).
    func keepReadable() {
        guard unreadable?.code != .corruption else { return }
        if isWritingWithoutLock, let failure {
            // What is being written must not be moved: readers wait for that in their own way.
            unreadable = failure
            return refusesReaders.store(true, ordering: .releasing)
        }
        do {
            for log in sealQueue.map(\.memtable.log) + (active.map { [$0.log] } ?? []) {
                try log.detach()
                try log.checkIsWhole()
            }
            unreadable = nil
            if !isClosed { refusesReaders.store(false, ordering: .releasing) }
        } catch {
            unreadable = error
            refusesReaders.store(true, ordering: .releasing)
            if error.code == .corruption { events.tellDamage(error) }
        }
    }

    /// Under `monitor`.
    func checkWritable() throws(StoreError) {
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

    /// Takes note of a failed write or sync: it is final. Under `monitor`.
    func stopWriting(_ error: StoreError) {
        if failure == nil {
            failure = error
            events.tell(.writerStopped(error))
            if error.code == .inputOutput || error.code == .corruption { keepReadable() }
        }
        monitor.broadcast()
        durabilityChanged.broadcast()
    }
}

/// A place in the sequence of logs.
struct LogPosition: Comparable {
    var log: UInt64
    var offset: Int

    static func < (left: LogPosition, right: LogPosition) -> Bool {
        (left.log, left.offset) < (right.log, right.offset)
    }
}

extension StoreError {
    static func closed(_ path: String) -> StoreError {
        StoreError(
            .closed, "the store is closed; open it again", location: Location(path: path))
    }

    static func datasetNotFound(_ name: String) -> StoreError {
        StoreError(
            .datasetNotFound,
            "there is no dataset \(name) (any more); create it with `dataset(_:)`")
    }
}

/// Hybrid logical clock (Kulkarni et al., 2014): never goes back, and stays at the wall clock
/// unless it is ahead of it.
struct HybridClock {
    private(set) var last: HybridTime

    init(last: HybridTime) {
        self.last = last
    }

    /// The time of a new local event, later than every time given out or seen before.
    mutating func next(wallClockMilliseconds: UInt64) -> HybridTime {
        let wall = HybridTime(milliseconds: wallClockMilliseconds, counter: 0)
        last = max(wall, HybridTime(rawValue: last.rawValue &+ 1))
        return last
    }

    /// Takes note of a time of this store's own.
    mutating func see(_ time: HybridTime) {
        last = max(last, time)
    }

    /// Takes note of somebody else's time, unless it is after what is believed.
    mutating func see(_ time: HybridTime, notAfter latest: HybridTime) {
        if time <= latest { see(time) }
    }
}
