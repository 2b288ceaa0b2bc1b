import BenchmarkRows

/// The samples of all rounds, and what is left of them when the medians are taken.
struct Results {
    /// What makes a row one of its own.
    struct Key: Hashable {
        var engine: EngineName
        var workload: String
        var valueBytes: Int
    }

    private var samples: [Key: [Sample]] = [:]
    private var order: [Key] = []

    mutating func add(_ sample: Sample, of engine: EngineName) {
        let key = Key(engine: engine, workload: sample.workload, valueBytes: sample.valueBytes)
        if samples[key] == nil { order.append(key) }
        samples[key, default: []].append(sample)
    }

    /// The rows of all engines, each with its share of the limit that it stands next to.
    func rows(limits: [Row]) -> [Row] {
        order.map { key in
            var row = Row(key, samples[key] ?? [])
            if key.engine.engine == TidemarkKind.engine {
                row.extra.limit = NearestLimit.share(of: row, in: limits)
            }
            return row
        }
    }
}

extension Row {
    /// The medians of the rounds' samples; curves are those of the median round.
    init(_ key: Results.Key, _ samples: [Sample]) {
        let figures = samples.map { $0.value ?? $0.operationsPerSecond ?? 0 }
        let ranked = samples.indices.sorted { figures[$0] < figures[$1] }
        let middle = samples[ranked[ranked.count / 2]]
        self.init(
            engine: key.engine.engine, config: key.engine.config, workload: key.workload)
        durability = middle.durability
        valueBytes = key.valueBytes
        n = middle.records
        threads = middle.threads
        setRounds(figures, unit: middle.unit)
        let latencies = samples.compactMap(\.latency)
        if !latencies.isEmpty {
            p50Us = Self.median(latencies.map(\.p50))
            p99Us = Self.median(latencies.map(\.p99))
            p999Us = Self.median(latencies.map(\.p999))
            maxUs = Self.median(latencies.map(\.max))
        }
        extra.operations = middle.value == nil ? middle.operations : nil
        extra.seconds = middle.value == nil ? middle.seconds : nil
        extra.capped = samples.contains(where: \.isCapped) ? true : nil
        extra.timeline = middle.timeline.map { slices in
            slices.enumerated().map { [Double($0.offset + 1) / 10, $0.element] }
        }
        extra.latency = middle.latency?.curve
        extra.more = middle.more
    }
}
