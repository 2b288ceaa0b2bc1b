import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// The console over HTTP: who gets in, what every answer says to the browser, and the stream.
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes)))
struct ConsoleServerTests {
    let directory: TemporaryDirectory
    let store: Store

    init() throws {
        directory = try TemporaryDirectory()
        store = try directory.store("hub")
    }

    private static var settings: HubSettings {
        var settings = HubSettings()
        settings.adminToken = HubSecret(testToken)
        settings.secrets = HubSecret(Base64.encoded([UInt8](repeating: 7, count: 32)))
        return settings
    }

    private struct Answer {
        let status: UInt
        let headers: HTTPHeaders
        let body: String

        var json: JSONValue? { try? JSONValue(parsing: Array(body.utf8)) }
        var code: String? { json?["error"]?["code"]?.text }
    }

    /// A browser as far as the console needs one.
    private struct Browser {
        let client: HTTPClient
        let url: String
        var cookie: String?
        var token: String?

        func send(
            _ method: HTTPMethod, _ path: String, _ body: String? = nil,
            _ more: HTTPHeaders = [:]
        ) async throws -> Answer {
            var request = HTTPClientRequest(url: url + path)
            request.method = method
            request.headers = more
            if let cookie { request.headers.replaceOrAdd(name: "cookie", value: cookie) }
            if let token, !more.contains(name: "x-tidemark-token") {
                request.headers.add(name: "x-tidemark-token", value: token)
            }
            if let body {
                if !more.contains(name: "content-type") {
                    request.headers.add(name: "content-type", value: "application/json")
                }
                request.body = .bytes(ByteBuffer(string: body))
            }
            let response = try await client.execute(request, timeout: TimeAmount(Patience.limit))
            let bytes = try await response.body.collect(upTo: 1 << 22)
            return Answer(
                status: response.status.code, headers: response.headers,
                body: String(buffer: bytes))
        }

        mutating func signIn(_ secret: String) async throws -> Answer {
            let answer = try await send(
                .POST, "/console/api/session", #"{"token": "\#(secret)"}"#)
            if answer.status == 200 {
                let set = try #require(answer.headers.first(name: "set-cookie"))
                cookie = String(set.prefix { $0 != ";" })
                token = answer.json?["token"]?.text
            }
            return answer
        }
    }

    private func withBrowser(
        _ settings: HubSettings = ConsoleServerTests.settings,
        _ body: @escaping @Sendable (Browser) async throws -> Void
    ) async throws {
        try await withServedHub(store, settings) { port, _ in
            let client = HTTPClient(eventLoopGroupProvider: .singleton)
            do {
                try await body(Browser(client: client, url: "http://127.0.0.1:\(port)"))
                try await client.shutdown()
            } catch {
                try? await client.shutdown()
                throw error
            }
        }
    }

    @Test("nobody gets in without the hub's own token, by any of the operations")
    func strangers() async throws {
        try await withBrowser { browser in
            for operation in ConsoleOperation.allCases where operation != .session {
                let path = "/console/api/\(operation.rawValue)"
                let method: HTTPMethod = operation.isEdit ? .POST : .GET
                let body = operation.isEdit ? "{}" : nil
                for headers in [[:], ["cookie": "tidemark-console=guess"]] as [HTTPHeaders] {
                    let answer = try await browser.send(method, path, body, headers)
                    #expect(answer.status == 401, "\(operation)")
                    #expect(answer.code == "expiredToken", "\(operation)")
                }
                // The token opens nothing by itself: the console has sessions alone.
                let bearer: HTTPHeaders = ["authorization": "Bearer \(testToken)"]
                let answer = try await browser.send(method, path, body, bearer)
                #expect(answer.status == 401, "\(operation)")
            }
            var stranger = browser
            #expect(try await stranger.signIn("wrong").status == 403)
            #expect(try await stranger.signIn("").status == 401)
            #expect(stranger.cookie == nil)
            #expect(try await browser.send(.GET, "/console/api/session").status == 401)
        }
    }

