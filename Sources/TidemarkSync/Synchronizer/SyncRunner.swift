import Synchronization
import Tidemark

// One run from its beginning to its one completion:
//
//   started ─▶ [network allowed? ─▶ exchange ─▶ done or permanent? ─▶ wait]... ─▶ ended | failed
//
// There is one way out, through `complete`, whatever happened before: errors are values here and
// not thrown past it, and a cancelled run ends as a failed one.

/// Carries out the runs of a ``Synchronizer``. Holds no state of a run.
final class SyncRunner: Sendable {
    let store: Store
    let transport: any SyncTransport
    let options: SynchronizerOptions
    let schedule: SyncSchedule
    let connectivity: (any ConnectivitySource)?
    let environment: any SyncEnvironment
    let events: EventHub
    private let history: Mutex<SyncHistory>

    init(
        store: Store, transport: any SyncTransport, options: SynchronizerOptions,
        schedule: SyncSchedule, connectivity: (any ConnectivitySource)?,
        environment: any SyncEnvironment, lastFullSync: UInt64?
    ) {
        self.store = store
        self.transport = transport
        self.options = options.bounded
        self.schedule = schedule
        self.connectivity = connectivity
        self.environment = environment
        events = EventHub(countMax: self.options.eventsMax)
        history = Mutex(SyncHistory(lastFullSync: lastFullSync))
    }

    var status: SyncHistory { history.withLock { $0 } }

    /// After it was found that another one stands behind the address now.
    func forgetPeer() {
        history.withLock { $0.peer = nil }
    }

    @concurrent
    func run(_ wish: SyncWish) async -> RunQueue.Outcome {
        events.send(.started(datasets: wish.names?.sorted()))
        let outcome = await withinDeadline { await self.attempts(wish) }
        complete(outcome, wish)
        return outcome
    }

    private func complete(_ outcome: RunQueue.Outcome, _ wish: SyncWish) {
        let now = environment.now()
        history.withLock { $0.note(outcome, at: now) }
        switch outcome {
        case .success(let report):
            if wish.names == nil, report.isComplete {
                keep { (book) throws(StoreError) in try book.noteAll(at: now) }
            }
            if wish.isBackground {
                for error in report.datasets.compactMap(\.error) {
                    events.send(.backgroundFailure(error))
                }
            }
            events.send(.ended(report))
        case .failure(let error):
            // Who stopped the background work knows that it was stopped.
            if wish.isBackground, error.code != .cancelled {
                events.send(.backgroundFailure(error))
            }
            events.send(.failed(error))
        }
    }

    /// Why nothing may be sent now.
    var networkRefusal: SyncError? {
        connectivity.flatMap { options.network.refusal(of: $0.connectivity) }
    }

    // MARK: - Attempts

    private func attempts(_ wish: SyncWish) async -> RunQueue.Outcome {
        var total = SyncReport()
        let outcome = await attempts(wish, &total)
        let report = total
        history.withLock { $0.lastReport = report }
        return outcome
    }

    /// - Parameter total: what all attempts did together, whatever the last one ended with.
    private func attempts(
        _ wish: SyncWish, _ total: inout SyncReport
    ) async -> RunQueue.Outcome {
        let isFull = isFull(wish)
        var due = wish.names.map { $0.sorted() }
        for attempt in 1...options.attemptsMax {
            if let refusal = networkRefusal {
                return .failure(refusal.after(total.firstError, attempts: attempt - 1))
            }
            let report = await store.synchronizeEach(
                with: transport, datasets: due, options: exchangeOptions(wish, isFull))
            total.takeIn(report)
            let now = environment.now()
            // Whatever becomes of the attempts that follow.
            keep { (book) throws(StoreError) in try book.note(report, at: now) }
            let isLast = attempt == options.attemptsMax
            if let error = report.error {
                guard error.isTransient, !isLast else {
                    return .failure(error.after(nil, attempts: attempt))
                }
            } else {
                let again = report.datasets.filter { $0.error?.isTransient ?? false }
                guard !again.isEmpty, !isLast else { break }
                due = again.map(\.dataset)
            }
            let delay = options.backOff.delay(
                after: attempt, random: environment.random(),
                atLeast: report.firstError?.retryAfter)
            do throws(CancellationError) {
                try await environment.sleep(for: delay)
            } catch {
                return .failure(SyncError.cancelled().after(total.firstError, attempts: attempt))
            }
        }
        if isFull, wish.names == nil, total.isComplete {
            let now = environment.now()
            history.withLock { $0.lastFullSync = now }
            keep { (book) throws(StoreError) in try book.noteFullSync(at: now) }
        }
        return .success(total)
    }

