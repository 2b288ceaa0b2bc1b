import AsyncHTTPClient
import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
public import TidemarkSync

/// Carries an exchange to a hub over HTTP or HTTPS, on connections that are kept and reused.
///
/// ```swift
/// let transport = HTTPTransport(url: "https://hub.example.org", token: token)
/// let results = try await store.synchronize(with: transport)
/// await transport.shutdown()
/// ```
///
/// Each message is the body of a `POST {url}/v1/sync`, and a question that waits for news that of a
/// `POST {url}/v1/watch`, on a connection of its own. Redirects are not followed, so that the token
/// goes nowhere else. A hub that is busy (status 429 or 503) and says in how many seconds it wants
/// to be asked again is asked again then, as long as that takes no more than `retryWaitMax` in all;
/// what it says beyond that is in ``SyncError/retryAfter``. Thread-safe; make one for each hub and
/// keep it.
public final class HTTPTransport: SyncTransport {
    /// What bodies of both directions are declared as.
    public static let contentType = "application/x-tidemark-sync"

    private let base: String
    private let token: String?
    private let responseBytesMax: Int
    private let retryWaitMax: Duration
    private let environment: any SyncEnvironment
    private let client: HTTPClient
    /// For questions whose answers are late on purpose: they occupy connections, and may be silent
    /// for so much longer.
    private let watchClient: HTTPClient

    /// - Parameters:
    ///   - url: the hub's address without a path, like `http://127.0.0.1:8080`.
    ///   - token: what the hub was started with; nil to send none.
    ///   - timeout: how long the hub may be silent, connecting included.
    ///   - responseBytesMax: larger answers fail with `tooLarge`.
    ///   - retryWaitMax: how long one request may wait in all because the hub is busy and says when
    ///     to come again; zero to tell that at once.
    public convenience init(
        url: String, token: String?, timeout: Duration = .seconds(60),
        responseBytesMax: Int = 320 << 20, retryWaitMax: Duration = .seconds(30)
    ) {
        self.init(
            url: url, token: token, timeout: timeout, responseBytesMax: responseBytesMax,
            retryWaitMax: retryWaitMax, environment: SystemSyncEnvironment())
    }

    /// In tests, with another clock.
    package init(
        url: String, token: String?, timeout: Duration = .seconds(60),
        responseBytesMax: Int = 320 << 20, retryWaitMax: Duration,
        environment: any SyncEnvironment
    ) {
        var base = Substring(url)
        while base.hasSuffix("/") {
            base.removeLast()
        }
        self.base = String(base)
        self.token = token
        self.responseBytesMax = max(0, responseBytesMax)
        self.retryWaitMax = retryWaitMax
        self.environment = environment
        let silence = TimeAmount(timeout)
        var configuration = HTTPClient.Configuration(
            redirectConfiguration: .disallow,
            timeout: HTTPClient.Configuration.Timeout(
                connect: silence, read: silence, write: silence))
        // A hub that refuses connections is to be reported at once, not at the end of the timeout.
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration = configuration.guarded
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        configuration.timeout.read = TimeAmount(
            timeout + .milliseconds(SyncLimits.watchMillisecondsMax))
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit =
            SyncLimits.watchesAtOnceMax
        watchClient = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }

    deinit {
        // The safety net of ``shutdown()``: the clients keep themselves alive until they are done.
        client.shutdown { _ in }
        watchClient.shutdown { _ in }
    }

    /// Closes all connections. What is under way fails with `unreachable`; calling it twice is
    /// fine.
    public func shutdown() async {
        // It only fails if it was called before.
        try? await client.shutdown()
        try? await watchClient.shutdown()
    }

