import BenchmarkRows

/// Who does what, under which promise.
struct RowName: Hashable, Sendable {
    var workload: String
    var engine: String
    var config: String
    /// Nil: neither kind of accident is survived.
    var durability: DurabilityClass?

    var description: String {
        [workload, engine, config, durability?.rawValue ?? "none"].joined(separator: " ")
    }
}

/// The outcome of one round.
struct Measurement: Sendable {
    var seconds: Double
    /// Records that were brought across; nil if the row is no rate.
    var operations: Int?
    /// Payload of TCP or pipe in both directions; nil if there is none, or it is not known.
    var wireBytes: Int?
    /// Of the messages alone, without what carries them.
    var messageBytes: Int?
    /// What the row is about, if that is memory: then neither a rate nor the time.
    var bytes: Int?
    /// Records in the store, if they are not those of the working set.
    var recordCount: Int?
    /// Further figures, by name.
    var more: [String: Double] = [:]

    /// What a row is compared by; more is better.
    var rate: Double { bytes.map { 1 / Double(max($0, 1)) } ?? Double(operations ?? 1) / seconds }

    func of(_ operations: Int) -> Measurement {
        var measurement = self
        measurement.operations = operations
        return measurement
    }

    mutating func add(_ other: Measurement) {
        seconds += other.seconds
        wireBytes = Self.sum(wireBytes, other.wireBytes)
        messageBytes = Self.sum(messageBytes, other.messageBytes)
    }

    func divided(by count: Int) -> Measurement {
        var measurement = self
        measurement.seconds /= Double(count)
        measurement.wireBytes = wireBytes.map { $0 / count }
        measurement.messageBytes = messageBytes.map { $0 / count }
        return measurement
    }

    private static func sum(_ left: Int?, _ right: Int?) -> Int? {
        guard let right else { return left }
        return (left ?? 0) + right
    }
}

/// What the rounds of one row came to.
struct Outcome: Sendable {
    let name: RowName
    let workingSet: WorkingSet
    let rounds: [Measurement]
    /// Whether it stopped before all rounds because they took too long.
    let isCapped: Bool

    /// The slower of the two in the middle if the number of rounds is even.
    var median: Measurement {
        rounds.sorted { $0.rate < $1.rate }[(rounds.count - 1) / 2]
    }

    var row: Row {
        let median = median
        var row = Row(engine: name.engine, config: name.config, workload: name.workload)
        row.durability = name.durability
        row.valueBytes = workingSet.valueBytes
        row.n = median.recordCount ?? workingSet.recordCount
        row.threads = 1
        if median.bytes != nil {
            row.setRounds(rounds.map { Double($0.bytes ?? 0) }, unit: "bytes")
        } else if median.operations == nil {
            row.setRounds(rounds.map(\.seconds), unit: "s")
        } else {
            row.setRounds(rounds.map(\.rate))
        }
        row.extra.operations = median.operations
        row.extra.seconds = median.seconds
        row.extra.capped = isCapped ? true : nil
        row.extra.wireBytes = median.wireBytes
        row.extra.messageBytes = median.messageBytes
        row.extra.more = median.more.isEmpty ? nil : median.more
        return row
    }
}
