import Logging
import ServiceLifecycle
import Tidemark
import TidemarkHub

/// The child that serves.
enum TortureHub {
    static let token = "torture"

    /// Serves on a port of the system's choice until it is killed.
    static func serve(_ order: ChildOrder) async throws {
        let store = try Store.open(at: order.directory, options: order.options)
        tell(.opened(store.replicaID))
        // What is told to the driver has standard output for itself.
        var logger = Logger(label: "torture") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .critical
        let hub = Hub(
            store: store,
            configuration: HubConfiguration(
                port: 0, token: token, threads: 4,
                onListening: { port in tell(.listening(port: port)) }),
            logger: logger)
        try await ServiceGroup(services: [hub], logger: logger).run()
        try store.close()
    }
}
