internal import Synchronization

/// What of an engine is the same for as long as a store is open, and needs no lock: shared by the
/// ``Engine`` and its ``EngineState``.
class EngineParts {
    final let path: String
    final let options: StoreOptions
    final let budget: MemoryBudget
    final let storage: any Storage
    final let identity: StoreIdentity
    final let cache: BlockCache
    final let valueFiles: ValueFiles
    final let waiters: ChangeWaiters
    final let views: ViewGate
    final let recycler: LogRecycler
    final let gaps: GapMemory
    final let published: PublishedState
    final let events: EventDelivery
    /// nil for a reader, who has no lock.
    final let ownership: StoreOwnership?

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
        self.cache = cache
        valueFiles = ValueFiles(identity: manifest.identity, storage: storage, events: events)
        waiters = ChangeWaiters()
        views = ViewGate(
            ReadView(memtables: [], runs: [], keyHash: manifest.identity.keyHash))
        recycler = LogRecycler()
        gaps = GapMemory()
        published = PublishedState(ownIDs: [manifest.replicaID] + manifest.formerReplicaIDs)
        self.events = events
        self.ownership = ownership
    }

    /// The parts of another, not copies of them.
    init(sharing other: EngineParts) {
        path = other.path
        options = other.options
        budget = other.budget
        storage = other.storage
        identity = other.identity
        cache = other.cache
        valueFiles = other.valueFiles
        waiters = other.waiters
        views = other.views
        recycler = other.recycler
        gaps = other.gaps
        published = other.published
        events = other.events
        ownership = other.ownership
    }

    final var currentView: ReadView { views.current }

    /// Own ids, the present one first.
    final var ownIDs: [ReplicaID] { published.ownIDs }

    final func filePath(_ name: String) -> String { "\(path)/\(name)" }
}

/// What readers need to know of the state, and find out without its lock.
final class PublishedState: Sendable {
    /// Entries with a greater sequence are not yet, or not wholly, committed.
    let visibleSequence = Atomic<UInt64>(0)
    /// Whether the store is closed or cannot be read.
    let refusesReaders = Atomic<Bool>(false)
    private let knownOwnIDs: Mutex<[ReplicaID]>

    init(ownIDs: [ReplicaID]) {
        knownOwnIDs = Mutex(ownIDs)
    }

    /// Own ids, the present one first.
    var ownIDs: [ReplicaID] { knownOwnIDs.withLock { $0 } }

    func show(ownIDs: [ReplicaID]) {
        knownOwnIDs.withLock { $0 = ownIDs }
    }
}
