import BenchmarkRows

/// What one child process measured of one workload in one round.
struct Sample: Codable, Sendable {
    var workload: String
    var durability: DurabilityClass?
    var valueBytes: Int
    var records: Int
    var threads = 1
    var operations = 0
    var seconds = 0.0
    var isCapped = false
    /// Figures that are no rate.
    var value: Double?
    var unit: String?
    var latency: Latency?
    /// Operations a second in each tenth of a second.
    var timeline: [Double]?
    /// Further figures, by name.
    var more: [String: Double]?

    var operationsPerSecond: Double? {
        value == nil && seconds > 0 ? Double(operations) / seconds : nil
    }
}

/// A distribution of latencies in microseconds.
struct Latency: Codable, Sendable {
    var p50: Double
    var p99: Double
    var p999: Double
    var max: Double
    /// Pairs of percentile and microseconds.
    var curve: [[Double]]
}
