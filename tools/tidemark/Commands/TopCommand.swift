import ArgumentParser
import Tidemark

struct TopCommand: StoreCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Watch a hub or a store at work: operations, sync, compaction, latency, lag.",
        discussion: """
            Of a hub it reads the page with what is measured, /metrics, for which the hub's own \
            token is needed. Of a store it reads the files, beside whoever writes them: there it \
            sees changes, segments and peers, but no latency. Figures are of the time since the \
            frame before. Ctrl-C ends it.

            Latencies are upper bounds of the hub's classes of durations.
            """)

    private static let intervals = 0.05...3_600

    @Argument(
        help: ArgumentHelp("The store's directory, or a hub's address.", valueName: "store"),
        completion: .directory)
    var source: String
    @Option(
        help: ArgumentHelp("The file that holds the hub's token, on one line.", valueName: "file"),
        completion: .file())
    var tokenFile: String?
    @Option(help: ArgumentHelp("How long a frame is.", valueName: "seconds")) var interval = 2.0
    @Flag(help: "Print one frame and end.") var once = false
    @OptionGroup var limit: LimitOption
    @OptionGroup var format: OutputOptions

    func validate() throws {
        guard Self.intervals.contains(interval) else {
            throw ValidationError("--interval is \(interval), and must be 0.05...3600")
        }
        if once, limit.limit != nil {
            throw ValidationError("--once is a limit of one frame; leave out --limit")
        }
        if tokenFile != nil, !isHub {
            throw ValidationError("--token-file goes with a hub's address: http://HOST:PORT")
        }
    }

    private var isHub: Bool { source.hasPrefix("http://") || source.hasPrefix("https://") }

    mutating func run(_ output: OutputStream) async throws {
        let top = try topSource()
        do {
            try await run(top, output)
        } catch {
            await top.close()
            throw error
        }
        await top.close()
    }

    private func topSource() throws -> any TopSource {
        guard isHub else { return StoreTopSource(StoreArgument(path: source)) }
        let token = try tokenFile.map { try TokenOption.token(in: $0) }
        return try NetworkCommands.topSource(url: source, token: token)
    }

    private func run(_ top: any TopSource, _ output: OutputStream) async throws {
        let framesMax = once ? 1 : limit.limit ?? .max
        let isLive = output.isTerminal && !format.json && !once
        let screen = isLive ? TerminalScreen(output) : nil
        defer { screen?.leave() }
        let request = await EndRequest.watched()
        let clock = ContinuousClock()
        var before = try await top.sample()
        var start = clock.now
        try screen?.draw(["measuring \(TerminalText.escaped(source, columnsMax: 60)) ..."])
        var count = 0
        while count < framesMax, try await request.wait(for: .seconds(interval)) {
            let after = try await top.sample()
            let now = clock.now
            let time = HybridTime(
                milliseconds: SystemStorage().wallClockMilliseconds(), counter: 0)
            let frame = TopFrame(
                source: source, time: time.description, from: before, to: after,
                seconds: (now - start) / .seconds(1))
            (before, start) = (after, now)
            count += 1
            if format.json {
                try output.write(frame.line.line)
                try output.flush()
            } else if let screen {
                try screen.draw(frame.lines(columns: output.columns))
            } else {
                try output.write(count == 1 ? "" : "\n")
                for line in frame.lines(columns: output.columns) { try output.writeLine(line) }
                try output.flush()
            }
        }
    }
}
