public import Logging
public import Metrics
import Synchronization
public import Tidemark

/// Passes on what happens in a store to swift-log and swift-metrics.
///
/// ```swift
/// let telemetry = StoreTelemetry(name: "notes", logger: logger)
/// let store = try Store.open(at: "/var/lib/notes", observer: telemetry)
/// let sampling = Task { await telemetry.run(store, every: .seconds(10)) }
/// …
/// sampling.cancel()
/// try store.close()
/// ```
///
/// Events are logged as they come, with their figures as metadata, and the durations in them go
/// into timers. Counters and gauges are of what the store counts by itself; they move when
/// ``sample(_:)`` is called, by ``run(_:every:clock:)`` or by whoever is about to export them. So
/// neither costs a write or a read of the store anything.
///
/// Every metric has the dimension `store` with the name. One object serves one store at a time. The
/// article *Observability* of the module `Tidemark` lists all names, and they are kept.
public final class StoreTelemetry: StoreObserver {
    /// The value of the dimension `store`, and of the metadata of that key.
    public let name: String
    public let slowness: Duration
    private let logger: Logger?
    private let instruments: StoreInstruments
    /// As of the last sample.
    private let last = Mutex(StoreCounters.none)

    /// - Parameters:
    ///   - name: tells stores of one process apart; short, and always the same for the same store.
    ///   - logger: gets an entry for each event; nil for none.
    ///   - factory: makes the metrics; nil: the one with which `MetricsSystem` was bootstrapped,
    ///     which is the one that drops everything if it was not.
    ///   - slowness: from this on, a sync or a wait of a writer is logged.
    public init(
        name: String, logger: Logger? = nil, factory: (any MetricsFactory)? = nil,
        slowness: Duration = .milliseconds(100)
    ) {
        self.name = name
        self.slowness = slowness
        var logger = logger
        logger?[metadataKey: "store"] = "\(name)"
        self.logger = logger
        instruments = StoreInstruments(
            factory: factory ?? MetricsSystem.factory, dimensions: [("store", name)])
    }

    // MARK: - Events

    public func observe(_ event: StoreEvent, of path: String) {
        instruments.record(event)
        guard let logger else { return }
        let entry = LogEntry(event, path: path)
        logger.log(level: entry.level, entry.message, metadata: entry.metadata)
    }

    // MARK: - Counters

    /// Reads what the store has counted, adds to the counters what is new since the last sample,
    /// and sets the gauges. A store that was opened anew counts from 0 again, which is noticed.
    public func sample(_ store: Store) {
        last.withLock { last in
            let now = store.counters()
            instruments.record(now, since: now.opening == last.opening ? last : .none)
            last = now
        }
    }

    /// Samples now, again and again after each interval, and once more when the task is cancelled,
    /// upon which it returns.
    ///
    /// - Parameter interval: 10 milliseconds at least; shorter ones are taken for that.
    public func run<Time: Clock>(
        _ store: Store, every interval: Duration, clock: Time = ContinuousClock()
    ) async where Time.Duration == Duration {
        repeat {
            sample(store)
            // Only a cancellation ends a sleep early.
            try? await clock.sleep(for: max(interval, .milliseconds(10)))
        } while !Task.isCancelled
        sample(store)
    }
}
