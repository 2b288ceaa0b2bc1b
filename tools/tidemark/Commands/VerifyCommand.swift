import ArgumentParser
import Glibc
import Tidemark

struct VerifyCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Read and check every byte of a store; exits with 2 if any is damaged.",
        discussion: """
            Changes nothing, takes no lock, and works on stores too damaged to open. Every damage \
            is told once, with file and offset, what it is and what helps. Status 0: all is whole.
            """
                + Examples.section([
                    "tidemark verify /var/lib/notes",
                    "tidemark verify /var/lib/notes --threads 1 --json",
                    "tidemark verify /backup/notes || echo damaged",
                ]))

    @OptionGroup var target: StoreArgument
    @Option(
        help: ArgumentHelp(
            "How many threads read at once. Default: one for each processor.", valueName: "n"))
    var threads: Int?
    @OptionGroup var format: OutputOptions

    func validate() throws {
        if let threads, !Limits.verificationThreads.contains(threads) {
            throw ValidationError(
                "--threads is \(threads), and must be \(Limits.verificationThreads)")
        }
    }

    /// All processors.
    private var threadCount: Int {
        let processors = Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        let allowed = Limits.verificationThreads
        return threads ?? min(max(processors, allowed.lowerBound), allowed.upperBound)
    }

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
                    + "see 'tidemark repair' for what can be kept")
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
            return try Store.verify(
                at: target.store, threads: threadCount, progress: progress)
        }
        let report = try store.verify(threads: threadCount, progress: progress)
        try store.close()
        return report
    }

    private func write(_ report: VerificationReport, _ output: OutputStream) throws {
        for damage in report.damages {
            let advice = DamageAdvice(damage, of: target.store)
            if format.json {
                try output.write(JSONLine(damage, advice).line)
            } else {
                try write(damage, advice, output)
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

    private func write(
        _ damage: StoreError, _ advice: DamageAdvice, _ output: OutputStream
    ) throws {
        let place = damage.location?.offset.map { " at byte \(Quantities.grouped($0))" } ?? ""
        try output.writeLine(
            TerminalText.truncated(
                TerminalText.oneLine("damage: \(advice.file)\(place)"), to: output.columns))
        for (label, text) in [("what", advice.what), ("do", advice.remedy)] {
            var label = label
            let lines = TerminalText.wrappedWords(
                TerminalText.oneLine(text), columnsMax: output.columns - Self.labelColumns)
            for line in lines {
                let padding = String(repeating: " ", count: Self.labelColumns - label.count - 2)
                try output.writeLine("  \(label)\(padding)\(line)")
                label = ""
            }
        }
    }

    private static let labelColumns = 8
}

extension JSONLine {
    fileprivate init(_ damage: StoreError, _ advice: DamageAdvice) {
        self.init()
        add("kind", "damage")
        add("file", damage.location?.path ?? "")
        if let offset = damage.location?.offset { add("offset", offset) }
        add("code", damage.code.description)
        add("message", advice.what)
        add("remedy", advice.remedy)
    }
}
