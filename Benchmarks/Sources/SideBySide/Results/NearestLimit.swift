import BenchmarkRows

/// Which physical limit a workload stands next to: the one thing that the machine must do for it
/// in any case.
enum NearestLimit {
    private struct Rule {
        var limit: String
        /// The size of the limit's operation that is wanted; the nearest measured one is taken.
        var size: (Int) -> Int
        /// How many of the limit's operations one of ours takes.
        var times: (Row, Row) -> Double
    }

    private static func record(_ valueBytes: Int) -> Int { valueBytes + Keys.bytes }

    private static func rule(for row: Row) -> Rule? {
        let once = { (_: Row, _: Row) in 1.0 }
        // As many of the limit's operations as it takes to move one of our records.
        let byBytes = { (row: Row, limit: Row) in
            Double(record(row.valueBytes ?? 0)) / Double(max(1, limit.valueBytes ?? 1))
        }
        switch row.workload {
        case "fillseq", "fillrandom", "overwrite", "deleterandom", "fillseq-batch",
            "fillrandom-batch", "ycsb-a", "readwhilewriting-put", "datasets-fill":
            return Rule(limit: "append-mapping", size: record, times: once)
        case "large-put":
            return Rule(limit: "append-mapping", size: record, times: byBytes)
        case "fillsync", "groupcommit":
            return Rule(limit: "rewrite-fdatasync", size: { _ in 4096 }, times: once)
        case "readrandom", "readmissing", "datasets-read", "readwhilewriting-get", "ycsb-b":
            return Rule(limit: "cache-miss-load", size: { _ in 0 }, times: once)
        case "readrandom-2t":
            return Rule(limit: "cache-miss-load", size: { _ in 0 }, times: { _, _ in 0.5 })
        case "scan" where row.config == "lz4":
            return Rule(limit: "lz4-decompress", size: { _ in 8192 }, times: byBytes)
        case "compact" where row.config == "lz4":
            return Rule(limit: "lz4-compress", size: { _ in 8192 }, times: byBytes)
        case "scan", "compact":
            return Rule(limit: "memcpy-large-area", size: record, times: byBytes)
        case "seek100", "prefixscan", "first-key-once", "first-key", "first-key-fresh":
            return Rule(limit: "pread-cached", size: { _ in 4096 }, times: once)
        case "large-get":
            return Rule(limit: "memcpy-large-area", size: record, times: byBytes)
        case "open-clean", "open-killed", "datasets-open":
            return Rule(limit: "open-close-file", size: { _ in 0 }, times: once)
        default: return nil
        }
    }

    static func share(of row: Row, in limits: [Row]) -> Row.LimitShare? {
        guard let rule = rule(for: row) else { return nil }
        let wanted = rule.size(row.valueBytes ?? 0)
        let nearest = limits.filter { $0.workload == rule.limit }
            .min { abs(($0.valueBytes ?? 0) - wanted) < abs(($1.valueBytes ?? 0) - wanted) }
        guard let nearest, let rate = nearest.opsPerS, rate > 0 else { return nil }
        let ours = row.opsPerS ?? row.extra.value.map { 1 / $0 } ?? 0
        return Row.LimitShare(
            name: rule.limit, size: nearest.valueBytes ?? 0,
            ratio: ours * rule.times(row, nearest) / rate)
    }
}
