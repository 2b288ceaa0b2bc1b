internal import Synchronization

/// Takes events from wherever they happen, and hands them to the observer on a thread of its own.
///
/// Thread rule: `tell` may be called by anyone, whatever lock of the store is held: its own lock is
/// the last to be taken, and is not held while the observer is called. Without an observer there is
/// no thread, and nothing is kept but the places of damage, to be counted.
final class EventDelivery: @unchecked Sendable {
    // Unchecked: what changes does so under `monitor`.

    private let observer: (any StoreObserver)?
    private let path: String
    /// From this on a sync or a wait is slow; `.max` without an observer.
    let slowNanoseconds: UInt64
    private let monitor = Monitor()
    private var waiting: ArraySlice<StoreEvent> = []
    /// Not told yet that they were lost.
    private var lost = 0
    private var lostSum = 0
    private var damagedPlaces: Set<StoreError.Location> = []
    private var damageSum = 0
    private var hasEnded = false
    private var thread: BackgroundThread?

    init(_ observer: (any StoreObserver)?, of path: String) {
        self.observer = observer
        self.path = path
        slowNanoseconds = observer?.slowness.nanosecondsClamped ?? .max
    }

    func tell(_ event: @autoclosure () -> StoreEvent) {
        guard observer != nil else { return }
        let event = event()
        monitor.withLock { enqueue(event) }
    }

    /// The same place is told of, and counted, once; after a thousand of them no more are. What
    /// only this attempt could not read is none.
    func tellDamage(_ error: StoreError) {
        guard error.code == .corruption || error.code == .inputOutput, !error.isOfEnvironment
        else { return }
        monitor.withLock {
            if let location = error.location {
                guard damagedPlaces.count < Limits.damagedPlacesMax,
                    damagedPlaces.insert(location).inserted
                else { return }
            }
            damageSum += 1
            if observer != nil { enqueue(.damageFound(error)) }
        }
    }

    /// Where damage was found since the store was opened: a thousand places at most.
    var places: [StoreError.Location] { monitor.withLock { Array(damagedPlaces) } }

    /// Forgets the places in files that are no longer part of the store, to make room for others.
    func forgetPlaces(in paths: Set<String>) {
        monitor.withLock { damagedPlaces = damagedPlaces.filter { !paths.contains($0.path) } }
    }

    /// How many events were lost, and how many damaged places found.
    var counts: (lost: Int, damages: Int) { monitor.withLock { (lostSum, damageSum) } }

    /// Under `monitor`.
    private func enqueue(_ event: StoreEvent) {
        guard !hasEnded else { return }
        guard waiting.count < Limits.waitingEventsMax else {
            lost += 1
            lostSum += 1
            return
        }
        noteLost()
        waiting.append(event)
        monitor.broadcast()
    }

    private func noteLost() {
        guard lost > 0 else { return }
        waiting.append(.eventsLost(lost))
        lost = 0
    }

    // MARK: - The thread

    /// Begins to call the observer, with that event before what has been told already. Once, when
    /// the store is open.
    func start(_ first: () -> StoreEvent) {
        guard observer != nil else { return }
        monitor.withLock {
            waiting.insert(first(), at: waiting.startIndex)
            thread = BackgroundThread { [self] in run() }
        }
    }

    private func run() {
        while let event = next() { observer?.observe(event, of: path) }
    }

    /// Waits for an event; nil when there will be none.
    private func next() -> StoreEvent? {
        monitor.lock()
        defer { monitor.unlock() }
        while true {
            if let event = waiting.popFirst() { return event }
            if hasEnded { return nil }
            monitor.wait()
        }
    }

    /// Tells the last event, which is never lost, and waits until the observer has been told
    /// everything, unless it is the observer who calls. Later calls do nothing.
    func end(_ last: StoreEvent) {
        let thread: BackgroundThread? = monitor.withLock {
            guard !hasEnded else { return nil }
            hasEnded = true
            noteLost()
            waiting.append(last)
            monitor.broadcast()
            return self.thread
        }
        thread?.finish()
    }
}

extension Duration {
    /// Rounded down; 0 if it is negative, the greatest number if it is longer than 584 years.
    var nanosecondsClamped: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (product, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carries) = product.addingReportingOverflow(
            UInt64(attoseconds / 1_000_000_000))
        return overflow || carries ? .max : sum
    }

    /// A function and no initializer: in an optimised build, a look through the initializers of
    /// `Duration` comes upon one that takes a `timespec` by another module than `Glibc`, and from
    /// then on the compiler denies that type's members to all files that import `Glibc`.
    static func ofNanoseconds(_ count: UInt64) -> Duration {
        .nanoseconds(Int64(clamping: count))
    }
}
