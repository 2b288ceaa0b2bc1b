import Glibc

/// The measurements in the form that all benchmarks of this package share: an array of objects,
/// one a line.
enum Rows {
    static func write(_ measurements: [Measurement], to path: String) throws {
        let rows = measurements.map(row).joined(separator: ",\n")
        guard let file = fopen(path, "w") else { throw MicroFailure("cannot write \(path)") }
        let isWritten = fputs("[\n\(rows)\n]\n", file) >= 0
        guard fclose(file) == 0, isWritten else { throw MicroFailure("cannot write \(path)") }
    }

    private static func row(_ measurement: Measurement) -> String {
        let rates = measurement.nanosecondsPerOperation.map { 1e9 / $0 }
        let median = 1e9 / measurement.medianNanoseconds
        var extra = [
            "\"allocations_per_op\":\(measurement.allocationsPerOperation)",
            "\"ns_per_op\":\(shown(measurement.medianNanoseconds))",
            "\"rounds\":[\(rates.map(shown).joined(separator: ","))]",
            "\"spread\":\(shown(measurement.spread))",
            "\"operations\":\(measurement.operationCount)",
        ]
        if let instructions = measurement.instructionsPerOperation {
            extra.append("\"instructions_per_op\":\(shown(instructions))")
        }
        let durability = measurement.isWriting ? "\"kill\"" : "null"
        return "{\"engine\":\"tidemark\",\"config\":\"lz4\","
            + "\"workload\":\"micro-\(measurement.name)\","
            + "\"durability\":\(durability),\"value_bytes\":\(Fixture.valueByteCount),"
            + "\"n\":\(MicroCase.recordCount),\"threads\":1,\"ops_per_s\":\(shown(median)),"
            + "\"p50_us\":null,\"p99_us\":null,\"p999_us\":null,\"max_us\":null,"
            + "\"extra\":{\(extra.joined(separator: ","))}}"
    }

    private static func shown(_ number: Double) -> String {
        String((number * 1_000).rounded() / 1_000)
    }
}
