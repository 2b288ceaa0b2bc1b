import Synchronization
package import Tidemark

/// Keeps every event of a store.
package final class RecordingObserver: StoreObserver {
    package let slowness: Duration
    private let kept = Mutex<[StoreEvent]>([])
    private let whenTold: @Sendable (StoreEvent) -> Void

    /// - Parameter whenTold: called with each event, when it is kept.
    package init(
        slowness: Duration = .seconds(1_000), whenTold: @escaping @Sendable (StoreEvent) -> Void
    ) {
        self.slowness = slowness
        self.whenTold = whenTold
    }

    package convenience init(slowness: Duration = .seconds(1_000)) {
        self.init(slowness: slowness) { _ in }
    }

    package func observe(_ event: StoreEvent, of path: String) {
        kept.withLock { $0.append(event) }
        whenTold(event)
    }

    /// So far. All of them once the store is closed.
    package var events: [StoreEvent] { kept.withLock { $0 } }

    package func forget() {
        kept.withLock { $0 = [] }
    }
}
