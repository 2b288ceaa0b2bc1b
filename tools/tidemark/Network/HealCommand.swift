#if Networking
import ArgumentParser
import Tidemark
import TidemarkHTTP
import TidemarkSync

struct HealCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "heal",
        abstract: "Replace damaged blocks by a hub's records; exits with 2 if any is left.",
        discussion: """
            Verifies the store first. A block is replaced only if the hub has seen everything \
            that the store has seen of the dataset; else it stays, and the reason is printed. \
            Sync first, if that is possible.
            """)

    @OptionGroup var target: StoreArgument
    @Argument(help: "The hub's address: http://HOST:PORT") var url: String
    @OptionGroup var secret: TokenOption
    @OptionGroup var format: OutputOptions

    func validate() throws {
        guard url.hasPrefix("http://") || url.hasPrefix("https://") else {
            throw ValidationError("\(url) is no address of a hub; give http://HOST:PORT")
        }
    }

    mutating func run(_ output: OutputStream) async throws {
        let token = try secret.token()
        let store = try target.openExisting(
            StoreOptions(durability: .disk, compactsAutomatically: false))
        let bar = ProgressBar("verifying")
        let found: VerificationReport
        do {
            found = try store.verify { progress in
                bar.update(bytes: progress.bytesChecked, of: progress.bytesTotal)
            }
        } catch {
            bar.finish()
            throw error
        }
        bar.finish()
        var report = HealReport()
        if !found.damages.isEmpty {
            report = try await heal(store, token)
        }
        try store.close()
        try write(report, output)
        try output.flush()
        if !report.isComplete {
            throw CommandFailure(
                .damage,
                "\(Quantities.counted(report.unhealed.count, "damage")) left; heal from another "
                    + "hub, or restore the store from a backup")
        }
    }

    private func heal(_ store: Store, _ token: String) async throws -> HealReport {
        let transport = HTTPTransport(url: url, token: token)
        let outcome: Result<HealReport, SyncError>
        do throws(SyncError) {
            outcome = .success(try await store.heal(from: transport))
        } catch {
            outcome = .failure(error)
        }
        await transport.shutdown()
        return try outcome.get()
    }

    private func write(_ report: HealReport, _ output: OutputStream) throws {
        for left in report.unhealed {
            let damage = left.damage
            if format.json {
                var line = JSONLine()
                line.add("kind", "damage")
                line.add("file", damage.file)
                if let offset = damage.offset { line.add("offset", offset) }
                if let dataset = damage.dataset { line.add("dataset", dataset) }
                line.add("reason", left.reason.rawValue)
                try output.write(line.line)
            } else {
                let place = damage.offset.map { " at byte \($0)" } ?? ""
                let dataset = damage.dataset.map { " of \($0)" } ?? ""
                try output.writeLine(
                    TerminalText.oneLine(
                        "left: \(damage.file)\(place)\(dataset): \(damage.what) "
                            + "(\(left.reason.rawValue))"))
            }
        }
        if format.json {
            var line = JSONLine()
            line.add("kind", "summary")
            line.add("healed", report.blocksHealed)
            line.add("restored", report.recordsRestored)
            line.add("left", report.unhealed.count)
            try output.write(line.line)
        } else {
            try output.writeLine(
                "\(Quantities.counted(report.blocksHealed, "block")) healed, "
                    + "\(Quantities.counted(report.recordsRestored, "record")) restored")
        }
    }
}
#endif
