import Hummingbird
public import Logging
import NIOCore
import NIOPosix
public import ServiceLifecycle
public import Tidemark
import TidemarkSync

/// A server through which replicas synchronise. It takes part as a replica itself: its store is an
/// ordinary one, which the same process may read and write.
///
/// ```swift
/// let store = try Store.open(at: "/var/lib/notes")
/// let hub = Hub(store: store, configuration: HubConfiguration(token: token), logger: logger)
/// try await ServiceGroup(services: [hub], gracefulShutdownSignals: [.sigterm], logger: logger)
///     .run()
/// try store.close()
/// ```
///
/// | request | answer |
/// | --- | --- |
/// | `POST /v1/sync` | a message of the sync protocol for a message, with the token |
/// | `POST /v1/watch` | the same, but a watch is answered when there is news, or its time is over |
/// | `GET /health` | status 200 while requests are taken, without the token |
///
/// On graceful shutdown no more connections are taken and requests under way are answered, those
/// that wait for news at once; the store stays open, because it belongs to the caller.
public struct Hub: Service {
    private let store: Store
    private let configuration: HubConfiguration
    private let logger: Logger

    public init(store: Store, configuration: HubConfiguration, logger: Logger) {
        self.store = store
        self.configuration = configuration
        self.logger = logger
    }

    /// Serves until shut down.
    ///
    /// - Throws: `StoreError` with `invalidArgument` for an empty token or a number out of bounds,
    ///   with `inputOutput` if it cannot listen.
    public func run() async throws {
        try checkConfiguration()
        let threads = NIOThreadPool(numberOfThreads: configuration.threads)
        threads.start()
        do {
            try await serve(on: threads)
        } catch {
            try? await threads.shutdownGracefully()
            throw readable(error)
        }
        try await threads.shutdownGracefully()
    }

    private func serve(on threads: NIOThreadPool) async throws {
        let limits = SyncResponder.Limits(requestBytesMax: configuration.maxRequestBytes)
        let onListening = configuration.onListening
        let logger = logger
        let application = Application(
            responder: HubResponder(
                sync: SyncResponder(store: store, limits: limits), threads: threads,
                environment: configuration.environment,
                token: BearerToken(configuration.token),
                requestBytesMax: configuration.maxRequestBytes),
            configuration: ApplicationConfiguration(
                address: .hostname(configuration.host, port: configuration.port),
                serverName: "tidemark"),
            onServerRunning: { channel in
                let port = channel.localAddress?.port ?? 0
                logger.info("hub is listening", metadata: ["port": "\(port)"])
                await onListening?(port)
            },
            logger: logger)
        try await application.run()
    }

    private func checkConfiguration() throws(StoreError) {
        let problem: String? =
            switch configuration {
            case _ where configuration.token.isEmpty:
                "the hub's token is empty; give one that is hard to guess"
            case _ where !(0...65_535).contains(configuration.port):
                "port \(configuration.port) does not exist; give one of 0...65535"
            case _ where !(1...1_024).contains(configuration.threads):
                "\(configuration.threads) threads are out of bounds; give 1...1024"
            case _ where configuration.maxRequestBytes < 1:
                "no request has \(configuration.maxRequestBytes) bytes; give a positive limit"
            default: nil
            }
        if let problem {
            throw StoreError(.invalidArgument, problem)
        }
    }

    /// The one failure that is to be expected says what to do.
    private func readable(_ error: any Error) -> any Error {
        guard let failure = error as? IOError else { return error }
        return StoreError(
            .inputOutput,
            "cannot listen on \(configuration.host):\(configuration.port) (\(failure)); "
                + "choose another address or stop what listens there",
            systemError: failure.errnoCode)
    }
}
