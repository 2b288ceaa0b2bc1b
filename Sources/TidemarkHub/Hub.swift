public import Logging
public import ServiceLifecycle
public import Tidemark
package import TidemarkSync

/// A server of datasets: for apps that were written for Amazon Cognito Sync, which change nothing
/// but its address, and for replicas of Tidemark. It takes part as a replica itself: its store is
/// an ordinary one, which the same process may read and write.
///
/// ```swift
/// let store = try Store.open(at: "/var/lib/notes")
/// var settings = HubSettings()
/// settings.adminToken = HubSecret(token)
/// settings.pools = [PoolSettings(id: poolID, name: "notes")]
/// let hub = Hub(store: store, settings: settings, logger: logger)
/// try await ServiceGroup(services: [hub], gracefulShutdownSignals: [.sigterm], logger: logger)
///     .run()
/// try store.close()
/// ```
///
/// | request | answer |
/// | --- | --- |
/// | `/identitypools…` | the 17 operations of Cognito Sync, signed with Signature Version 4 |
/// | `POST /` | operations of Cognito Identity, by `X-Amz-Target` |
/// | `GET /v1/push` | server-sent events for a device, signed |
/// | `POST /v1/sync` | a message of the sync protocol for a message, with a bearer token |
/// | `POST /v1/watch` | the same, but a watch is answered when there is news, or its time is over |
/// | `GET /health` | status 200 while the process answers |
/// | `GET /ready` | status 200 while the hub takes requests and writes, else 503 |
/// | `GET /metrics` | what is measured, in the text format of Prometheus, with the admin token |
/// | `GET /openapi.json` | a description of all this |
/// | `GET /console/` | a page for whoever has the admin token: see the article *Hub* |
///
/// On graceful shutdown no more connections are taken, requests under way are answered, and those
/// that wait for news at once; the store stays open, because it belongs to the caller.
public struct Hub: Service {
    private let server: HubServer
    private let check: @Sendable () throws -> Void

    /// - Parameters:
    ///   - reopen: opens the store again after a failure of the disk, when the hub has closed it;
    ///     nil to leave that to the caller: then the hub answers reads alone from there on.
    ///   - extensions: what the process does in place of endpoints.
    ///   - metrics: what `GET /metrics` tells, and where the hub counts its requests; nil to tell
    ///     nothing, and to count in the process's own backend of swift-metrics.
    ///   - onListening: called once with the port, when connections are accepted.
    public init(
        store: Store, settings: HubSettings,
        reopen: (@Sendable () throws(StoreError) -> Store)? = nil,
        extensions: HubExtensions = HubExtensions(), metrics: PrometheusRegistry? = nil,
        logger: Logger, onListening: (@Sendable (Int) async -> Void)? = nil
    ) {
        server = HubServer(
            settings: settings, stores: StoreHolder(store, open: reopen),
            extensions: extensions, registry: metrics, environment: SystemSyncEnvironment(),
            logger: logger, onListening: onListening)
        check = {}
    }

    /// A hub for replicas alone, which all have one token.
    public init(store: Store, configuration: HubConfiguration, logger: Logger) {
        server = HubServer(
            settings: configuration.settings, stores: StoreHolder(store),
            extensions: HubExtensions(), registry: nil, environment: configuration.environment,
            logger: logger, onListening: configuration.onListening)
        check = { try configuration.check() }
    }

    /// In tests, by another clock.
    package init(
        store: Store, settings: HubSettings, environment: any SyncEnvironment,
        extensions: HubExtensions = HubExtensions(), metrics: PrometheusRegistry? = nil,
        logger: Logger, onListening: (@Sendable (Int) async -> Void)? = nil
    ) {
        server = HubServer(
            settings: settings, stores: StoreHolder(store), extensions: extensions,
            registry: metrics, environment: environment, logger: logger,
            onListening: onListening)
        check = {}
    }

    /// In tests, on a disk of their own: `freeBytes` says how much room there is on it.
    package init(
        store: Store, settings: HubSettings,
        reopen: @escaping @Sendable () throws(StoreError) -> Store,
        freeBytes: @escaping @Sendable (_ path: String) -> UInt64?, logger: Logger,
        onListening: (@Sendable (Int) async -> Void)? = nil
    ) {
        server = HubServer(
            settings: settings, stores: StoreHolder(store, open: reopen),
            extensions: HubExtensions(), registry: nil, environment: SystemSyncEnvironment(),
            logger: logger, onListening: onListening, freeBytes: freeBytes)
        check = {}
    }

    /// Serves until shut down.
    ///
    /// - Throws: `HubSettingsError` for settings that cannot work; `StoreError` with
    ///   `invalidArgument` for a configuration that cannot, with `inputOutput` if it cannot listen.
    public func run() async throws {
        try check()
        try await server.run()
    }
}
