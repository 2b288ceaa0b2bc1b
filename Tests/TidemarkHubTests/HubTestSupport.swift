import Foundation
import Logging
import ServiceLifecycle
import TestSupport
import Testing
import Tidemark
import TidemarkHTTP
import TidemarkHub
import TidemarkSync

/// A directory that is gone when the test is over.
final class TemporaryDirectory: Sendable {
    let path: String

    init() throws {
        let base = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : "/tmp"
        path = "\(base)/tidemark-hub-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func store(_ name: String) throws -> Store {
        try Store.open(
            at: "\(path)/\(name)",
            options: StoreOptions(durability: .process, author: name, segmentBytes: 1 << 20))
    }
}

let testToken = "correct horse battery staple".replacing(" ", with: "-")

/// Runs a hub on a free port of this machine while the body runs, and shuts it down gracefully.
///
/// - Parameter time: by which those who wait for news wait.
func withHub<Result: Sendable>(
    _ store: Store, maxRequestBytes: Int = SyncLimits.messageBytesMax,
    time: any SyncEnvironment = SystemSyncEnvironment(),
    _ body: @escaping @Sendable (_ url: String, _ services: ServiceGroup) async throws -> Result
) async throws -> Result {
    var logger = Logger(label: "test")
    logger.logLevel = .critical
    return try await withRunningHub(logger) { onListening in
        var configuration = HubConfiguration(
            port: 0, token: testToken, maxRequestBytes: maxRequestBytes, threads: 2,
            onListening: onListening)
        configuration.environment = time
        return Hub(store: store, configuration: configuration, logger: logger)
    } body: { port, services in
        try await body("http://127.0.0.1:\(port)", services)
    }
}

/// Runs a hub while the body runs, and shuts it down gracefully.
///
/// - Parameter make: makes the hub, which has to tell its port when it listens.
func withRunningHub<Result: Sendable>(
    _ logger: Logger, _ make: (_ onListening: @escaping @Sendable (Int) -> Void) -> Hub,
    body: @escaping @Sendable (_ port: Int, _ services: ServiceGroup) async throws -> Result
) async throws -> Result {
    let (ports, continuation) = AsyncStream.makeStream(of: Int.self)
    let hub = make { continuation.yield($0) }
    let services = ServiceGroup(services: [hub], logger: logger)
    return try await withThrowingTaskGroup(of: Result?.self) { group in
        group.addTask {
            defer { continuation.finish() }
            try await services.run()
            return nil
        }
        group.addTask {
            var iterator = ports.makeAsyncIterator()
            let port = try #require(await iterator.next())
            do {
                let result = try await body(port, services)
                await services.triggerGracefulShutdown()
                return result
            } catch {
                await services.triggerGracefulShutdown()
                throw error
            }
        }
        var result: Result?
        for try await outcome in group {
            result = outcome ?? result
        }
        return try #require(result)
    }
}

/// For a hub that is there, however long it takes to answer beside all the other tests.
func patientTransport(_ url: String, token: String? = testToken) -> HTTPTransport {
    HTTPTransport(url: url, token: token, timeout: Patience.limit)
}

/// Synchronises everything over HTTP and closes the connections.
@discardableResult
func synchronize(
    _ store: Store, _ url: String, token: String? = testToken,
    options: SyncOptions = SyncOptions()
) async throws(SyncError) -> [SyncResult] {
    let transport = patientTransport(url, token: token)
    do throws(SyncError) {
        let results = try await store.synchronize(with: transport, options: options)
        await transport.shutdown()
        return results
    } catch {
        await transport.shutdown()
        throw error
    }
}
