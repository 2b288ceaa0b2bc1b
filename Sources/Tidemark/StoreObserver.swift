/// Somebody who is told what happens inside a store: a logger, a collector of metrics, a test.
///
///     struct Alarm: StoreObserver {
///         func observe(_ event: StoreEvent, of path: String) {
///             if case .writerStopped(let error) = event { ringTheBell("\(path): \(error)") }
///         }
///     }
///     let store = try Store.open(at: path, observer: Alarm())
///
/// The module `TidemarkObservability` has one for swift-log and swift-metrics. How often things
/// happen that happen often, writes and syncs, is not told one by one; ``Store/counters()`` counts
/// them. See the article <doc:Observability>.
public protocol StoreObserver: Sendable {
    /// Takes note of an event.
    ///
    /// Called for one event after the other, in the order in which they happened, on a thread that
    /// the store keeps for nothing else and that holds none of its locks. So it may take its time,
    /// and it may call the store, to close it, too. Events wait meanwhile, up to
    /// ``Limits/waitingEventsMax`` of them; what comes then is lost, and how much, is the next
    /// thing told. Closing waits until everything was told, so it must not wait for whoever
    /// closes.
    ///
    /// - Parameter path: the store's directory, as it was opened.
    func observe(_ event: StoreEvent, of path: String)

    /// From this on a sync or a wait of writers counts as slow, and is told about. Asked once, when
    /// the store is opened. 100 milliseconds unless it says otherwise.
    var slowness: Duration { get }
}

extension StoreObserver {
    public var slowness: Duration { .milliseconds(100) }
}
