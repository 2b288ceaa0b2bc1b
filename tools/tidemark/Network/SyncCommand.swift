#if Networking
import ArgumentParser
import Synchronization
import Tidemark
import TidemarkHTTP
import TidemarkSync

struct SyncCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync",
        abstract: "Exchange changes with a hub until both sides hold the same.",
        discussion: """
            Pulls, settles conflicts, then pushes. The store is created if missing. Interrupted, \
            the next call goes on where this one stopped.

            With --dry-run nothing changes on either side: the exchange runs on a fork beside the \
            store, which shares its segments and is thrown away. CONFLICTS are those it would \
            meet; each follows with the side that would win it.

            With --compare all records of the two sides are compared at the end, and what differs \
            is settled: that finds what a store that was copied, or put back to an earlier state \
            other than by a restore, has left different.
            """)

    @OptionGroup var target: StoreArgument
    @Argument(help: "The hub's address: http://HOST:PORT") var url: String
    @OptionGroup var secret: TokenOption
    @Option(
        help: ArgumentHelp(
            "Only this dataset; may be given several times. Default: all of both sides.",
            valueName: "name"))
    var dataset: [String] = []
    @OptionGroup var merging: MergingOptions
    @Flag(help: "Tell what would be exchanged, and change nothing.") var dryRun = false
    @Flag(help: "Compare all records at the end, and settle what differs.") var compare = false
    @OptionGroup var writing: WritingOptions
    @OptionGroup var format: OutputOptions

    func validate() throws {
        guard url.hasPrefix("http://") || url.hasPrefix("https://") else {
            throw ValidationError("\(url) is no address of a hub; give http://HOST:PORT")
        }
        guard !dryRun || !compare else {
            throw ValidationError("--compare settles what differs; give it without --dry-run")
        }
    }

    mutating func run(_ output: OutputStream) async throws {
        if dryRun { return try await forecast(output) }
        let token = try secret.token()
        let transport = HTTPTransport(url: url, token: token)
        let store = try Store.open(at: target.store, options: writing.options)
        let bar = Mutex(ProgressBar("synchronising"))
        var options = merging.options
        if compare {
            options.comparesAllEvery = .zero
            options.looksAtAll = true
        }
        options.progress = { progress in
            bar.withLock { bar in
                let isPulling = progress.phase == .pulling
                bar.label = "\(isPulling ? "pulling" : "pushing") \(progress.dataset)"
                bar.update(
                    bytes: UInt64(isPulling ? progress.bytesReceived : progress.bytesSent),
                    of: nil)
            }
        }
        let outcome: Result<[SyncResult], SyncError>
        do throws(SyncError) {
            outcome = .success(
                try await store.synchronize(
                    with: transport, datasets: dataset.isEmpty ? nil : dataset, options: options))
        } catch {
            outcome = .failure(error)
        }
        bar.withLock { $0.finish() }
        await transport.shutdown()
        try store.close()
        try write(try outcome.get(), output)
    }

    private func write(_ results: [SyncResult], _ output: OutputStream) throws {
        let table = TableWriter(
            [
                Column("DATASET", flexibleDownTo: 12),
                Column("PULLED", .right),
                Column("PUSHED", .right),
                Column("CONFLICTS", .right),
                Column("RECEIVED", .right),
                Column("SENT", .right),
            ], output: output)
        for result in results {
            if format.json {
                try output.write(JSONLine(result).line)
            } else {
                try table.add([
                    TerminalText.escaped(result.dataset),
                    Quantities.grouped(result.pulled),
                    Quantities.grouped(result.pushed),
                    Quantities.grouped(result.conflicts),
                    Quantities.bytes(result.bytesReceived),
                    Quantities.bytes(result.bytesSent),
                ])
            }
        }
        try table.finish()
        let overlooked = results.reduce(0) { $0 + $1.overlooked }
        guard overlooked > 0, !format.json else { return }
        let keys = Quantities.counted(overlooked, "key")
        try output.writeLine("\(keys) differed although both sides had seen the same writes:")
        try output.writeLine("a store was copied or put back. What differed is settled.")
    }
}
#endif
