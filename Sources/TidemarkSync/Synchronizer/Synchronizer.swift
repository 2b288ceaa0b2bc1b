import Synchronization
public import Tidemark

/// Keeps a store in step with one peer: on demand, by the clock, when the network comes back and
/// when the peer announces news.
///
/// ```swift
/// let synchronizer = Synchronizer(
///     store: store, transport: hub, schedule: SyncSchedule(interval: .seconds(60)))
/// synchronizer.start()
/// let report = try await synchronizer.synchronize()
/// await synchronizer.shutdown()
/// ```
///
/// Runs never overlap. Whoever asks while one is under way takes part in the next, together with
/// all others who ask meanwhile, so that each gets the result of a run that began after its call.
/// Each run begins with ``SyncEvent/started(datasets:)`` and ends with exactly one
/// ``SyncEvent/ended(_:)`` or ``SyncEvent/failed(_:)``.
///
/// Thread-safe, and to be used from actors. For one exchange without retries, events or a schedule
/// there is `Store.synchronize(with:datasets:options:)`. See <doc:SynchronizingApps>.
public final class Synchronizer: Sendable {
    public let store: Store
    let runner: SyncRunner
    let queue: RunQueue
    let background = Mutex(BackgroundWork())

    /// Makes a synchronizer that does nothing until it is asked or started.
    ///
    /// - Parameters:
    ///   - transport: leads to one peer. Another peer has another synchronizer.
    ///   - connectivity: tells what network there is; nil if there always is one.
    ///   - delegate: is told of everything that happens, and kept until ``shutdown()``.
    ///   - lastFullSync: when a full exchange of all datasets last ended, in milliseconds since
    ///     1970. nil: what the store keeps of an earlier synchronizer of the same name; if that is
    ///     nothing, too, a schedule that asks for full exchanges begins with one.
    ///   - environment: clock and randomness.
    public init(
        store: Store, transport: any SyncTransport,
        options: SynchronizerOptions = SynchronizerOptions(),
        schedule: SyncSchedule = SyncSchedule(), connectivity: (any ConnectivitySource)? = nil,
        delegate: (any SyncDelegate)? = nil, lastFullSync: UInt64? = nil,
        environment: any SyncEnvironment = SystemSyncEnvironment()
    ) {
        self.store = store
        let kept = try? SynchronizerBook(store, name: options.name).lastFullSync()
        let runner = SyncRunner(
            store: store, transport: transport, options: options, schedule: schedule,
            connectivity: connectivity, environment: environment,
            lastFullSync: lastFullSync ?? kept)
        self.runner = runner
        queue = RunQueue { wish in await runner.run(wish) }
        if let delegate {
            let mailbox = runner.events.open()
            // Ends when the mailbox is closed and empty. It holds nothing of the synchronizer.
            Task {
                while let event = await mailbox.next() {
                    await delegate.receive(event)
                }
            }
        }
    }

    deinit {
        for task in background.withLock({ $0.takeAll() }) {
            task.cancel()
        }
        queue.closeAtOnce()
        runner.events.close()
    }

    // MARK: - Runs

    /// Exchanges datasets with the peer until both sides hold the same.
    ///
    /// Takes part in a run that begins after this call. Errors that may pass are met with further
    /// attempts, after waits that grow; which they are says ``SyncError/isTransient``, and in the
    /// end the error of the last attempt is thrown. A dataset that fails for a reason of its own
    /// does not keep the others from being exchanged, and its error is thrown when they were.
    ///
    /// Cancelling the task ends the call. The run is cancelled with it unless others wait for it,
    /// and whatever was applied until then stays.
    ///
    /// - Parameter names: of the datasets; nil for all of both sides.
    /// - Returns: one outcome for each of these datasets, which says what all attempts did.
    /// - Throws: what ``synchronizeEach(_:)`` throws, and ``SyncReport/firstError`` of what it
    ///   returns. What was done all the same says ``lastReport``.
    @discardableResult
    public func synchronize(
        _ names: [String]? = nil
    ) async throws(SyncError) -> SyncReport {
        try await synchronizeEach(names).withoutError()
    }

    /// The same, with the error of each dataset in its outcome: for who goes through the outcomes.
    ///
    /// - Throws: why the run did not come to its end: `unreachable` and the like after the last
    ///   attempt, `offline` or `expensiveNetwork` at once, `timedOut`, `cancelled`. What was done
    ///   until then says ``lastReport``.
    public func synchronizeEach(
        _ names: [String]? = nil
    ) async throws(SyncError) -> SyncReport {
        try await run(SyncWish(names: names.map { Set($0) }))
    }

