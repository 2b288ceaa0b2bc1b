import BenchmarkRows

/// The results as text of 80 columns: one line a workload and make of Tidemark, with how many
/// times better it is than the best make of each peer, and how near to the machine's limit.
struct Table {
    private let rows: [Row]

    init(_ rows: [Row]) { self.rows = rows }

    func text() -> String {
        let measured = rows.filter { $0.figure != nil && $0.engine != Limits.engine }
        let ours = measured.filter { $0.engine == TidemarkKind.engine && $0.figure != nil }
        let shown = ours.isEmpty ? measured : ours
        let sizes = Set(shown.compactMap(\.valueBytes)).sorted()
        return
            (sizes.map { size in section(size, shown.filter { $0.valueBytes == size }) }
            + [limits(), settings()]).joined(separator: "\n")
    }

    private func limits() -> String {
        let lines = rows.filter { $0.engine == Limits.engine }.map { row in
            let size = row.valueBytes.map { $0 > 1 ? Wording.bytes(Double($0)) : "" } ?? ""
            let rate = row.extra.bytesPerS.map { "\(Wording.bytes($0))/s" } ?? ""
            let spread = row.extra.spread.map { String(Int(($0 * 50).rounded())) } ?? "-"
            let name = row.workload + String(repeating: " ", count: 28 - row.workload.count)
            return Self.columns(
                [name + size, "", Wording.figure(row), spread, "", rate], first: 36)
        }
        return (["What the machine can do"] + lines).joined(separator: "\n") + "\n"
    }

    /// How every engine was set up, and the machine.
    private func settings() -> String {
        var lines = ["Settings"]
        for row in rows {
            guard let settings = row.extra.settings else { continue }
            let durability = row.durability?.rawValue ?? "-"
            lines.append("\(row.engine) \(row.config) \(row.extra.version ?? ""), \(durability):")
            lines += Wording.wrapped(settings, columns: Self.columnsMax)
        }
        lines.append("Machine")
        for row in rows {
            for (name, value) in (row.extra.environment ?? [:]).sorted(by: { $0.key < $1.key }) {
                lines += Wording.wrapped("\(name): \(value)", columns: Self.columnsMax)
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static let columnsMax = 80
    private static let peers = ["rocksdb", "leveldb", "lmdb", "sqlite"]

    private func section(_ valueBytes: Int, _ rows: [Row]) -> String {
        var lines = ["Values of \(Wording.bytes(Double(valueBytes))); n times better than the peer"]
        lines.append(
            Self.columns([
                "WORKLOAD", "MAKE", "RESULT", "+-%", "ROCKS", "LEVEL", "LMDB", "SQLITE",
                "LIMIT",
            ]))
        // Without Tidemark's rows the engines' names stand beside the workloads.
        let isOurs = rows.allSatisfy { $0.engine == TidemarkKind.engine }
        for row in rows {
            let ratios = Self.peers.map { peer -> String in
                guard row.engine != peer, let best = best(of: peer, like: row),
                    let ratio = row.ratio(to: best)
                else { return "-" }
                return Wording.ratio(ratio) + (best.extra.capped == true ? "*" : "")
            }
            let share = row.extra.limit.map { Wording.ratio($0.ratio * 100) + "%" } ?? "-"
            let figure = Wording.figure(row) + (row.extra.capped == true ? "*" : "")
            let cells =
                [
                    isOurs ? row.workload : "\(row.workload) \(row.engine)",
                    row.config, figure,
                    row.extra.spread.map { String(Int(($0 * 50).rounded())) } ?? "-",
                ] + ratios + [share]
            lines.append(Self.columns(cells, first: isOurs ? 24 : 32))
        }
        if hasCapped(valueBytes) {
            lines.append("* not finished within the time allowed: the rate of what was done")
        }
        lines += limitNames(rows)
        return lines.joined(separator: "\n") + "\n"
    }

    /// Which limit the rows stand next to; their lines have no room for it.
    private func limitNames(_ rows: [Row]) -> [String] {
        var workloads: [String: [String]] = [:]
        for row in rows {
            guard let limit = row.extra.limit else { continue }
            let named = workloads[limit.name] ?? []
            if !named.contains(row.workload) { workloads[limit.name] = named + [row.workload] }
        }
        return workloads.sorted { $0.key < $1.key }.flatMap { name, workloads in
            ["LIMIT is \(name) for"]
                + Wording.wrapped(workloads.joined(separator: ", "), columns: Self.columnsMax)
        }
    }

    private func hasCapped(_ valueBytes: Int) -> Bool {
        rows.contains { $0.valueBytes == valueBytes && $0.extra.capped == true }
    }

    private func best(of engine: String, like row: Row) -> Row? {
        let peers = rows.filter {
            $0.engine == engine && $0.workload == row.workload
                && $0.durability == row.durability && $0.valueBytes == row.valueBytes
        }
        return peers.max { left, right in (left.ratio(to: right) ?? 0) < 1 }
    }

    private static func columns(_ cells: [String], first: Int = 24) -> String {
        let widths = [-first, -5, 9, 4, 7, 7, 7, 7, 7]
        var line = ""
        for (cell, width) in zip(cells, widths) {
            let padding = String(repeating: " ", count: max(0, abs(width) - cell.count))
            line += width < 0 ? cell + padding : padding + cell
        }
        while line.last == " " { line.removeLast() }
        return line
    }
}
