/// A hub that runs as a process of its own, on a port of its own.
struct HubProcess {
    let url: String
    private let process: RunningCommand

    /// Starts it and waits until it listens.
    init(_ tool: CommandLineTool, store: String, tokenFile: String) async throws {
        process = try RunningCommand(
            try CommandLineTool.binary(),
            [
                "serve", tool.path(store), "--listen", "127.0.0.1:0", "--token-file", tokenFile,
                "--durability", "process",
            ], in: tool.directory)
        while process.isRunning {
            if let line = try process.output().split(separator: "\n").first {
                url = String(line.dropFirst("listening on ".count))
                return
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw UnexpectedOutput(description: "the hub ended: \(try process.errors())")
    }

    /// Ends it in order.
    func stop() async throws {
        process.terminate()
        let ending = try await process.outcome()
        guard ending.status == 0 else {
            throw UnexpectedOutput(description: "the hub ended with \(ending.errors)")
        }
    }
}
