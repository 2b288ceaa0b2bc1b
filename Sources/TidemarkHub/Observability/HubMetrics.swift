import Metrics
import Synchronization

/// What the hub measures of itself. All dimensions are words of the hub's own, so that callers
/// cannot make series.
///
/// | name | dimensions | what |
/// | --- | --- | --- |
/// | `tidemark_hub_requests_total` | route, status | requests that were answered |
/// | `tidemark_hub_request_duration_seconds` | route | from the head until the answer is ready |
/// | `tidemark_hub_refusals_total` | code | requests that were refused, by the code of the answer |
/// | `tidemark_hub_in_flight` | | requests under way |
/// | `tidemark_hub_waiting` | kind | calls of the store under way and waiting: reads, writes |
/// | `tidemark_hub_connections` | | open connections |
/// | `tidemark_hub_connections_refused_total` | | closed at once, because there were too many |
/// | `tidemark_hub_push_connections` | | devices that are connected for push |
/// | `tidemark_hub_outbox_entries` | | changes that wait for a stream |
final class HubMetrics: Sendable {
    private struct Answer: Hashable {
        let route: String
        let status: Int
    }

    private struct Instruments {
        var answers: [Answer: Counter] = [:]
        var durations: [String: Timer] = [:]
        var refusals: [String: Counter] = [:]
    }

    private let factory: any MetricsFactory
    private let instruments = Mutex(Instruments())
    private let inFlight: Meter
    private let waitingReads: Meter
    private let waitingWrites: Meter
    private let connections: Meter
    private let refusedConnections: Counter
    /// Of all requests but those that wait for news, for the console's charts.
    let allDurations = HistogramCell(bounds: HistogramCell.seconds)
    let pushConnections: Meter
    let outboxEntries: Meter

    init(factory: any MetricsFactory) {
        self.factory = factory
        func meter(_ name: String, _ dimensions: [(String, String)] = []) -> Meter {
            Meter(label: "tidemark_hub_\(name)", dimensions: dimensions, factory: factory)
        }
        inFlight = meter("in_flight")
        waitingReads = meter("waiting", [("kind", "reads")])
        waitingWrites = meter("waiting", [("kind", "writes")])
        connections = meter("connections")
        refusedConnections = Counter(
            label: "tidemark_hub_connections_refused_total", factory: factory)
        pushConnections = meter("push_connections")
        outboxEntries = meter("outbox_entries")
    }

    func began() {
        inFlight.increment()
    }

    /// - Parameter route: one of the hub's own words.
    func ended(_ route: String, status: Int, duration: Duration) {
        inFlight.decrement()
        let (counter, timer) = instruments.withLock { instruments in
            let answer = Answer(route: route, status: status)
            let counter =
                instruments.answers[answer]
                ?? Counter(
                    label: "tidemark_hub_requests_total",
                    dimensions: [("route", route), ("status", "\(status)")], factory: factory)
            instruments.answers[answer] = counter
            let timer =
                instruments.durations[route]
                ?? Timer(
                    label: "tidemark_hub_request_duration_seconds",
                    dimensions: [("route", route)], factory: factory)
            instruments.durations[route] = timer
            return (counter, timer)
        }
        counter.increment()
        timer.record(duration: duration)
        if route != HubRoute.nativeWatch.rawValue { allDurations.record(duration / .seconds(1)) }
    }

    func refused(_ code: String) {
        let counter = instruments.withLock { instruments in
            let counter =
                instruments.refusals[code]
                ?? Counter(
                    label: "tidemark_hub_refusals_total", dimensions: [("code", code)],
                    factory: factory)
            instruments.refusals[code] = counter
            return counter
        }
        counter.increment()
    }

    /// What stands at some value, as it is now.
    func sample(_ threads: HubThreads, connections count: Int) {
        let waiting = threads.callCounts
        waitingReads.set(Int64(waiting.reads))
        waitingWrites.set(Int64(waiting.writes))
        connections.set(Int64(count))
    }

    func refusedConnection() {
        refusedConnections.increment()
    }
}
