import AsyncHTTPClient
import Hummingbird
import HummingbirdCore
import HummingbirdHTTP2
import Logging
import Metrics
import NIOCore
import ServiceLifecycle
import Tidemark
import TidemarkHTTP
import TidemarkSync

/// The hub, put together and run.
///
/// What it starts it ends in the other order: first it is not ready any more and takes no more
/// connections, then who waits for news is answered and who listens is let go, then requests under
/// way end, or are given up when their time is over; then what delivers stops, then the threads.
struct HubServer: Sendable {
    let settings: HubSettings
    let stores: StoreHolder
    let extensions: HubExtensions
    let registry: PrometheusRegistry?
    /// Of requests: signatures, rates, watches. What runs beside them has the system's own.
    let environment: any SyncEnvironment
    let logger: Logger
    let onListening: (@Sendable (Int) async -> Void)?
    /// Of the disk that a path is on.
    var freeBytes: @Sendable (_ path: String) -> UInt64? = DiskGuard.freeBytes(of:)

    /// Serves until shut down.
    ///
    /// - Throws: `HubSettingsError`; `StoreError` with `inputOutput` if it cannot listen.
    func run() async throws {
        try settings.check()
        for warning in settings.warnings { logger.warning("\(warning)") }
        let protection = settings.protection
        let threads = HubThreads(
            stores: stores, readers: protection.readers, writers: protection.writers,
            callsMax: protection.storeCallsMax, logger: logger)
        threads.start()
        let http = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: Self.clientConfiguration)
        do {
            try await serve(threads, http)
        } catch {
            await Self.shutDown(threads, http)
            throw readable(error)
        }
        await Self.shutDown(threads, http)
    }

    private func serve(_ threads: HubThreads, _ http: HTTPClient) async throws {
        let parts = try HubParts(self, threads: threads, http: http)
        var reload: TLSReload?
        if let tls = settings.tls { reload = try TLSReload(tls, logger: logger) }
        let (logger, onListening) = (logger, onListening)
        let application = Application(
            responder: parts.handler, server: builder(parts, reload),
            configuration: ApplicationConfiguration(
                address: .hostname(settings.host, port: settings.port), serverName: "tidemark",
                backlog: Self.backlog),
            services: services(parts, threads, reload),
            onServerRunning: { channel in
                let port = channel.localAddress?.port ?? 0
                logger.info("hub is listening", metadata: ["port": "\(port)"])
                await onListening?(port)
            },
            logger: logger)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await Self.run(application, parts) }
            let drainSeconds = settings.protection.drainSeconds
            group.addTask {
                try await gracefulShutdown()
                try await SystemSyncEnvironment().sleep(for: .seconds(drainSeconds))
            }
            // The server, or the time that its requests have to end.
            _ = try await group.next()
            group.cancelAll()
        }
    }

    private static func run(
        _ application: Application<RequestHandler>, _ parts: HubParts
    ) async throws {
        try await withGracefulShutdownHandler {
            try await application.run()
        } onGracefulShutdown: {
            parts.handler.readiness.shutDown()
            // They would wait for news for ever.
            parts.pools.connected.closeAll()
            parts.handler.endpoints.console.feed.closeAll()
        }
    }

    private static func shutDown(_ threads: HubThreads, _ http: HTTPClient) async {
        // Nobody can be told, and nothing depends on it.
        try? await http.shutdown()
        try? await threads.shutdown()
    }

    // MARK: Connections

    private static let backlog = 1_024
    /// So much above the hub's own bounds is still parsed, and refused with a reason.
    private static let headFieldsSlack = 16
    private static let headBytesSlack = 4_096

    private func builder(_ parts: HubParts, _ reload: TLSReload?) -> HTTPServerBuilder {
        let protection = settings.protection
        let idleTime = TimeAmount.seconds(Int64(protection.idleSeconds))
        let streams = HTTP1Channel.Configuration(
            additionalChannelHandlers: [UnreadAnswerHandler(time: idleTime)],
            idleTimeout: idleTime,
            httpDecoderConfiguration: HTTP1Channel.Configuration.DecoderConfiguration(
                maxHeaderFieldSize: protection.headBytesMax + Self.headBytesSlack,
                maxHeaderListSize: protection.headBytesMax + Self.headBytesSlack,
                maxHeaderFieldCount: protection.headFieldsMax + Self.headFieldsSlack))
        let connections = HTTP2ChannelConfiguration(
            idleTimeout: .seconds(protection.idleSeconds),
            gracefulCloseTimeout: .seconds(protection.drainSeconds),
            streamConfiguration: streams)
        let (limits, metrics) = (parts.handler.protection.connections, parts.handler.metrics)
        let headTime = TimeAmount.seconds(Int64(protection.headSeconds))
        guard let reload else {
            return HTTPServerBuilder { responder in
                LimitedChannel(
                    base: HTTP1Channel(responder: responder, configuration: streams),
                    limits: limits, metrics: metrics, headTime: headTime, streamIdleTime: nil)
            }
        }
        return HTTPServerBuilder { responder in
            let first = try reload.start { configuration in
                try HTTP2UpgradeChannel(
                    tlsConfiguration: configuration, configuration: connections,
                    responder: responder)
            }
            return LimitedChannel(
                base: ReloadingChannel(reload: reload, first: first), limits: limits,
                metrics: metrics, headTime: headTime, streamIdleTime: idleTime)
        }
    }

    // MARK: Beside the requests

    private static let samplePeriod = Duration.seconds(15)

    private func services(
        _ parts: HubParts, _ threads: HubThreads, _ reload: TLSReload?
    ) -> [any Service] {
        var services: [any Service] = [
            BackgroundService { await parts.handler.protection.disk.run() },
            BackgroundService {
                while !Task.isCancelled {
                    parts.sample(threads)
                    try? await SystemSyncEnvironment().sleep(for: Self.samplePeriod)
                }
            },
        ]
        let console = parts.handler.endpoints.console
        // Without the hub's own token nobody can sign in.
        if settings.adminToken != nil { services.append(BackgroundService { await console.run() }) }
        if let reload {
            services.append(BackgroundService { await reload.run(SystemSyncEnvironment()) })
        }
        // A hub for replicas alone has nothing to deliver.
        if !settings.pools.isEmpty {
            services.append(
                SyncSessionFlusher(books: parts.books, threads: threads, clock: environment))
            services.append(parts.pools)
        }
        return services
    }

    /// For the app's own endpoints. Redirects are not followed: what is signed is for one address.
    static var clientConfiguration: HTTPClient.Configuration {
        var configuration = HTTPClient.Configuration()
        configuration.redirectConfiguration = .disallow
        configuration.timeout.connect = .seconds(5)
        // An app's triggers, streams and push are mostly one host's. Of so many, deliveries that
        // hang there, 16 for each stream and gateway, leave enough to triggers, whose 5 seconds
        // would pass while they wait for a connection.
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 512
        // The client's own spans hold whole addresses, whose queries may be secrets, and it makes
        // them whatever the hub's settings say.
        configuration.tracing.tracer = nil
        return configuration.guarded
    }

    /// The one failure that is to be expected says what to do.
    private func readable(_ error: any Error) -> any Error {
        guard let failure = error as? IOError else { return error }
        return StoreError(
            .inputOutput,
            "cannot listen on \(settings.host):\(settings.port) (\(failure)); "
                + "choose another address or stop what listens there",
            systemError: failure.errnoCode)
    }
}

/// Runs until the hub shuts down.
private struct BackgroundService: Service {
    let body: @Sendable () async -> Void

    func run() async throws {
        let body = body
        await cancelWhenGracefulShutdown { await body() }
    }
}
