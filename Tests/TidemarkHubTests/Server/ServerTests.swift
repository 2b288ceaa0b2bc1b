import AsyncHTTPClient
import Foundation
import HTTPTypes
import Hummingbird
import HummingbirdCore
import HummingbirdHTTP2
import Logging
import NIOCore
import NIOHTTP1
import NIOSSL
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing
import Tidemark
import TidemarkHTTP
import TidemarkSync

@testable import TidemarkHub

/// The hub's own routes, over TLS and without.
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes)))
struct ServerTests {
    let directory: TemporaryDirectory
    let store: Store

    init() throws {
        directory = try TemporaryDirectory()
        store = try directory.store("hub")
    }

    private static let timeout = TimeAmount(Patience.limit)

    private static var settings: HubSettings {
        var settings = HubSettings()
        settings.adminToken = HubSecret(testToken)
        return settings
    }

    private struct Answer: Sendable {
        let status: UInt
        let headers: HTTPHeaders
        let body: String
        let version: HTTPVersion
    }

    private static func withClient<Result: Sendable>(
        _ body: (HTTPClient) async throws -> Result
    ) async throws -> Result {
        var configuration = HTTPClient.Configuration()
        configuration.timeout.connect = timeout
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.certificateVerification = .none
        configuration.tlsConfiguration = tls
        let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        do {
            let result = try await body(client)
            try await client.shutdown()
            return result
        } catch {
            try? await client.shutdown()
            throw error
        }
    }

