import AsyncHTTPClient
import Foundation
import Logging
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// Key sets come from files and addresses, whole and in time, or not at all.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct KeySourceTests {
    let fixture: IdentityFixture

    init() throws {
        fixture = try IdentityFixture()
    }

    /// What comes from there; nil if nothing does.
    private func bytes(
        _ keys: IssuerSettings.Keys, clock: any SyncEnvironment = VirtualEnvironment()
    ) async throws -> [UInt8]? {
        let http = HTTPClient(eventLoopGroupProvider: .singleton)
        let source = SystemKeySource(http: http, threads: fixture.threads, clock: clock)
        let found = try? await source.bytes(of: keys)
        try await http.shutdown()
        return found
    }

    @Test("a file is read as it is, and a missing or large one is not")
    func files() async throws {
        let path = "\(fixture.directory.path)/keys.json"
        let keys = TestKeys.set([TestKeys.curvePublic])
        try Data(keys).write(to: URL(fileURLWithPath: path))
        #expect(try await bytes(.file(path: path)) == keys)
        #expect(try await bytes(.file(path: path + ".not")) == nil)
        try Data(count: SystemKeySource.bytesMax + 1).write(to: URL(fileURLWithPath: path))
        #expect(try await bytes(.file(path: path)) == nil)
    }

    @Test("an address is asked, and taken by its word only with status 200 and within bounds")
    func addresses() async throws {
        let keys = String(decoding: TestKeys.set([TestKeys.curvePublic]), as: UTF8.self)
        let good = try CannedServer(canned(type: "application/json", body: keys))
        #expect(try await bytes(.url(good.url)) == Array(keys.utf8))
        good.stop()
        #expect(try await bytes(.url(good.url)) == nil)
        let large = String(repeating: " ", count: SystemKeySource.bytesMax + 1)
        for answer in [
            canned(status: "404 Not Found", type: "application/json", body: keys),
            canned(type: "application/json", body: large), Array("nonsense\r\n\r\n".utf8),
        ] {
            let server = try CannedServer(answer)
            #expect(try await bytes(.url(server.url)) == nil)
            server.stop()
        }
    }

    @Test("an answer that does not come to an end is given up")
    func endless() async throws {
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"
        let server = try SilentServer(Array(head.utf8))
        let clock = VirtualEnvironment()
        let found = Task { try await bytes(.url(server.url), clock: clock) }
        await clock.untilAsleep()
        clock.advance(by: .seconds(5))
        #expect(try await found.value == nil)
        server.stop()
    }

    @Test("who signed in with an issuer bears its token as the identity of the login")
    func loginMode() async throws {
        let issuer = IssuerSettings(
            provider: "login.example.com", issuer: "https://login.example.com",
            audiences: ["app"], algorithms: [.hs256], keys: .shared(HubSecret(TestKeys.shared)))
        var pool = PoolSettings(id: IdentityFixture.poolText, name: "one")
        pool.providers = ["login.example.com"]
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let tokens = TokenVerifier(
            issuers: [issuer], source: TestKeySource(nil), clock: fixture.time, logger: logger)
        func mode(_ pools: [PoolSettings]) -> LoginMode {
            LoginMode(
                tokens: tokens, threads: fixture.threads, identities: fixture.identities,
                pools: pools)
        }
        let token = TestToken().shared()
        let first = try await mode([pool]).principal(of: token)
        let owner = try #require(
            try fixture.identities.owner(
                of: IdentityFixture.login("alice"), in: fixture.pool, fixture.store))
        #expect(first == .identity(owner, pool: fixture.pool, isAuthenticated: true))
        #expect(try await mode([pool]).principal(of: token) == first)
        await #expect(throws: APIFailure.self) { try await mode([]).principal(of: token) }
        await #expect(throws: APIFailure.self) { try await mode([pool]).principal(of: "x") }
    }
}
