import ArgumentParser
import Tidemark

struct VerifyCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Read and check every byte of a store; exits with 2 if any is damaged.",
        discussion: "Changes nothing, takes no lock, and works on stores too damaged to open.")

    @OptionGroup var target: StoreArgument
    @OptionGroup var format: OutputOptions

    mutating func run(_ output: OutputStream) async throws {
        let bar = ProgressBar("verifying")
        let report: VerificationReport
        do {
            report = try verify { progress in
                bar.update(bytes: progress.bytesChecked, of: progress.bytesTotal)
            }
        } catch {
            bar.finish()
            throw error
        }
        bar.finish()
        do {
            try write(report, output)
            try output.flush()
        } catch is OutputClosed where !report.damages.isEmpty {
            // Nobody reads on, but the exit status still has to tell.
        }
        if let first = report.damages.first {
            let place = first.location.map { ", the first in \($0)" } ?? ""
            throw CommandFailure(
                .damage,
                "\(Quantities.counted(report.damages.count, "damage")) found\(place); "
                    + "restore the store from a backup, or sync a new one from a peer")
        }
    }

    /// Through an open store, which holds on to its files while another process may replace them;
    /// or, where damage keeps it from being opened, through its files alone.
    private func verify(
        _ progress: @escaping (VerificationProgress) -> Void
    ) throws -> VerificationReport {
        let store: Store
        do {
            store = try target.openForReading()
        } catch let error as StoreError where error.code == .corruption {
            return try Store.verify(at: target.store, progress: progress)
        }
        let report = try store.verify(progress: progress)
        try store.close()
        return report
    }

    private func write(_ report: VerificationReport, _ output: OutputStream) throws {
        for damage in report.damages {
            if format.json {
                var line = JSONLine()
                line.add("kind", "damage")
                line.add("file", damage.location?.path ?? "")
                if let offset = damage.location?.offset {
                    line.add("offset", offset)
                }
                line.add("code", damage.code.description)
                line.add("message", damage.message)
                try output.write(line.line)
            } else {
                try output.writeLine(TerminalText.oneLine("damage: \(damage)"))
            }
        }
        if format.json {
            var line = JSONLine()
            line.add("kind", "summary")
            line.add("files", report.filesChecked)
            line.add("blocks", report.blocksChecked)
            line.add("bytes", report.bytesChecked)
            line.add("damages", report.damages.count)
            try output.write(line.line)
        } else {
            try output.writeLine(
                "\(Quantities.counted(report.filesChecked, "file")), "
                    + "\(Quantities.counted(report.blocksChecked, "block")), "
                    + "\(Quantities.bytes(report.bytesChecked)) checked: "
                    + (report.damages.isEmpty
                        ? "all whole" : Quantities.counted(report.damages.count, "damage")))
        }
    }
}