    /// The same as ``synchronize(_:)``, from position zero: everything that changed since the
    /// beginning is gone through again on both sides, instead of what changed since the last
    /// exchange. What the other side can prove to have is not sent again.
    ///
    /// Heals a checkpoint that is ahead of what was really exchanged. Costs the reading of all
    /// changes on both sides.
    @discardableResult
    public func synchronizeFully(
        _ names: [String]? = nil
    ) async throws(SyncError) -> SyncReport {
        try await run(SyncWish(names: names.map { Set($0) }, isFull: true)).withoutError()
    }

    /// What ``synchronize(_:)`` would do, if the argument is true; see
    /// `Store.forecast(with:datasets:options:)`. Takes no part in runs, is tried once and makes no
    /// events.
    ///
    /// - Throws: `offline`, `expensiveNetwork`; why the exchange would not come to its end, or the
    ///   error that the first dataset would have; `store` if the fork on which it runs cannot be
    ///   made.
    public func synchronize(
        _ names: [String]? = nil, dryRun: Bool
    ) async throws(SyncError) -> SyncReport {
        guard dryRun else { return try await synchronize(names) }
        if let refusal = runner.networkRefusal { throw refusal }
        return try await store.forecast(
            with: runner.transport, datasets: names, options: runner.options.exchange
        ).withoutError()
    }

    /// Waits for a network that the policy allows, and synchronises then; at once if there is one.
    /// If it goes away again before anything was sent, waits anew.
    ///
    /// - Throws: what ``synchronize(_:)`` throws but `offline` and `expensiveNetwork`.
    @discardableResult
    public func synchronizeWhenConnected(
        _ names: [String]? = nil
    ) async throws(SyncError) -> SyncReport {
        while true {
            try await runner.untilConnected()
            do throws(SyncError) {
                return try await synchronize(names)
            } catch {
                guard [.offline, .expensiveNetwork].contains(error.code) else { throw error }
            }
        }
    }

    func run(_ wish: SyncWish) async throws(SyncError) -> SyncReport {
        switch await queue.join(wish) {
        case .success(let report): return report.narrowed(to: wish.names)
        case .failure(let error): throw error
        }
    }

    /// Whether a run is under way.
    public var isRunning: Bool { queue.isRunning }

    // MARK: - What happens

    /// All events from now on, for one consumer; ask again for another.
    public func events() -> SyncEvents {
        SyncEvents(mailbox: runner.events.open())
    }

    /// When an exchange of the dataset last ended whole, in milliseconds since 1970; nil if none
    /// ever did. The store keeps it for the next synchronizer of the same
    /// ``SynchronizerOptions/name``, though a loss of power may take back the last one. O(1).
    ///
    /// - Throws: `store`.
    public func lastSync(of dataset: String) throws(SyncError) -> UInt64? {
        try engine(dataset) { () throws(StoreError) in
            try SynchronizerBook(store, name: runner.options.name).lastSync(of: dataset)
        }
    }

    /// When the last run ended, well or not, in milliseconds since 1970; since this synchronizer
    /// was made.
    public var lastRun: UInt64? { runner.status.lastRun }

    /// When a run last ended with all its datasets exchanged whole, in milliseconds since 1970;
    /// since this synchronizer was made.
    public var lastSuccess: UInt64? { runner.status.lastSuccess }

    /// When a full exchange of all datasets last ended whole, in milliseconds since 1970. The store
    /// keeps it as ``lastSync(of:)``, so that ``SyncSchedule/fullSyncAfter`` holds beyond the end
    /// of the process.
    public var lastFullSync: UInt64? { runner.status.lastFullSync }

    /// What the last run failed with, or its first dataset that failed; nil if all went well, or
    /// there was none since this synchronizer was made.
    public var lastError: SyncError? { runner.status.lastError }

    /// What the last run did, all its attempts together; of a run that failed what it did until
    /// then, which stays, and why in ``SyncReport/error``. nil if there was none since this
    /// synchronizer was made.
    public var lastReport: SyncReport? { runner.status.lastReport }

    /// The other side, once it has said who it is.
    public var peer: ReplicaID? { runner.status.peer }

    // MARK: - End

    /// Ends everything: background work is stopped, a run under way is cancelled and has ended
    /// when this returns, callers who wait get `cancelled`, and the events end. The store stays
    /// open, and keeps the subscriptions. Calling it twice is fine; afterwards nothing can be
    /// started any more.
    public func shutdown() async {
        // First of all nothing more is taken in: what is begun from now on ends at once.
        let run = queue.closeAtOnce()
        await stop()
        await stopWatching()
        await run?.value
        runner.events.close()
    }
}

extension SyncRunner {
    /// Returns when there is a network that may be used.
    func untilConnected() async throws(SyncError) {
        guard networkRefusal != nil, let connectivity else { return }
        for await state in connectivity.changes() {
            if options.network.refusal(of: state) == nil { return }
        }
        guard Task.isCancelled else {
            throw SyncError(
                .offline, "the source of connectivity ended without a network; repeat later")
        }
        throw .cancelled()
    }
}
