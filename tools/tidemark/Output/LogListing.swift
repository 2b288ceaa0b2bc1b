import Tidemark

/// The operations as a table, with a line for each day above the operations of that day.
final class LogListing {
    private let output: OutputStream
    private let showsDataset: Bool
    private var table: TableWriter
    private static let timelessMax = 100
    private var day: String?
    private var timeless: [LogOperation] = []

    /// - Parameter showsDataset: whether the last column begins with the dataset's name.
    init(_ output: OutputStream, showsDataset: Bool) {
        self.output = output
        self.showsDataset = showsDataset
        table = Self.table(output, showsDataset)
    }

    private static func table(_ output: OutputStream, _ showsDataset: Bool) -> TableWriter {
        TableWriter(
            [
                Column("SEGMENT"),
                Column("OFFSET", .right),
                Column("COUNT", .right),
                Column("DOT"),
                Column("TIME"),
                Column("OP"),
                Column("SIZE", .right),
                Column(showsDataset ? "DATASET/KEY" : "KEY", flexibleDownTo: 8),
            ], output: output, gap: 1)
    }

    func add(_ operation: LogOperation) throws {
        let moment = operation.version.map { LogMoment($0.time) }
        // An operation without a time of its own goes under the day it comes in, and those before
        // the first day wait for it.
        if moment == nil, day == nil, timeless.count < Self.timelessMax {
            timeless.append(operation)
            return
        }
        if let newDay = moment?.day, newDay != day {
            try table.finish()
            try output.write(day == nil ? "" : "\n")
            try output.writeLine("\(newDay) (UTC)")
            day = newDay
            table = Self.table(output, showsDataset)
        }
        try writeTimeless()
        try write(operation, moment)
    }

    private func writeTimeless() throws {
        for operation in timeless {
            try write(operation, nil)
        }
        timeless = []
    }

    private func write(_ operation: LogOperation, _ moment: LogMoment?) throws {
        try table.add([
            TerminalText.escaped(operation.segment),
            String(operation.offset),
            operation.syncCount == .zero ? "" : operation.syncCount.description,
            operation.version?.dot.description ?? "",
            moment?.timeOfDay ?? "",
            operation.shortName,
            operation.kind == .put ? Quantities.grouped(operation.valueBytes) : "",
            subject(of: operation),
        ])
    }

    /// What the operation is about. No dataset's name holds a slash.
    private func subject(of operation: LogOperation) -> String {
        let columns = output.columns
        let dataset = showsDataset ? TerminalText.escaped(operation.dataset, columnsMax: 40) : ""
        let rest =
            operation.key.map { TerminalText.escaped($0, columnsMax: columns) }
            ?? TerminalText.escaped(operation.detail, columnsMax: columns)
        let separator = operation.key != nil ? "/" : " "
        return dataset.isEmpty ? rest : rest.isEmpty ? dataset : dataset + separator + rest
    }

    /// Writes all that was held back; what comes later goes into the same columns.
    func settle() throws {
        try writeTimeless()
        try table.finish()
    }
}

/// A hybrid time taken apart for headings.
struct LogMoment {
    /// `2026-11-21`
    let day: String
    /// `06:30:00.125`; the counter within the millisecond is left to --json
    let timeOfDay: String

    init(_ time: HybridTime) {
        let parts = time.description.split(separator: "T", maxSplits: 1)
        day = String(parts.first ?? "")
        timeOfDay = String((parts.dropFirst().first ?? "").prefix { $0 != "Z" })
    }
}

extension JSONLine {
    init(_ operation: LogOperation) {
        self.init()
        add("segment", operation.segment)
        add("offset", operation.offset)
        add("dataset", operation.dataset)
        add("syncCount", operation.syncCount.rawValue)
        add("operation", operation.kind.rawValue)
        if let key = operation.key {
            add("key", key)
        }
        if let version = operation.version {
            add(version)
        }
        add("valueBytes", operation.valueBytes)
        add(expiresAt: operation.expiresAt)
        if !operation.detail.isEmpty {
            add("detail", operation.detail)
        }
    }
}
