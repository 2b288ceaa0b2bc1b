import Synchronization

/// The events of a ``Synchronizer`` from the moment at which this was made, for one consumer.
///
/// Ends when the synchronizer is shut down or let go, after what happened until then was given,
/// and when the consuming task is cancelled. Keeps no more than
/// ``SynchronizerOptions/eventsMax`` events; of what does not fit the newest are dropped, and
/// ``SyncEvent/lost(_:)`` stands in their place and says how many.
public struct SyncEvents: AsyncSequence, Sendable {
    let mailbox: EventMailbox

    public func makeAsyncIterator() -> Iterator {
        Iterator(mailbox: mailbox)
    }

    public struct Iterator: AsyncIteratorProtocol {
        let mailbox: EventMailbox

        public mutating func next() async -> SyncEvent? {
            await mailbox.next()
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async -> SyncEvent? {
            await mailbox.next()
        }
    }
}

/// What one consumer has still to be told.
final class EventMailbox: Sendable {
    private struct State {
        var events: [SyncEvent] = []
        /// Events before this index were taken. They are let go in bulk, so that taking one out
        /// does not move all the others.
        var taken = 0
        var waiting: CheckedContinuation<SyncEvent?, Never>?
        var isClosed = false

        var count: Int { events.count - taken }

        mutating func takeFirst() -> SyncEvent? {
            guard taken < events.count else { return nil }
            let event = events[taken]
            taken += 1
            if taken == events.count {
                events.removeAll(keepingCapacity: true)
                taken = 0
            } else if taken >= 64, taken * 2 >= events.count {
                events.removeFirst(taken)
                taken = 0
            }
            return event
        }

        mutating func add(_ event: SyncEvent, countMax: Int) {
            guard count >= countMax else { return events.append(event) }
            guard case .lost(let number) = events[events.count - 1] else {
                return events.append(.lost(1))
            }
            events[events.count - 1] = .lost(number + 1)
        }
    }

    private let state = Mutex(State())
    private let countMax: Int

    init(countMax: Int) {
        self.countMax = countMax
    }

    func add(_ event: SyncEvent) {
        let waiting = state.withLock { state -> CheckedContinuation<SyncEvent?, Never>? in
            guard !state.isClosed else { return nil }
            guard let waiting = state.waiting else {
                state.add(event, countMax: countMax)
                return nil
            }
            state.waiting = nil
            return waiting
        }
        waiting?.resume(returning: event)
    }

    func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            defer { state.waiting = nil }
            return state.waiting
        }
        waiting?.resume(returning: nil)
    }

    /// The next event; nil at the end and when the task is cancelled. For one task at a time: a
    /// second one that waits takes the place of the first, which gets nil.
    func next() async -> SyncEvent? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (event, isOver, displaced) = state.withLock {
                    state -> (SyncEvent?, Bool, Waiter?) in
                    let event = state.takeFirst()
                    // Looked at under the lock: a cancellation that comes later finds the waiter.
                    let isOver = event == nil && (state.isClosed || Task.isCancelled)
                    guard event == nil, !isOver else { return (event, isOver, nil) }
                    let displaced = state.waiting
                    state.waiting = continuation
                    return (nil, false, displaced)
                }
                displaced?.resume(returning: nil)
                if event != nil || isOver { continuation.resume(returning: event) }
            }
        } onCancel: {
            let waiting = state.withLock { state in
                defer { state.waiting = nil }
                return state.waiting
            }
            waiting?.resume(returning: nil)
        }
    }

    private typealias Waiter = CheckedContinuation<SyncEvent?, Never>
}

/// Passes events on to all consumers.
final class EventHub: Sendable {
    private struct Listener {
        weak var mailbox: EventMailbox?
    }

    private struct State {
        var listeners: [Listener] = []
        var isClosed = false
    }

    private let state = Mutex(State())
    private let countMax: Int

    init(countMax: Int) {
        self.countMax = countMax
    }

    func open() -> EventMailbox {
        let mailbox = EventMailbox(countMax: countMax)
        let isClosed = state.withLock { state in
            guard !state.isClosed else { return true }
            state.listeners.removeAll { $0.mailbox == nil }
            state.listeners.append(Listener(mailbox: mailbox))
            return false
        }
        if isClosed { mailbox.close() }
        return mailbox
    }

    /// Never blocks on a consumer. Under the lock, so that all consumers see one order; a consumer
    /// that waits is only made ready by it and runs later.
    func send(_ event: SyncEvent) {
        state.withLock { state in
            for listener in state.listeners {
                listener.mailbox?.add(event)
            }
        }
    }

    func close() {
        let listeners = state.withLock { state in
            state.isClosed = true
            defer { state.listeners = [] }
            return state.listeners
        }
        for listener in listeners {
            listener.mailbox?.close()
        }
    }
}
