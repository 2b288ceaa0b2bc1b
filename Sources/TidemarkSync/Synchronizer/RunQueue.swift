import Synchronization

// One run at a time, and every caller gets the outcome of a run that began after its call.
//
//   caller A ─▶ waiting ─▶ run 1 under way ──────────▶ outcome 1 for A
//   callers B, C, D while run 1 goes on ─▶ waiting ─▶ run 2 ─▶ outcome 2 for B, C and D
//
// A run that is under way may have passed by what a new caller has just written, so nobody joins
// it; all who come while it goes on share the next one. So any number of callers cost two runs,
// none is refused and none is lost.
//
// Invariants:
// - Each caller's continuation is in exactly one of `waiting` and `served`, and is resumed by
//   whoever takes it out.
// - While a run is under way `task` is there; only that run's own end takes it away.
// - Callers whose task is cancelled leave at once, but for the last one of a run under way: it
//   cancels the run and gets what comes of that, so that nothing goes on behind its back.

/// What a caller wants of a run.
struct SyncWish: Hashable, Sendable {
    /// nil: all datasets of both sides.
    var names: Set<String>?
    /// Whether to begin at position zero.
    var isFull = false
    /// Whether datasets are to be looked at in which nothing has changed.
    var looksAtAll = false
    /// Whether there is nobody who would be told of an error.
    var isBackground = false

    /// What satisfies both.
    func joined(with other: SyncWish) -> SyncWish {
        var joined = self
        if let ours = names, let theirs = other.names {
            joined.names = ours.union(theirs)
        } else {
            joined.names = nil
        }
        joined.isFull = isFull || other.isFull
        // Whoever asked for a dataset by its name is to hear of it.
        let isNamedInAll = (names == nil) != (other.names == nil)
        joined.looksAtAll = looksAtAll || other.looksAtAll || isNamedInAll
        joined.isBackground = isBackground || other.isBackground
        return joined
    }
}

/// Lets callers take part in runs, one run at a time.
final class RunQueue: Sendable {
    typealias Outcome = Result<SyncReport, SyncError>

    private struct Caller {
        let wish: SyncWish
        let continuation: CheckedContinuation<Outcome, Never>
    }

    private struct State {
        var nextToken = 0
        /// Callers of the run that comes next.
        var waiting: [Int: Caller] = [:]
        /// Callers of the run under way.
        var served: [Int: Caller] = [:]
        /// The run under way.
        var task: Task<Void, Never>?
        var isClosed = false
    }

    private let state = Mutex(State())
    private let perform: @Sendable (SyncWish) async -> Outcome

    /// - Parameter perform: one run. Ends soon after its task is cancelled.
    init(perform: @escaping @Sendable (SyncWish) async -> Outcome) {
        self.perform = perform
    }

    /// Takes part in a run that begins after this call.
    func join(_ wish: SyncWish) async -> Outcome {
        let token = state.withLock { state in
            state.nextToken += 1
            return state.nextToken
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let refusal = state.withLock { state -> SyncError? in
                    // Looked at under the lock: a cancellation that comes later finds the caller.
                    guard !Task.isCancelled else { return .cancelled() }
                    guard !state.isClosed else { return Self.closed }
                    state.waiting[token] = Caller(wish: wish, continuation: continuation)
                    startNext(&state)
                    return nil
                }
                if let refusal { continuation.resume(returning: .failure(refusal)) }
            }
        } onCancel: {
            leave(token)
        }
    }

    /// Whether a run is under way.
    var isRunning: Bool { state.withLock { $0.task != nil } }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// How many callers wait for the next run.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Begins the next run if there is none under way and somebody waits for it.
    private func startNext(_ state: inout State) {
        guard state.task == nil, !state.waiting.isEmpty else { return }
        state.served = state.waiting
        state.waiting = [:]
        let wishes = state.served.values.map(\.wish)
        let wish = wishes.dropFirst().reduce(wishes[0]) { $0.joined(with: $1) }
        state.task = Task { await self.run(wish) }
    }

    private func run(_ wish: SyncWish) async {
        let outcome = await perform(wish)
        let callers = state.withLock { state in
            defer { startNext(&state) }
            state.task = nil
            defer { state.served = [:] }
            return state.served
        }
        for (_, caller) in callers.sorted(by: { $0.key < $1.key }) {
            caller.continuation.resume(returning: outcome)
        }
    }

    /// What a cancelled caller does.
    private func leave(_ token: Int) {
        let (caller, task) = state.withLock { state -> (Caller?, Task<Void, Never>?) in
            if let caller = state.waiting.removeValue(forKey: token) { return (caller, nil) }
            guard state.served[token] != nil else { return (nil, nil) }
            guard state.served.count > 1 else { return (nil, state.task) }
            return (state.served.removeValue(forKey: token), nil)
        }
        task?.cancel()
        caller?.continuation.resume(returning: .failure(.cancelled()))
    }

    /// Refuses new callers, sends away those who wait, and cancels the run under way, which is
    /// returned.
    @discardableResult
    func closeAtOnce() -> Task<Void, Never>? {
        let (callers, task) = state.withLock { state in
            state.isClosed = true
            defer { state.waiting = [:] }
            return (state.waiting, state.task)
        }
        task?.cancel()
        for (_, caller) in callers.sorted(by: { $0.key < $1.key }) {
            caller.continuation.resume(returning: .failure(Self.closed))
        }
        return task
    }

    private static let closed = SyncError(
        .cancelled, "the synchronizer was shut down; make another one to go on")
}
