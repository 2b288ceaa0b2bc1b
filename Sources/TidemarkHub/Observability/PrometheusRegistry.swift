public import CoreMetrics
import Synchronization

/// Keeps what is measured, and tells it in the text format that Prometheus reads.
///
/// ```swift
/// let registry = PrometheusRegistry.bootstrapped()
/// let hub = Hub(store: store, settings: settings, metrics: registry, logger: logger)
/// // GET /metrics
/// ```
///
/// Series are bounded: what is measured under more names and dimensions than that is counted by
/// nobody, so that dimensions which come from outside cannot fill the memory.
public final class PrometheusRegistry: MetricsFactory {
    enum Kind: String {
        case counter
        case gauge
        case histogram
    }

    /// A name with the values of its dimensions.
    struct Series: Hashable {
        let name: String
        /// As it stands in the text: `{route="sync"}`, or nothing.
        let labels: String
    }

    enum Cell {
        case counter(CounterCell)
        case floatingPointCounter(FloatingPointCounterCell)
        case gauge(GaugeCell)
        case histogram(HistogramCell)

        var kind: Kind {
            switch self {
            case .counter, .floatingPointCounter: .counter
            case .gauge: .gauge
            case .histogram: .histogram
            }
        }
    }

    private struct State {
        var cells: [Series: Cell] = [:]
        var kinds: [String: Kind] = [:]
    }

    private let state = Mutex(State())
    private let seriesMax: Int

    /// - Parameter seriesMax: names with their dimensions, at most so many.
    public init(seriesMax: Int = 10_000) {
        self.seriesMax = seriesMax
    }

    /// One that is the backend of swift-metrics in this process, for all libraries in it. To be
    /// called once, and by the process itself: a second backend is a mistake that traps.
    public static func bootstrapped() -> PrometheusRegistry {
        let registry = PrometheusRegistry()
        MetricsSystem.bootstrap(registry)
        return registry
    }

    // MARK: Text

    /// All series, in the text format of Prometheus 0.0.4, sorted by name. O(n log n).
    public func text() -> String {
        let cells = state.withLock { $0.cells }
        let names = Dictionary(grouping: cells.keys, by: \.name)
        var text = ""
        for name in names.keys.sorted() {
            let series = (names[name] ?? []).sorted { $0.labels < $1.labels }
            guard let kind = series.first.flatMap({ cells[$0]?.kind }) else { continue }
            text += "# TYPE \(name) \(kind.rawValue)\n"
            for entry in series {
                if let cell = cells[entry] { text += PrometheusText.lines(of: entry, cell) }
            }
        }
        return text
    }

    // MARK: MetricsFactory

    public func makeCounter(
        label: String, dimensions: [(String, String)]
    ) -> any CounterHandler {
        let cell = kept(label, dimensions) { .counter(CounterCell()) }
        if case .counter(let counter)? = cell { return counter }
        return CounterCell()
    }

    public func makeFloatingPointCounter(
        label: String, dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        let cell = kept(label, dimensions) { .floatingPointCounter(FloatingPointCounterCell()) }
        if case .floatingPointCounter(let counter)? = cell { return counter }
        return FloatingPointCounterCell()
    }

    public func makeMeter(
        label: String, dimensions: [(String, String)]
    ) -> any MeterHandler {
        let cell = kept(label, dimensions) { .gauge(GaugeCell()) }
        if case .gauge(let gauge)? = cell { return gauge }
        return GaugeCell()
    }

    /// One that aggregates is a histogram, one that does not a gauge.
    public func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        guard aggregate else {
            let cell = kept(label, dimensions) { .gauge(GaugeCell()) }
            if case .gauge(let gauge)? = cell { return gauge }
            return GaugeCell()
        }
        let bounds = HistogramCell.powersOfTwo
        let cell = kept(label, dimensions) { .histogram(HistogramCell(bounds: bounds)) }
        if case .histogram(let histogram)? = cell { return histogram }
        return HistogramCell(bounds: bounds)
    }

    /// A histogram of seconds; its name ends so.
    public func makeTimer(
        label: String, dimensions: [(String, String)]
    ) -> any TimerHandler {
        let name = label.hasSuffix("_seconds") ? label : label + "_seconds"
        let bounds = HistogramCell.seconds
        let cell = kept(name, dimensions) { .histogram(HistogramCell(bounds: bounds)) }
        if case .histogram(let histogram)? = cell { return histogram }
        return HistogramCell(bounds: bounds)
    }

    public func destroyCounter(_ handler: any CounterHandler) {
        remove(handler)
    }

    public func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {
        remove(handler)
    }

    public func destroyMeter(_ handler: any MeterHandler) {
        remove(handler)
    }

    public func destroyRecorder(_ handler: any RecorderHandler) {
        remove(handler)
    }

    public func destroyTimer(_ handler: any TimerHandler) {
        remove(handler)
    }

    // MARK: Series

    /// The one that is there, or a new one. nil if there are too many, or the name is in use for
    /// another kind.
    private func kept(
        _ label: String, _ dimensions: [(String, String)], _ make: () -> Cell
    ) -> Cell? {
        let series = Series(
            name: PrometheusText.name(label), labels: PrometheusText.labels(dimensions))
        return state.withLock { state -> Cell? in
            if let cell = state.cells[series] { return cell }
            let cell = make()
            let kind = state.kinds[series.name] ?? cell.kind
            guard kind == cell.kind, state.cells.count < seriesMax else { return nil }
            state.cells[series] = cell
            state.kinds[series.name] = kind
            return cell
        }
    }

    private func remove(_ handler: AnyObject) {
        state.withLock { state in
            let found = state.cells.first { _, cell in
                switch cell {
                case .counter(let own): own === handler
                case .floatingPointCounter(let own): own === handler
                case .gauge(let own): own === handler
                case .histogram(let own): own === handler
                }
            }
            if let series = found?.key { state.cells[series] = nil }
        }
    }
}