    private static func ask(
        _ client: HTTPClient, _ url: String, _ method: HTTPMethod = .GET,
        _ headers: HTTPHeaders = [:]
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: url)
        request.method = method
        request.headers = headers
        let response = try await client.execute(request, timeout: timeout)
        let body = try await response.body.collect(upTo: 1_000_000)
        return Answer(
            status: response.status.code, headers: response.headers,
            body: String(decoding: body.readableBytesView, as: UTF8.self),
            version: response.version)
    }

    @Test("readiness, the description of the API, and the metrics for the token alone")
    func ownRoutes() async throws {
        let registry = PrometheusRegistry()
        try await withServedHub(store, Self.settings, metrics: registry) { port, _ in
            try await Self.withClient { client in
                let url = "http://127.0.0.1:\(port)"
                let ready = try await Self.ask(client, url + "/ready")
                #expect(ready.status == 200 && ready.body == #"{"status":"ready"}"#)
                #expect(ready.headers.first(name: "date") != nil)
                #expect(ready.headers.first(name: "x-amzn-requestid")?.isEmpty == false)
                let head = try await Self.ask(client, url + "/ready", .HEAD)
                #expect(head.status == 200 && head.body.isEmpty)
                #expect(try await Self.ask(client, url + "/metrics").status == 401)
                let wrong = try await Self.ask(
                    client, url + "/metrics", .GET, ["authorization": "Bearer wrong"])
                #expect(wrong.status == 401)
                let metrics = try await Self.ask(
                    client, url + "/metrics", .GET, ["authorization": "Bearer \(testToken)"])
                #expect(metrics.status == 200)
                #expect(metrics.body.contains(#"route="ready",status="200""#))
                #expect(!metrics.body.contains(testToken))
                let document = try await Self.ask(client, url + "/openapi.json")
                let parsed = try JSONSerialization.jsonObject(with: Data(document.body.utf8))
                let members = try #require(parsed as? [String: Any])
                #expect((members["paths"] as? [String: Any])?["/v1/sync"] != nil)
            }
        }
    }

    @Test("the hub's own token tells usage, and opens nothing else of the API")
    func usage() async throws {
        try await withServedHub(store, Self.settings) { port, _ in
            try await Self.withClient { client in
                let url = "http://127.0.0.1:\(port)/identitypools"
                let own: HTTPHeaders = ["authorization": "Bearer \(testToken)"]
                let usage = try await Self.ask(client, url, .GET, own)
                #expect(usage.status == 200 && usage.body.contains("IdentityPoolUsages"))
                let events = try await Self.ask(client, url + "/us-east-1:1/events", .GET, own)
                #expect(events.status == 403)
                #expect(events.headers.first(name: "x-amzn-errortype") == "NotAuthorizedException")
                let wrong: HTTPHeaders = ["authorization": "Bearer wrong"]
                let refused = try await Self.ask(client, url, .GET, wrong)
                #expect(refused.status == 403 || refused.status == 400)
            }
        }
    }

    @Test("replicas with tokens of the settings share a space, if such tokens are taken")
    func staticBearers() async throws {
        var settings = Self.settings
        settings.bearers = ["token-of-a-team-1", "token-of-a-team-2"].map {
            HubSettings.StaticBearer(token: HubSecret($0), reach: .space("team"))
        }
        let (one, two) = (try directory.store("one"), try directory.store("two"))
        let three = try directory.store("three")
        try one.dataset("notes").put("1", for: "key")
        try await withServedHub(store, settings) { port, _ in
            let url = "http://127.0.0.1:\(port)"
            try await synchronize(one, url, token: "token-of-a-team-1")
            try await synchronize(two, url, token: "token-of-a-team-2")
            let error = await #expect(throws: SyncError.self) {
                try await synchronize(two, url, token: "token-of-a-team-3")
            }
            #expect(error?.code == .unauthorized)
        }
        #expect(try two.dataset("notes").text("key") == "1")
        settings.authModes = [.hub, .issuers]
        try await withServedHub(store, settings) { port, _ in
            let url = "http://127.0.0.1:\(port)"
            let error = await #expect(throws: SyncError.self) {
                try await synchronize(two, url, token: "token-of-a-team-2")
            }
            #expect(error?.code == .unauthorized)
            // Who has the hub's own token sees the space from outside.
            try await synchronize(three, url)
        }
        #expect(try three.dataset("space::team:notes").text("key") == "1")
    }

    @Test("pages of allowed origins may ask, and others not")
    func origins() async throws {
        var settings = Self.settings
        settings.allowedOrigins = ["https://app.example.com"]
        try await withServedHub(store, settings) { port, _ in
            try await Self.withClient { client in
                let url = "http://127.0.0.1:\(port)/identitypools"
                let origins: [(String, String?)] = [
                    ("https://app.example.com", "https://app.example.com"),
                    ("https://evil.example.com", nil),
                ]
                for (origin, allowed) in origins {
                    let headers: HTTPHeaders = [
                        "origin": origin, "access-control-request-method": "POST",
                    ]
                    let preflight = try await Self.ask(client, url, .OPTIONS, headers)
                    #expect(preflight.status == 200)
                    let found = preflight.headers.first(name: "access-control-allow-origin")
                    #expect(found == allowed)
                    let request = try await Self.ask(client, url, .GET, ["origin": origin])
                    #expect(request.status == 403)
                    #expect(
                        request.headers.first(name: "access-control-allow-origin") == allowed)
                    #expect(request.headers.first(name: "vary") == "Origin")
                }
            }
        }
    }

    private func write(_ name: String, _ text: String) throws -> String {
        let path = "\(directory.path)/\(name)"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
        return path
    }

    @Test("HTTP/2 over TLS, where refusals have no field that it forbids")
    func tls() async throws {
        var settings = Self.settings
        settings.tls = HubSettings.TLS(
            certificateFile: try write("certificate", TestCertificates.firstCertificate),
            keyFile: try write("key", TestCertificates.firstKey))
        try await withServedHub(store, settings) { port, _ in
            try await Self.withClient { client in
                let url = "https://127.0.0.1:\(port)"
                let health = try await Self.ask(client, url + "/health")
                #expect(health.status == 200 && health.version == .http2)
                let refused = try await Self.ask(client, url + "/identitypools")
                #expect(refused.status == 403 && refused.version == .http2)
                #expect(refused.body.contains("MissingAuthenticationTokenException"))
                let stranger = try await Self.ask(client, url + "/v1/sync", .POST)
                #expect(stranger.status == 401)
                #expect(stranger.headers.first(name: "connection") == nil)
            }
            // Plain HTTP gets nothing there, and hurts nobody.
            let plain = try RawConnection(port: port)
            try await plain.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            try await plain.untilClosed()
            try await Self.withClient { client in
                let health = try await Self.ask(client, "https://127.0.0.1:\(port)/health")
                #expect(health.status == 200)
            }
        }
    }

    @Test("certificate and key are read anew when both have changed")
    func reload() throws {
        let certificate = try write("certificate", TestCertificates.firstCertificate)
        let key = try write("key", TestCertificates.firstKey)
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let reload = try TLSReload(
            HubSettings.TLS(certificateFile: certificate, keyFile: key), logger: logger)
        let made = Recorder()
        _ = try reload.start { configuration in
            made.note(configuration.certificateChain.count)
            return try HTTP2UpgradeChannel(
                tlsConfiguration: configuration,
                responder: { (_: Request, _: consuming ResponseWriter, _: any Channel) in })
        }
        #expect(made.count == 1)
        reload.look()
        #expect(made.count == 1)
        // Half of a change: the files do not fit, and what was there stays.
        _ = try write("certificate", TestCertificates.secondCertificate)
        let before = reload.current != nil
        reload.look()
        #expect(before && reload.current != nil)
        let tried = made.count
        _ = try write("key", TestCertificates.secondKey)
        reload.look()
        #expect(made.count == tried + 1)
        reload.look()
        #expect(made.count == tried + 1)
        // Junk leaves it as it is, too.
        _ = try write("key", "junk")
        reload.look()
        #expect(made.count == tried + 1)
        #expect(throws: HubSettingsError.self) {
            try TLSReload(
                HubSettings.TLS(certificateFile: certificate, keyFile: key), logger: logger)
        }
    }

    @Test("a hub that shuts down is not ready, and says so")
    func readiness() throws {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let threads = HubThreads(
            stores: StoreHolder(store), readers: 1, writers: 1, callsMax: 1, logger: logger)
        let readiness = Readiness(
            disk: DiskGuard(
                threads: threads, environment: VirtualEnvironment(), logger: logger))
        #expect(readiness.problem == nil)
        readiness.shutDown()
        #expect(readiness.problem == "shuttingDown")
    }

    @Test("settings that cannot work are refused before anything listens")
    func settingsAreChecked() async throws {
        let logger = Logger(label: "test")
        var settings = Self.settings
        settings.protection.readers = 0
        await #expect(throws: HubSettingsError.self) {
            try await Hub(store: store, settings: settings, logger: logger).run()
        }
        settings = Self.settings
        settings.tls = HubSettings.TLS(certificateFile: "/none", keyFile: "/none")
        let error = await #expect(throws: HubSettingsError.self) {
            try await Hub(store: store, settings: settings, logger: logger).run()
        }
        #expect(error?.key == "tls.certificateFile")
    }
}

/// Counts what it is told.
private final class Recorder: Sendable {
    private let notes = Mutex<[Int]>([])

    var count: Int { notes.withLock { $0.count } }

    func note(_ number: Int) {
        notes.withLock { $0.append(number) }
    }
}
