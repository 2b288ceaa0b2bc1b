import ArgumentParser
import Foundation
import Tidemark
import TidemarkHTTP
import TidemarkSync

/// A replica in a process of its own, so that its memory is its alone. Says that its store is open,
/// then answers each order that comes in; ends with its standard input.
struct ReplicaCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replica", abstract: "Be a replica; the benchmark starts this itself.",
        shouldDisplay: false)

    @Argument var store: String
    @Option var port: Int

    func run() async throws {
        let store = try Store.open(at: store, options: StoreOptions(durability: .process))
        let transport = HTTPTransport(
            url: "http://127.0.0.1:\(port)", token: HubProcess.token)
        tell("ready")
        while let order = readLine() {
            if order == "digest" {
                tell(try store.dataset(WorkingSet.datasetName).digest().description)
            } else {
                let results = try await store.synchronize(
                    with: transport, datasets: [WorkingSet.datasetName])
                tell("\(results.reduce(0) { $0 + $1.pulled })")
            }
        }
        await transport.shutdown()
        try store.close()
    }

    /// Unbuffered: the other side waits for it.
    private func tell(_ line: String) {
        FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
}
