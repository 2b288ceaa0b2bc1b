import BenchmarkRows
import Foundation

/// The rows for people. The last column but one is what others are measured by: how many times as
/// fast as the row Tidemark over HTTP is, with the same durability if there is such a row.
struct Table {
    private static let widths = [24, 16, 6, 11, 9, 9, 6, 7, 8, 6]
    private static let columns = [
        "workload", "engine", "lasts", "records/s", "seconds", "wire", "rounds", "spread",
        "ours/it", "limit",
    ]

    let text: String

    init(_ rows: [Outcome], _ workingSet: WorkingSet, _ limits: LoopbackLimits) {
        var lines = [
            "",
            "\(workingSet.recordCount) records, 16-byte keys, "
                + "values of \(workingSet.valueBytes) bytes",
            "",
            Self.line(Self.columns),
        ]
        var previous: String?
        for row in rows {
            if let previous, previous != row.name.workload { lines.append("") }
            let isNew = previous != row.name.workload
            previous = row.name.workload
            let share = limits.row(of: row).extra.limit
            lines.append(Self.line(Self.cells(of: row, among: rows, share, isNew: isNew)))
        }
        lines.append("")
        lines.append(
            "lasts: survives kill -9 (kill), the loss of power (power), or neither (-). ours/it:")
        lines.append(
            "how many times as fast Tidemark over HTTP is. Nobody else here merges (sync-merge).")
        lines.append(
            "limit: how near ours is to one round trip of TCP, or to its bytes sent one way.")
        text = lines.joined(separator: "\n")
    }

    private static func cells(
        of row: Outcome, among rows: [Outcome], _ share: Row.LimitShare?, isNew: Bool
    ) -> [String] {
        let median = row.median
        let ours = ours(beside: row, among: rows)
        return [
            isNew ? row.name.workload : "",
            "\(row.name.engine) \(row.name.config)",
            row.name.durability?.rawValue ?? "-",
            figure(median),
            String(format: "%.5f", median.seconds),
            (median.wireBytes ?? median.messageBytes).map(bytes) ?? "",
            "\(row.rounds.count)",
            row.row.extra.spread.map { String(format: "%.0f%%", $0 * 100) } ?? "-",
            ours.map { ratio($0.median.rate / median.rate) } ?? "",
            share.map { String(format: "%.0f%%", $0.ratio * 100) } ?? "",
        ]
    }

    /// A rate, or memory.
    private static func figure(_ median: Measurement) -> String {
        if let count = median.bytes { return bytes(count) }
        return median.operations == nil ? "" : grouped(Int(median.rate))
    }

    private static func ours(beside row: Outcome, among rows: [Outcome]) -> Outcome? {
        let candidates = rows.filter {
            $0.name.workload == row.name.workload && $0.name.engine == "tidemark"
                && $0.name.config == "http"
        }
        // Redis promises nothing, and stands beside the weaker promise.
        return candidates.first {
            $0.name.durability == row.name.durability ?? .kill
        }
    }

    private static func ratio(_ ratio: Double) -> String {
        String(format: ratio < 0.1 ? "%.4f" : "%.2f", ratio)
    }

    /// The first two columns begin at the left, figures end at the right.
    private static func line(_ cells: [String]) -> String {
        zip(cells, widths).enumerated().map { index, cell in
            let padding = String(repeating: " ", count: max(0, cell.1 - cell.0.count))
            return index < 3 ? cell.0 + padding : padding + cell.0
        }.joined(separator: " ")
    }

    private static func grouped(_ number: Int) -> String {
        let digits = Array(String(number))
        return digits.enumerated().map { place, digit in
            let rest = digits.count - place
            return rest % 3 == 0 && place > 0 ? ",\(digit)" : "\(digit)"
        }.joined()
    }

    private static func bytes(_ count: Int) -> String {
        switch count {
        case ..<10_000: "\(count) B"
        case ..<10_000_000: "\(count / 1_000) kB"
        default: "\(count / 1_000_000) MB"
        }
    }
}
