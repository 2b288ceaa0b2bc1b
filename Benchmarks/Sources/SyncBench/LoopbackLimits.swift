import BenchmarkRows
import CLimits

/// What the loopback interface can do, measured in the same run: the physical limit that the
/// exchanges of Tidemark stand next to.
struct LoopbackLimits {
    private static let throughputName = "loopback-tcp-throughput"
    private static let roundTripName = "loopback-tcp-roundtrip"
    private static let roundCount = 5
    private static let secondsPerRound = 0.05

    private let throughput: Row
    private let roundTrip: Row

    /// - Parameter directory: that the limits' interface asks for; no file is made there.
    init(in directory: String) throws {
        throughput = try Self.measure(Self.throughputName, in: directory)
        roundTrip = try Self.measure(Self.roundTripName, in: directory)
    }

    var rows: [Row] { [throughput, roundTrip] }

    /// The row of an outcome; one of Tidemark's says which limit it stands next to, and how near.
    ///
    /// No exchange takes less than one round trip, nor less than its bytes take one way. The row
    /// stands next to that which takes longer.
    func row(of outcome: Outcome) -> Row {
        var row = outcome.row
        let median = outcome.median
        guard outcome.name.engine == "tidemark", let wireBytes = median.wireBytes,
            let bytesPerSecond = throughput.extra.bytesPerS,
            let roundTripsPerSecond = roundTrip.opsPerS, median.seconds > 0
        else { return row }
        let bytesSeconds = Double(wireBytes) / bytesPerSecond
        let roundTripSeconds = 1 / roundTripsPerSecond
        let limit = bytesSeconds > roundTripSeconds ? throughput : roundTrip
        row.extra.limit = Row.LimitShare(
            name: limit.workload, size: limit.valueBytes ?? 0,
            ratio: max(bytesSeconds, roundTripSeconds) / median.seconds)
        return row
    }

    private static func measure(_ name: String, in directory: String) throws -> Row {
        // What the bytes are does not matter: nothing on the way looks at them.
        let pool = [UInt8](repeating: 0xA5, count: 1 << 20)
        let table: UnsafePointer<limit_api> = limit_table()
        var place = 0
        while let cName = table[place].name, String(cString: cName) != name { place += 1 }
        let limit = table[place]
        guard limit.name != nil else { throw BenchmarkFailure("there is no limit \(name)") }
        var rates: [Double] = []
        var bytesPerSecond: [Double] = []
        for _ in 0..<roundCount {
            let result = limit.run(
                directory, limit.sizes.0, secondsPerRound, pool, pool.count)
            try require(
                result.operations > 0 && result.seconds > 0, "limit \(name) was not measured")
            rates.append(Double(result.operations) / result.seconds)
            bytesPerSecond.append(Double(result.bytes) / result.seconds)
        }
        var row = Row(engine: "limit", config: "sync", workload: name)
        row.valueBytes = limit.sizes.0
        row.setRounds(rates)
        row.extra.bytesPerS = Row.median(bytesPerSecond)
        row.extra.what = String(cString: limit.what)
        return row
    }
}
