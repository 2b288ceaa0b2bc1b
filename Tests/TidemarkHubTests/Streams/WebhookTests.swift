import AsyncHTTPClient
import Logging
import NIOHTTP1
import TestSupport
import Testing
import TidemarkSync

@testable import TidemarkHub

/// Signed posts, and what becomes of them.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct WebhookTests {
    /// Of `{"a":1}` at 1,700,000,000 by the secret below, by Python's hmac.
    private static let signature =
        "v1=21f073a01af826d054076e15cc1f9f7886d9aac788d841444ed46b9d7ad80574"

    /// Runs the body with an endpoint at a URL.
    private static func withWebhook<Result: Sendable>(
        _ url: String, clock: VirtualEnvironment = VirtualEnvironment(),
        _ body: (Webhook) async throws -> Result
    ) async throws -> Result {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.connectionPool.retryConnectionEstablishment = false
        let client = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: configuration)
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let webhook = Webhook(
            url: url, secret: Array("secret-of-the-endpoint".utf8), http: client, clock: clock,
            logger: logger)
        do {
            let result = try await body(webhook)
            try await client.shutdown()
            return result
        } catch {
            try? await client.shutdown()
            throw error
        }
    }

    private static func failure(
        _ webhook: Webhook, answerBytesMax: Int = 100
    ) async -> WebhookFailure? {
        do throws(WebhookFailure) {
            _ = try await webhook.post([], limit: .seconds(5), answerBytesMax: answerBytesMax)
            return nil
        } catch {
            return error
        }
    }

    @Test("the signature is that of the time and the body")
    func signed() {
        let text = WebhookSignature.text(
            of: Array(#"{"a":1}"#.utf8), timestamp: 1_700_000_000,
            secret: Array("secret-of-the-endpoint".utf8))
        #expect(text == Self.signature)
    }

    @Test("a post says when it was made, and names its delivery")
    func headers() async throws {
        try await Self.withWebhook("http://127.0.0.1:1/hook?a=b") { webhook in
            let request = webhook.request(Array(#"{"a":1}"#.utf8), delivery: "x:y/7")
            #expect(request.method == .POST)
            #expect(request.url == "http://127.0.0.1:1/hook?a=b")
            #expect(request.headers.first(name: "X-Tidemark-Timestamp") == "1700000000")
            #expect(request.headers.first(name: "X-Tidemark-Delivery") == "x:y/7")
            #expect(request.headers.first(name: "X-Tidemark-Signature") == Self.signature)
            #expect(request.headers.first(name: "content-type") == "application/json")
        }
    }

    @Test("2xx takes a post, anything else does not")
    func statuses() async throws {
        let cases: [(String, WebhookFailure?)] = [
            ("200 OK", nil), ("204 No Content", nil), ("302 Found", .refused(status: 302)),
            ("404 Not Found", .refused(status: 404)),
            ("503 Service Unavailable", .refused(status: 503)),
        ]
        for (status, expected) in cases {
            let server = try CannedServer(canned(status: status, type: "text/plain", body: ""))
            defer { server.stop() }
            let found = try await Self.withWebhook(server.url) { await Self.failure($0) }
            #expect(found == expected, "\(status)")
        }
    }

    @Test("deliveries that hang hold up no question to the same host")
    func hanging() async throws {
        let server = try HangingServer()
        defer { server.stop() }
        let client = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: HubServer.clientConfiguration)
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let webhook = Webhook(
            url: server.url, secret: [1], http: client, clock: VirtualEnvironment(),
            logger: logger)
        // As many as two pools have under way with their streams, and one more.
        let posts = (0..<33).map { _ in
            Task { try? await webhook.post([], limit: .seconds(30), answerBytesMax: 1) }
        }
        try await eventually("all are connected") { server.connectionCount == 33 }
        for post in posts { post.cancel() }
        for post in posts { _ = await post.value }
        try await client.shutdown()
    }

    @Test("an answer that is too large is not kept")
    func tooLarge() async throws {
        let body = String(repeating: "x", count: 101)
        let server = try CannedServer(canned(type: "text/plain", body: body))
        defer { server.stop() }
        let found = try await Self.withWebhook(server.url) { await Self.failure($0) }
        #expect(found == .tooLarge)
        let kept = try await Self.withWebhook(server.url) {
            await Self.failure($0, answerBytesMax: 101)
        }
        #expect(kept == nil)
    }

    @Test("one that hangs up, or is not there, cannot be reached")
    func unreachable() async throws {
        let server = try CannedServer(nil)
        let hungUp = try await Self.withWebhook(server.url) { await Self.failure($0) }
        guard case .unreachable? = hungUp else {
            Issue.record("\(String(describing: hungUp))")
            return
        }
        server.stop()
        let gone = try await Self.withWebhook(server.url) { await Self.failure($0) }
        guard case .unreachable? = gone else {
            Issue.record("\(String(describing: gone))")
            return
        }
    }

    @Test("what takes too long is given up, whether it heeds that or not")
    func timeLimit() async throws {
        let clock = VirtualEnvironment()
        let (endless, end) = AsyncStream.makeStream(of: Void.self)
        let call = Task {
            try await TimeLimit.run(.seconds(5), clock) {
                // Deaf to being cancelled.
                await Task.detached { for await _ in endless {} }.value
                return 7
            }
        }
        await clock.untilAsleep()
        clock.advance(by: .seconds(5))
        #expect(try await call.value == nil)
        end.finish()
        #expect(try await TimeLimit.run(.seconds(5), clock) { 8 } == 8)
        await #expect(throws: CancellationError.self) {
            try await TimeLimit.run(.seconds(5), clock) { () -> Int in throw CancellationError() }
        }
    }

    @Test("notices are posted with the device, and 410 says that it is gone")
    func gateway() async throws {
        let notice = PushNotice(
            identityPoolID: "p:1", identityID: "i:1", datasetName: "notes", syncCount: 7,
            deviceID: "d", platform: "GCM", token: "t")
        let expected: JSONValue = [
            "platform": "GCM", "token": "t", "deviceId": "d",
            "data": [
                "source": "cognito-sync", "identityPoolId": "p:1", "identityId": "i:1",
                "datasetName": "notes", "syncCount": 7,
            ],
        ]
        #expect(try JSONValue(parsing: WebhookGateway.document(notice)) == expected)
        let server = try CannedServer(canned(status: "410 Gone", type: "text/plain", body: ""))
        defer { server.stop() }
        await #expect(throws: PushDeviceGone.self) {
            try await Self.withWebhook(server.url) { webhook in
                try await WebhookGateway(webhook: webhook).deliver(notice)
            }
        }
    }
}