    @Test("the token of a signed in identity opens nothing")
    func identities() async throws {
        var settings = Self.settings
        settings.pools = [PoolSettings(id: IdentityFixture.poolText, name: "one")]
        let secrets = try HubSecrets(text: try #require(settings.secrets).text)
        let pool = try #require(PoolID(IdentityFixture.poolText))
        let identities = IdentityDirectory(clock: SystemSyncEnvironment())
        let facts = try identities.create([IdentityFixture.login("alice")], in: pool, store)
        let tokens = IdentityTokens(secrets: secrets, clock: SystemSyncEnvironment())
        let token = tokens.issue(for: facts.id, in: pool, isAuthenticated: true)
        try await withBrowser(settings) { browser in
            var stranger = browser
            let answer = try await stranger.signIn(token)
            #expect(answer.status == 403)
        }
    }

    @Test("a session is begun, used and ended, and each change must carry its token")
    func sessions() async throws {
        let dataset = try store.dataset("shared")
        try await withBrowser { browser in
            var browser = browser
            let begun = try await browser.signIn(testToken)
            let set = try #require(begun.headers.first(name: "set-cookie"))
            for part in ["HttpOnly", "SameSite=Strict", "Path=/console", "Max-Age="] {
                #expect(set.contains(part), "\(part)")
            }
            #expect(!set.contains(testToken) && !begun.body.contains(testToken))
            let resumed = try await browser.send(.GET, "/console/api/session")
            #expect(resumed.json?["token"]?.text == browser.token)
            let put = #"{"dataset": "shared", "key": "k", "value": "v"}"#
            let path = "/console/api/put"
            for headers in [
                ["x-tidemark-token": ""], ["x-tidemark-token": "guess"],
                ["sec-fetch-site": "cross-site"], ["sec-fetch-site": "same-site"],
            ] as [HTTPHeaders] {
                let refused = try await browser.send(.POST, path, put, headers)
                #expect(refused.status == 403 && refused.code == "notAuthorized", "\(headers)")
            }
            let form = try await browser.send(
                .POST, path, put, ["content-type": "application/x-www-form-urlencoded"])
            #expect(form.status == 415)
            #expect(try dataset.get("k") == nil)
            #expect(try await browser.send(.POST, path, put).status == 200)
            #expect(try dataset.text("k") == "v")
            var careless = browser
            careless.token = nil
            #expect(try await careless.send(.DELETE, "/console/api/session").status == 403)
            #expect(try await browser.send(.GET, "/console/api/overview").status == 200)
            let ended = try await browser.send(.DELETE, "/console/api/session")
            #expect(ended.status == 200)
            #expect(ended.headers.first(name: "set-cookie")?.contains("Max-Age=0") == true)
            #expect(try await browser.send(.GET, "/console/api/overview").status == 401)
        }
    }

    @Test("the page, its files, answers and refusals all tell the browser to trust nothing else")
    func headers() async throws {
        try await withBrowser { browser in
            for path in [
                "/console/", "/console/app.js", "/console/style.css", "/console/icon.svg",
                "/console/none", "/console/api/overview", "/console/api/session",
            ] {
                let answer = try await browser.send(.GET, path)
                let policy = answer.headers.first(name: "content-security-policy") ?? ""
                for part in [
                    "default-src 'none'", "script-src 'self'", "style-src 'self'",
                    "connect-src 'self'", "img-src 'self' data:", "frame-ancestors 'none'",
                    "base-uri 'none'", "form-action 'self'",
                ] {
                    #expect(policy.contains(part), "\(path) lacks \(part)")
                }
                #expect(!policy.contains("unsafe"))
                #expect(answer.headers.first(name: "x-content-type-options") == "nosniff")
                #expect(answer.headers.first(name: "cache-control") == "no-store")
                #expect(answer.headers.first(name: "referrer-policy") == "no-referrer")
            }
            let page = try await browser.send(.GET, "/console/")
            #expect(page.status == 200)
            #expect(page.headers.first(name: "content-type") == "text/html; charset=utf-8")
            let script = try await browser.send(.GET, "/console/app.js")
            #expect(script.headers.first(name: "content-type") == "text/javascript; charset=utf-8")
            let head = try await browser.send(.HEAD, "/console/app.js")
            #expect(head.status == 200 && head.body.isEmpty)
            #expect(try await browser.send(.GET, "/console/none").status == 404)
            let method = try await browser.send(.PUT, "/console/api/put", "{}")
            #expect(method.status == 405 && method.headers.first(name: "allow") == "POST")
        }
    }

    @Test("who tries many tokens has to wait")
    func guessing() async throws {
        try await withBrowser { browser in
            var browser = browser
            var statuses: Set<UInt> = []
            // On a slow machine some more are let through meanwhile.
            for _ in 0..<1_000 where !statuses.contains(429) {
                statuses.insert(try await browser.signIn("guess").status)
            }
            #expect(statuses == [403, 429])
        }
    }

    @Test(
        "a page that listens is told each operation, and let go when it signs out or the hub ends")
    func stream() async throws {
        let dataset = try store.dataset("shared")
        try dataset.put("before", for: "old")
        try await withBrowser { browser in
            var browser = browser
            _ = try await browser.signIn(testToken)
            var request = HTTPClientRequest(url: browser.url + "/console/api/stream")
            request.headers = ["cookie": try #require(browser.cookie)]
            let response = try await browser.client.execute(
                request, timeout: TimeAmount(Patience.limit))
            #expect(response.headers.first(name: "content-type") == "text/event-stream")
            var text = ""
            var hasWritten = false
            for try await part in response.body {
                text += String(buffer: part)
                if !hasWritten, text.contains("event: open\n") {
                    hasWritten = true
                    try dataset.put("<script>", for: "new")
                }
                if text.contains("event: operation\n"), text.hasSuffix("\n\n") { break }
            }
            #expect(text.contains(#""dataset":"shared""#) && text.contains(#""text":"<script>""#))
            #expect(!text.contains("before"))
        }
    }
}
