#if Networking
import Tidemark
import TidemarkHTTP
import TidemarkSync

extension SyncCommand {
    /// Tells what an exchange would do: it is carried out on a fork of the store, which is thrown
    /// away, against a hub that only says what it would do.
    func forecast(_ output: OutputStream) async throws {
        let token = try secret.token()
        let store = try target.openForReading()
        let transport = HTTPTransport(url: url, token: token)
        let outcome: Result<SyncReport, SyncError>
        do throws(SyncError) {
            outcome = .success(
                try await store.forecast(
                    with: transport, datasets: dataset.isEmpty ? nil : dataset,
                    options: merging.options))
        } catch {
            outcome = .failure(error)
        }
        await transport.shutdown()
        try store.close()
        let report = try outcome.get()
        try write(report, output)
        if let error = report.firstError {
            try output.flush()
            throw error
        }
    }

    private func write(_ report: SyncReport, _ output: OutputStream) throws {
        let table = TableWriter(
            [
                Column("DATASET", flexibleDownTo: 12),
                Column("PULL", .right),
                Column("PUSH", .right),
                Column("CONFLICTS", .right),
                Column("RECEIVE", .right),
                Column("SEND", .right),
            ], output: output)
        for outcome in report.datasets {
            guard format.json else {
                guard let result = outcome.result else { continue }
                try table.add(cells(of: result))
                continue
            }
            try output.write(JSONLine(outcome).line)
        }
        try table.finish()
        try writeConflicts(of: report, output)
        if format.json {
            var line = JSONLine()
            line.add("kind", "summary")
            line.add("dryRun", true)
            line.add("bytesReceived", report.bytesReceived)
            line.add("bytesSent", report.bytesSent)
            try output.write(line.line)
        } else {
            try output.writeLine(
                "would receive \(Quantities.bytes(report.bytesReceived)) and send "
                    + "\(Quantities.bytes(report.bytesSent)); nothing was changed")
        }
    }

    private func cells(of result: SyncResult) -> [String] {
        [
            TerminalText.escaped(result.dataset),
            Quantities.grouped(result.pulled),
            Quantities.grouped(result.pushed),
            Quantities.grouped(result.conflicts + result.pendingCount),
            Quantities.bytes(result.bytesReceived),
            Quantities.bytes(result.bytesSent),
        ]
    }

    /// Whose version each conflict would come to, as far as the report has them.
    private func writeConflicts(of report: SyncReport, _ output: OutputStream) throws {
        guard !format.json else { return }
        let table = TableWriter(
            [Column("CONFLICT", flexibleDownTo: 16), Column("WOULD BE")], output: output)
        for result in report.datasets.compactMap(\.result) {
            let dataset = TerminalText.escaped(result.dataset, columnsMax: 40)
            func add(_ key: [UInt8], _ decision: String) throws {
                let key = TerminalText.escaped(key, columnsMax: output.columns)
                try table.add(["\(dataset)/\(key)", decision])
            }
            for settlement in result.settled {
                try add(settlement.key, settlement.decision.rawValue)
            }
            for key in result.pending { try add(key, "waiting") }
        }
        try table.finish()
    }
}

extension JSONLine {
    /// What would become of a dataset, with the conflicts that would be met in it.
    fileprivate init(_ outcome: DatasetOutcome) {
        self.init()
        if let result = outcome.result {
            self = JSONLine(result)
            add("pending", result.pendingCount)
        } else {
            add("dataset", outcome.dataset)
        }
        add("dryRun", true)
        if let error = outcome.error { add("error", error.code.description) }
    }
}
#endif