    public func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        try await exchange(request, at: base + "/v1/sync", by: client)
    }

    /// Cancelling the task closes the connection, by which the hub sees that nobody waits any more.
    public func watch(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        try await exchange(request, at: base + "/v1/watch", by: watchClient)
    }

    private func exchange(
        _ request: [UInt8], at address: String, by client: HTTPClient
    ) async throws(SyncError) -> [UInt8] {
        let message = try prepared(request, address)
        var allowance = RetryAllowance(retryWaitMax)
        while true {
            do throws(SyncError) {
                return try await attempt(message, address, by: client)
            } catch {
                guard let pause = allowance.pause(error.retryAfter) else { throw error }
                do throws(CancellationError) {
                    try await environment.sleep(for: pause)
                } catch {
                    throw Self.cancelled(address)
                }
            }
        }
    }

    private func attempt(
        _ message: HTTPClientRequest, _ address: String, by client: HTTPClient
    ) async throws(SyncError) -> [UInt8] {
        do {
            return try await exchange(message, by: client)
        } catch {
            guard error as? HTTPClientError == .remoteConnectionClosed else {
                throw failure(error, address)
            }
        }
        // A kept connection that the hub closed while it was idle. Messages may be repeated.
        do {
            return try await exchange(message, by: client)
        } catch {
            throw failure(error, address)
        }
    }

    private func prepared(
        _ request: [UInt8], _ address: String
    ) throws(SyncError) -> HTTPClientRequest {
        var message = HTTPClientRequest(url: address)
        message.method = .POST
        message.headers.add(name: "content-type", value: Self.contentType)
        if let token {
            guard token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw SyncError(
                    .unauthorized,
                    "the token has characters that do not fit into a header; use letters, "
                        + "digits and punctuation without spaces", peer: address)
            }
            message.headers.add(name: "authorization", value: "Bearer \(token)")
        }
        message.body = .bytes(ByteBuffer(bytes: request))
        return message
    }

    private func exchange(
        _ message: HTTPClientRequest, by client: HTTPClient
    ) async throws -> [UInt8] {
        let address = message.url
        // The whole exchange may take as long as it makes progress.
        let response = try await client.execute(message, deadline: .distantFuture)
        guard response.status == .ok else {
            throw refusal(
                response.status, address, retryAfter: RetryAfter.duration(of: response))
        }
        let type = response.headers.first(name: "content-type") ?? "none"
        guard type.lowercased().hasPrefix(Self.contentType) else {
            throw SyncError(
                .badMessage,
                "\(address) answered with content of type \(type.prefix(100)), so no hub is "
                    + "there; correct the URL", peer: address)
        }
        let body = try await response.body.collect(upTo: responseBytesMax)
        return Array(body.readableBytesView)
    }

    private func refusal(
        _ status: HTTPResponseStatus, _ address: String, retryAfter: Duration?
    ) -> SyncError {
        switch status {
        case .unauthorized, .forbidden:
            SyncError(
                .unauthorized,
                "\(address) refuses the token (status \(status.code)); "
                    + "use the one that the hub was started with", peer: address)
        case .payloadTooLarge:
            SyncError(
                .tooLarge,
                "\(address) refuses a message of that size (status \(status.code)); "
                    + "lower pageBytesMax or raise the hub's limit", peer: address)
        case .tooManyRequests, .serviceUnavailable:
            SyncError(
                .peerFailed,
                "\(address) is busy or takes no writes for now (status \(status.code)); repeat "
                    + "the exchange "
                    + (retryAfter.map { "in \($0.components.seconds) s" } ?? "later"),
                peer: address, retryAfter: retryAfter)
        default:
            SyncError(
                .peerFailed,
                "\(address) answered with status \(status.code); correct the URL if "
                    + "no hub is there, else see the hub's log", peer: address)
        }
    }

    /// What a failure below HTTP means for an exchange.
    private func failure(_ error: any Error, _ address: String) -> SyncError {
        switch error {
        case let error as SyncError:
            return error
        case _ where Task.isCancelled:
            return Self.cancelled(address)
        case is NIOTooManyBytesError:
            return SyncError(
                .tooLarge,
                "\(address) answered with more than \(responseBytesMax) bytes; "
                    + "raise responseBytesMax or lower pageBytesMax", peer: address)
        case is HTTPParserError:
            return SyncError(
                .badMessage,
                "\(address) does not answer in HTTP (\(error)), so no hub is there; "
                    + "correct the URL", peer: address)
        default:
            return SyncError(
                .unreachable,
                "\(address) cannot be reached (\(reason(error))); check the URL, and "
                    + "that the hub is running", peer: address)
        }
    }

    private static func cancelled(_ address: String) -> SyncError {
        SyncError(.cancelled, "the exchange was cancelled; repeat it to go on", peer: address)
    }

    private func reason(_ error: any Error) -> String {
        switch error {
        case let error as HTTPClientError: error.shortDescription
        case let error as NIOConnectionError: reason(error)
        case let error as IOError: "system error \(error.errnoCode)"
        default: "\(error)"
        }
    }

    private func reason(_ error: NIOConnectionError) -> String {
        let attempts = error.connectionErrors.compactMap { $0.error as? IOError }
        if attempts.contains(where: { $0.errnoCode == ECONNREFUSED }) {
            return "connection refused"
        }
        if let first = attempts.first {
            return "system error \(first.errnoCode)"
        }
        return error.connectionErrors.isEmpty ? "its name is not known" : "no connection"
    }
}
