import Logging
import ServiceLifecycle
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// Runs a hub with these settings on a free port of this machine while the body runs, and shuts it
/// down gracefully.
///
/// - Parameter logger: nil for one that says next to nothing.
func withServedHub<Result: Sendable>(
    _ store: Store, _ settings: HubSettings, metrics: PrometheusRegistry? = nil,
    logger: Logger? = nil,
    _ body: @escaping @Sendable (_ port: Int, _ services: ServiceGroup) async throws -> Result
) async throws -> Result {
    var settings = settings
    settings.port = 0
    let onFreePort = settings
    return try await withServedHub(
        logger: logger,
        { logger, onListening in
            Hub(
                store: store, settings: onFreePort, metrics: metrics, logger: logger,
                onListening: onListening)
        }, body)
}

/// The same, of a hub that the caller makes. It has to listen on port 0.
func withServedHub<Result: Sendable>(
    logger: Logger? = nil,
    _ made: (_ logger: Logger, _ onListening: @escaping @Sendable (Int) -> Void) -> Hub,
    _ body: @escaping @Sendable (_ port: Int, _ services: ServiceGroup) async throws -> Result
) async throws -> Result {
    var quiet = Logger(label: "test")
    quiet.logLevel = .critical
    let logger = logger ?? quiet
    return try await withRunningHub(logger, { made(logger, $0) }, body: body)
}
