import ArgumentParser
import Foundation
import Logging
import Tidemark
import TidemarkHub

/// The other process. Prints its port, then an answer to each order that comes in; ends with its
/// standard input.
struct HubCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hub", abstract: "Serve a store; the benchmark starts this itself.",
        shouldDisplay: false)

    @Argument var store: String
    @Option var n: Int
    @Option var valueBytes: Int

    func run() async throws {
        let workingSet = WorkingSet(recordCount: n, valueBytes: valueBytes)
        let store = try Store.open(at: store, options: StoreOptions(durability: .process))
        var logger = Logger(label: "hub")
        // That it was cancelled, which is how it ends here, is an error in its eyes.
        logger.logLevel = .critical
        let hub = Hub(
            store: store,
            configuration: HubConfiguration(
                port: 0, token: HubProcess.token, onListening: { answer("\($0)") }),
            logger: logger)
        let serving = Task { try await hub.run() }
        // A thread of its own: to wait for orders must not take one that serves requests.
        let failure: String? = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(returning: Self.takeOrders(store, workingSet))
            }
        }
        serving.cancel()
        _ = await serving.result
        try store.close()
        if let failure { throw BenchmarkFailure(failure) }
    }

    /// - Returns: what went wrong; nil once there are no more orders.
    private static func takeOrders(_ store: Store, _ workingSet: WorkingSet) -> String? {
        while let line = readLine() {
            do {
                let order = try JSONDecoder().decode(HubOrder.self, from: Data(line.utf8))
                answer(try order.perform(on: store, workingSet))
            } catch {
                return "\(error)"
            }
        }
        return nil
    }
}

/// Unbuffered: the other side waits for it.
private func answer(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}
