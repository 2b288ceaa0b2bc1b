import Foundation

/// What an acknowledged write survives; rows compare engines at the same one.
public enum DurabilityClass: String, Codable, Sendable, CaseIterable {
    /// The end of the process by `kill -9`.
    case kill
    /// The loss of power.
    case power
}

/// One line of the results: the median over the rounds. Names are stable.
public struct Row: Encodable, Sendable {
    /// "tidemark", "rocksdb", ...; "limit" and "machine" for what they ran on.
    public var engine: String
    /// The make of the engine.
    public var config: String
    public var workload: String
    public var durability: DurabilityClass?
    public var valueBytes: Int?
    /// Records in the store.
    public var n: Int?
    public var threads: Int?
    /// Nil for what is no rate: then `extra.value` and `extra.unit` say it.
    public var opsPerS: Double?
    public var p50Us: Double?
    public var p99Us: Double?
    public var p999Us: Double?
    public var maxUs: Double?
    public var extra = Extra()

    /// Whatever only some rows have.
    public struct Extra: Encodable, Sendable {
        /// The rates, or values, of all rounds.
        public var rounds: [Double]?
        /// (Greatest - least) / median; nil of one round.
        public var spread: Double?
        public var operations: Int?
        public var seconds: Double?
        /// Whether the time allowed ended before all was done.
        public var capped: Bool?
        /// Pairs of second and operations a second.
        public var timeline: [[Double]]?
        /// Pairs of percentile and microseconds.
        public var latency: [[Double]]?
        public var limit: LimitShare?
        /// Figures that are no rate, and their unit: "s", "ratio" or "bytes".
        public var value: Double?
        public var unit: String?
        public var bytesPerS: Double?
        public var what: String?
        public var version: String?
        public var settings: String?
        public var environment: [String: String]?
        public var wireBytes: Int?
        public var messageBytes: Int?
        public var nsPerOp: Double?
        public var allocationsPerOp: Double?
        public var instructionsPerOp: Double?
        /// Further figures, by name.
        public var more: [String: Double]?
    }

    /// How near a row comes to what the machine can do.
    public struct LimitShare: Encodable, Sendable {
        public var name: String
        public var size: Int
        /// Ours divided by the limit, both in operations a second.
        public var ratio: Double

        public init(name: String, size: Int, ratio: Double) {
            self.name = name
            self.size = size
            self.ratio = ratio
        }
    }

    public init(engine: String, config: String, workload: String) {
        self.engine = engine
        self.config = config
        self.workload = workload
    }

    enum CodingKeys: String, CodingKey {
        case engine, config, workload, durability, valueBytes, n, threads, opsPerS, p50Us, p99Us
        case p999Us, maxUs, extra
    }

    /// All names are written, those without a value as null.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(engine, forKey: .engine)
        try container.encode(config, forKey: .config)
        try container.encode(workload, forKey: .workload)
        try container.encode(durability, forKey: .durability)
        try container.encode(valueBytes, forKey: .valueBytes)
        try container.encode(n, forKey: .n)
        try container.encode(threads, forKey: .threads)
        try container.encode(opsPerS, forKey: .opsPerS)
        try container.encode(p50Us, forKey: .p50Us)
        try container.encode(p99Us, forKey: .p99Us)
        try container.encode(p999Us, forKey: .p999Us)
        try container.encode(maxUs, forKey: .maxUs)
        try container.encode(extra, forKey: .extra)
    }
}

extension Row {
    /// What the row is compared by; rates: greater is better, values: smaller.
    public var figure: Double? { opsPerS ?? extra.value }

    /// How many times better this row is than another of the same workload.
    public func ratio(to other: Row) -> Double? {
        guard let mine = figure, let theirs = other.figure, mine > 0, theirs > 0 else {
            return nil
        }
        return opsPerS == nil ? theirs / mine : mine / theirs
    }

    /// Takes the figures of all rounds and keeps their median and spread.
    /// - Parameter unit: what the figures are, if they are no rates.
    public mutating func setRounds(_ figures: [Double], unit: String? = nil) {
        let median = Self.median(figures)
        extra.rounds = figures
        if let least = figures.min(), let greatest = figures.max(), figures.count > 1, median > 0 {
            extra.spread = (greatest - least) / median
        }
        if let unit {
            extra.value = median
            extra.unit = unit
        } else {
            opsPerS = median
        }
    }

    /// The middle one, or the mean of the two in the middle; 0 of none.
    public static func median(_ values: [Double]) -> Double {
        guard !values.isEmpty else { return 0 }
        let sorted = values.sorted()
        let half = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2
    }

    /// Writes rows as an array of objects, one a line.
    public static func write(_ rows: [Row], to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let lines = try rows.map { String(decoding: try encoder.encode($0), as: UTF8.self) }
        try Data(("[\n" + lines.joined(separator: ",\n") + "\n]\n").utf8)
            .write(to: URL(fileURLWithPath: path))
    }
}
