internal import Synchronization

/// The state behind a ``Store``: what is where, who may touch it, and in which order.
///
/// Thread rule. One lock guards everything that changes with writes, the ``EngineState``, which
/// ``withLock(_:)`` hands out for as long as the lock is held. It is held while a commit is encoded
/// and published, but not while a large one is encoded, and never while anyone waits for a disk,
/// apart from making a log that nobody prepared. Readers of the present take no lock that a writer
/// holds for long. Five threads work in the background: two seal logs, one makes them ahead of
/// need, one compacts, and one goes after long rows of deletions.
///
/// Order of a commit: room in the log, versions, bytes in the log, checksum, memtable, sequence
/// published, lock released, and then the wait for durability if it was asked for.
final class Engine: EngineParts, @unchecked Sendable {
    // Unchecked: the only member that changes without a lock of its own is the state.

    private let monitor: Monitor
    private let state: EngineState
    /// Held while the manifest is replaced, so that two replacements never mix. Taken first.
    private let manifestLock = Monitor()
    /// For rests of a given length, under no lock.
    let pacing = Monitor()
    let sumTables = SumTables()
    /// Of the sync module: what is in memory only, for as long as the store is open.
    let settledExchanges = Mutex<[SettledExchange]>([])
    let heldLooks = HeldLooks()
    let equalityLooks = EqualityLooks()
    /// See ``Store/takeRenewalForStranger()``.
    let hasRenewedForStranger = Atomic<Bool>(false)

    init(_ parts: EngineParts, _ manifest: Manifest) {
        monitor = Monitor()
        state = EngineState(parts, manifest, monitor)
        super.init(sharing: parts)
        state.belong(to: self)
    }

    // MARK: - The lock

    /// Hands out what changes with writes, for as long as the body runs.
    @inline(__always)
    func withLock<Result, Failure: Error>(
        _ body: (borrowing EngineState) throws(Failure) -> sending Result
    ) throws(Failure) -> Result {
        monitor.lock()
        defer { monitor.unlock() }
        return try body(state)
    }

    /// The same if nobody else has it, or gives it up while this gives up the processor so many
    /// times; else nil.
    func withLock<Result, Failure: Error>(
        turnsMax: Int, _ body: (borrowing EngineState) throws(Failure) -> sending Result?
    ) throws(Failure) -> Result? {
        guard monitor.tryLock(turnsMax: turnsMax) else { return nil }
        defer { monitor.unlock() }
        return try body(state)
    }

    /// Changes the manifest on disk, then in memory. Sealing and compaction do so in turn.
    func updateManifest(_ change: (inout Manifest) -> Void) throws(StoreError) {
        try manifestLock.withLock { () throws(StoreError) in
            var changed = withLock { held in
                var copy = held.manifest
                copy.nextNumber = max(copy.nextNumber, held.fileNumbers.next)
                return copy
            }
            change(&changed)
            try changed.write(in: path, storage: storage, ownership: ownership)
            withLock { held in held.manifest = changed }
        }
    }

    /// Tells a reader whom ``PublishedState/refusesReaders`` turns away why.
    ///
    /// - Throws: `closed`; what cannot be read, if that is still so.
    func checkReadable() throws(StoreError) {
        try withLock { (held) throws(StoreError) in try held.checkOpen() }
    }
}

/// A place in the sequence of logs.
struct LogPosition: Comparable {
    var log: UInt64
    var offset: Int

    init(log: UInt64, offset: Int) {
        self.log = log
        self.offset = offset
    }

    /// Behind all that was appended to a log so far.
    init(endOf log: LogSegment) {
        self.init(log: log.number, offset: log.appended)
    }

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