    /// Writes down a time. That it cannot be written is told nobody: nothing depends on it, and
    /// what ails the store shows in the exchange itself.
    private func keep(_ note: (SynchronizerBook) throws(StoreError) -> Void) {
        do throws(StoreError) {
            try note(SynchronizerBook(store, name: options.name))
        } catch {
            return
        }
    }

    private func isFull(_ wish: SyncWish) -> Bool {
        wish.isFull
            || wish.names == nil
                && schedule.isFullSyncDue(last: status.lastFullSync, now: environment.now())
    }

    private func exchangeOptions(_ wish: SyncWish, _ isFull: Bool) -> SyncOptions {
        var exchange = options.exchange
        exchange.isFull = isFull
        exchange.looksAtAll = wish.looksAtAll
        let events = events
        exchange.observer = { events.send($0) }
        return exchange
    }

    // MARK: - Deadline

    private enum Finish: Sendable {
        case outcome(RunQueue.Outcome)
        case late
        case cut
    }

    /// Cancels the work when it is late. The work hears of a cancellation of this task, too.
    private func withinDeadline(
        _ work: @escaping @Sendable () async -> RunQueue.Outcome
    ) async -> RunQueue.Outcome {
        guard let deadline = options.deadline else { return await work() }
        let environment = environment
        return await withTaskGroup(of: Finish.self) { group in
            group.addTask { .outcome(await work()) }
            group.addTask {
                do throws(CancellationError) {
                    try await environment.sleep(for: deadline)
                    return .late
                } catch {
                    return .cut
                }
            }
            var isLate = false
            var result = RunQueue.Outcome.failure(.cancelled())
            for await finish in group {
                switch finish {
                case .outcome(let outcome):
                    result = outcome
                    if isLate, case .failure(let error) = outcome, error.code == .cancelled {
                        result = .failure(.late(deadline, error))
                    }
                    group.cancelAll()
                    return result
                case .late:
                    isLate = true
                    group.cancelAll()
                case .cut:
                    break
                }
            }
            return result
        }
    }
}

/// What a ``Synchronizer`` remembers of its runs, since it was made.
struct SyncHistory: Sendable {
    /// When the last run ended, whatever came of it. All times are milliseconds since 1970.
    var lastRun: UInt64?
    /// When a run last ended with every dataset exchanged whole.
    var lastSuccess: UInt64?
    /// When a full exchange of all datasets last ended whole.
    var lastFullSync: UInt64?
    /// What the last run failed with.
    var lastError: SyncError?
    /// What all attempts of the last run did together, also if it failed.
    var lastReport: SyncReport?
    /// The other side, once it has said who it is.
    var peer: ReplicaID?

    init(lastFullSync: UInt64?) {
        self.lastFullSync = lastFullSync
    }

    mutating func note(_ outcome: RunQueue.Outcome, at now: UInt64) {
        lastRun = now
        switch outcome {
        case .success(let report):
            lastError = report.firstError
            peer = report.peer ?? peer
            if report.isComplete { lastSuccess = now }
        case .failure(let error):
            lastError = error
            lastReport?.error = error
        }
    }
}

extension SyncError {
    /// The same error, told after several attempts: with the reason of the one before, if this one
    /// only says why there was no further attempt.
    func after(_ reason: SyncError?, attempts: Int) -> SyncError {
        guard attempts > 1 || reason != nil else { return self }
        let times = attempts == 1 ? "1 attempt" : "\(attempts) attempts"
        let before = reason.map { ", the last of which failed with: \($0.message)" } ?? ""
        return SyncError(
            code, "\(message) (after \(times)\(before))", peer: peer ?? reason?.peer,
            dataset: dataset ?? reason?.dataset, key: key ?? reason?.key,
            storeError: storeError ?? reason?.storeError,
            retryAfter: retryAfter ?? reason?.retryAfter)
    }

    fileprivate static func late(_ deadline: Duration, _ error: SyncError) -> SyncError {
        SyncError(
            .timedOut,
            "the run did not end within \(deadline); what was applied stays, repeat it to go on "
                + "or give it a later deadline", peer: error.peer, dataset: error.dataset)
    }
}
