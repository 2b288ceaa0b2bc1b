import AsyncHTTPClient
import NIOCore
import NIOHTTP1
package import TidemarkSync

/// Reads the page on which a hub tells what it measures, on a connection that is kept.
package final class MetricsReader: Sendable {
    private static let pageBytesMax = 16 << 20
    private static let path = "/metrics"

    /// Where the page is.
    package let address: String
    private let token: String?
    private let timeout: Duration
    private let client: HTTPClient

    /// - Parameters:
    ///   - url: the hub's address, with or without the path of the page.
    ///   - token: the hub's own token; nil for a hub that shows the page to everybody.
    ///   - timeout: how long one reading may take.
    package init(url: String, token: String?, timeout: Duration = .seconds(10)) {
        var base = url[...]
        while base.hasSuffix("/") { base.removeLast() }
        if base.hasSuffix(Self.path) { base.removeLast(Self.path.count) }
        address = String(base) + Self.path
        self.token = token
        self.timeout = timeout
        let configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        client = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: configuration.guarded)
    }

    deinit {
        // The safety net of ``shutdown()``: the client keeps itself alive until it is done.
        client.shutdown { _ in }
    }

    /// Closes the connection; calling it twice is fine.
    package func shutdown() async {
        // It only fails if it was called before.
        try? await client.shutdown()
    }

    /// The page as it is now: text in the format of Prometheus, if the hub is one.
    ///
    /// - Throws: `unreachable`, `unauthorized`, `peerFailed`, `tooLarge`.
    package func page() async throws(SyncError) -> String {
        var request = HTTPClientRequest(url: address)
        if let token { request.headers.add(name: "authorization", value: "Bearer \(token)") }
        let deadline = NIODeadline.now() + TimeAmount(timeout)
        do {
            let response = try await client.execute(request, deadline: deadline)
            guard response.status == .ok else { throw refusal(Int(response.status.code)) }
            let body = try await response.body.collect(upTo: Self.pageBytesMax)
            return String(decoding: body.readableBytesView, as: UTF8.self)
        } catch let error as SyncError {
            throw error
        } catch is NIOTooManyBytesError {
            throw SyncError(
                .tooLarge, "\(address) answers with more than any hub measures; check the URL",
                peer: address)
        } catch {
            let reason = (error as? HTTPClientError)?.shortDescription ?? "\(error)"
            throw SyncError(
                .unreachable,
                "\(address) cannot be reached (\(reason)); check the URL, and that the hub is "
                    + "running", peer: address)
        }
    }

    private func refusal(_ status: Int) -> SyncError {
        switch status {
        case 401, 403:
            SyncError(
                .unauthorized,
                "\(address) refuses the token (status \(status)); give the hub's own with "
                    + "--token-file", peer: address)
        default:
            SyncError(
                .peerFailed,
                "\(address) answered with status \(status); correct the URL if no hub is there",
                peer: address)
        }
    }
}
