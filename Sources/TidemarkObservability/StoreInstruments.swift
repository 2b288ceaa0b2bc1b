import Metrics
import Tidemark

/// The metrics of one store.
struct StoreInstruments: Sendable {
    private let counters: [Counter]
    private let times: [FloatingPointCounter]
    private let gauges: [Gauge]
    private let timers: [StoreMetrics.Timing: Timer]

    init(factory: any MetricsFactory, dimensions: [(String, String)]) {
        counters = StoreMetrics.counters.map {
            Counter(label: $0.name, dimensions: dimensions, factory: factory)
        }
        times = StoreMetrics.times.map {
            FloatingPointCounter(label: $0.name, dimensions: dimensions, factory: factory)
        }
        gauges = StoreMetrics.gauges.map {
            Gauge(label: $0.name, dimensions: dimensions, factory: factory)
        }
        var timers: [StoreMetrics.Timing: Timer] = [:]
        for timing in StoreMetrics.Timing.allCases {
            timers[timing] = Timer(
                label: timing.rawValue, dimensions: dimensions, factory: factory)
        }
        self.timers = timers
    }

    /// What has come since an earlier sample, and how it stands.
    func record(_ now: StoreCounters, since last: StoreCounters) {
        for (counter, metric) in zip(counters, StoreMetrics.counters) {
            let growth = metric.value(now) - metric.value(last)
            if growth > 0 { counter.increment(by: growth) }
        }
        for (counter, metric) in zip(times, StoreMetrics.times) {
            let growth = metric.value(now) - metric.value(last)
            if growth > .zero { counter.increment(by: growth.inSeconds) }
        }
        for (gauge, metric) in zip(gauges, StoreMetrics.gauges) {
            gauge.record(metric.value(now))
        }
    }

    func record(_ event: StoreEvent) {
        let timing: (StoreMetrics.Timing, Duration)? =
            switch event {
            case .opened(let opening): (.opening, opening.duration)
            case .logSealed(let sealing): (.seal, sealing.duration)
            case .mergeEnded(let merge): (.merge, merge.duration)
            case .expirySwept(let sweep): (.expirySweep, sweep.duration)
            case .syncWasSlow(let duration): (.slowSync, duration)
            case .writerWaited(let duration): (.slowWriterWait, duration)
            case .backupEnded(let duration, _): (.backup, duration)
            case .verificationEnded(let duration, _): (.verification, duration)
            default: nil
            }
        if let (timing, duration) = timing { timers[timing]?.record(duration: duration) }
    }
}

/// Names and sources of all metrics. The article *Observability* says what each means.
enum StoreMetrics {
    struct Metric<Value>: Sendable {
        let name: String
        let value: @Sendable (StoreCounters) -> Value

        init(_ name: String, _ value: @escaping @Sendable (StoreCounters) -> Value) {
            self.name = "tidemark_store_" + name
            self.value = value
        }
    }

    static let counters: [Metric<Int64>] = [
        Metric("commits") { Int64($0.commits) },
        Metric("puts") { Int64($0.puts) },
        Metric("deletes") { Int64($0.deletes) },
        Metric("logged_bytes") { Int64(clamping: $0.bytesLogged) },
        Metric("syncs") { Int64($0.syncs) },
        Metric("writer_waits") { Int64($0.writerWaits) },
        Metric("seals") { Int64($0.logsSealed) },
        Metric("sealed_bytes") { Int64(clamping: $0.bytesSealed) },
        Metric("merges") { Int64($0.merges) },
        Metric("merged_in_bytes") { Int64(clamping: $0.bytesMergedIn) },
        Metric("merged_out_bytes") { Int64(clamping: $0.bytesMergedOut) },
        Metric("merge_dropped_entries") { Int64($0.entriesDropped) },
        Metric("expiry_sweeps") { Int64($0.expirySweeps) },
        Metric("expired_records") { Int64($0.recordsExpired) },
        Metric("long_key_searches") { Int64($0.longKeySearches) },
        Metric("damages") { Int64($0.damages) },
        Metric("lost_events") { Int64($0.eventsLost) },
    ]

    static let times: [Metric<Duration>] = [
        Metric("sync_seconds") { $0.syncTime },
        Metric("writer_wait_seconds") { $0.writerWaitTime },
        Metric("seal_seconds") { $0.sealTime },
        Metric("merge_seconds") { $0.mergeTime },
    ]

    static let gauges: [Metric<Double>] = [
        Metric("runs") { Double($0.runCount) },
        Metric("segments") { Double($0.segmentCount) },
        Metric("segment_bytes") { Double($0.segmentBytes) },
        Metric("logs") { Double($0.logCount) },
        Metric("log_bytes") { Double($0.logBytes) },
        Metric("log_entries") { Double($0.logEntries) },
        Metric("datasets_in_memory") { Double($0.datasetsInMemory) },
        Metric("longest_sync_seconds") { $0.longestSync.inSeconds },
        Metric("writer_stopped") { $0.isWriterStopped ? 1 : 0 },
    ]

    /// Timers, by what they time.
    enum Timing: String, CaseIterable {
        case opening = "tidemark_store_opening"
        case seal = "tidemark_store_seal"
        case merge = "tidemark_store_merge"
        case expirySweep = "tidemark_store_expiry_sweep"
        case slowSync = "tidemark_store_slow_sync"
        case slowWriterWait = "tidemark_store_slow_writer_wait"
        case backup = "tidemark_store_backup"
        case verification = "tidemark_store_verification"
    }
}

extension Duration {
    var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}
