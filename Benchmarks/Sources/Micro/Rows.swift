import BenchmarkRows

extension Measurement {
    /// In the form that all benchmarks of this package share.
    var row: Row {
        var row = Row(engine: "tidemark", config: "lz4", workload: workload)
        row.durability = isWriting ? .kill : nil
        row.valueBytes = Fixture.valueByteCount
        row.n = MicroCase.recordCount
        row.threads = 1
        row.setRounds(nanosecondsPerOperation.map { 1e9 / $0 })
        row.extra.operations = operationCount
        row.extra.nsPerOp = medianNanoseconds
        row.extra.allocationsPerOp = allocationsPerOperation
        row.extra.instructionsPerOp = instructionsPerOperation
        return row
    }

    private var workload: String { MicroCase.workload(name) }
}

extension MicroCase {
    /// The case's name among the workloads of all benchmarks.
    static func workload(_ name: String) -> String { "micro-\(name)" }
}
