import TestSupport
import Testing
import TidemarkSync

@testable import TidemarkHub

/// Who a request is of is found out before its body is there, and proved when it is.
struct AuthenticatorTests {
    /// 2023-11-14 22:13:20, where the virtual clock begins.
    static let time = "20231114T221320Z"
    let clock = VirtualEnvironment()

    private struct Takes: BearerMode {
        let token: String
        let taken: Principal
        var failure = APIFailure.Kind.notAuthorized

        func principal(of token: String) async throws(APIFailure) -> Principal {
            guard token == self.token else { throw APIFailure(failure, "not \(self.token)") }
            return taken
        }
    }

    private func authenticator(_ bearers: [any BearerMode] = []) throws -> Authenticator {
        let keys = [
            HubSettings.AccessKey(id: "AKIDALL", secret: HubSecret("secret of all pools")),
            HubSettings.AccessKey(
                id: "AKIDONE", secret: HubSecret("secret of one pool"),
                pools: ["us-east-1:0000-1"]),
        ]
        return Authenticator(
            issuer: CredentialIssuer(
                secrets: try HubSecrets(keys: [HubSecretsTests.one]), clock: clock,
                lifetimeSeconds: 900),
            keys: StaticKeys(keys), region: "us-east-1", bearers: bearers, clock: clock)
    }

    private func signed(
        _ id: String, _ secret: String, service: String = "cognito-sync", token: String? = nil,
        body: [UInt8] = []
    ) throws -> SigV4Request {
        var headers = [(name: "host", value: "127.0.0.1:7300")]
        if let token { headers.append((name: "x-amz-security-token", value: token)) }
        let signer = SigV4Signer(
            accessKeyID: id, secret: secret, service: service, time: Self.time)
        return try signer.signed(
            SigV4Request(method: "POST", path: "/a%3Ab", query: "", headers: headers), body: body)
    }

    private func failure(
        _ request: SigV4Request, for service: SignedService = .sync, body: [UInt8] = []
    ) throws -> APIFailure.Kind? {
        let authenticator = try authenticator()
        do throws(APIFailure) {
            try authenticator.begin(request, for: service).finish(body: body)
            return nil
        } catch {
            return error.kind
        }
    }

    @Test("access keys of the settings are good for their pools")
    func staticKeys() throws {
        let pool = try #require(PoolID("us-east-1:0000-1"))
        let all = try authenticator().begin(signed("AKIDALL", "secret of all pools"))
        #expect(all.principal == .developer(keyID: "AKIDALL", pools: nil))
        #expect(all.expiresSeconds == nil)
        let one = try authenticator().begin(signed("AKIDONE", "secret of one pool"))
        #expect(one.principal == .developer(keyID: "AKIDONE", pools: [pool]))
        let request = try signed("AKIDALL", "secret of all pools", body: [1, 2])
        #expect(try failure(request, body: [1, 2]) == nil)
        #expect(try failure(request, body: [1, 3]) == .invalidSignature)
        #expect(try failure(signed("AKIDALL", "secret of one pool")) == .invalidSignature)
        #expect(try failure(signed("AKIDNONE", "x")) == .unrecognizedClient)
        let nobody = SigV4Request(method: "GET", path: "/", query: "", headers: [])
        #expect(try failure(nobody) == .missingAuthenticationToken)
    }

    @Test("a signature for one service is none for another")
    func services() throws {
        let request = try signed("AKIDALL", "secret of all pools", service: "cognito-identity")
        #expect(try failure(request, for: .identity) == nil)
        #expect(try failure(request, for: .sync) == .invalidSignature)
        #expect(
            try failure(signed("AKIDALL", "secret of all pools"), for: .identity)
                == .invalidSignature)
    }

    @Test("temporary credentials sign, until they end and with their own token alone")
    func temporary() throws {
        let identity = try #require(IdentityID("us-east-1:0000-2"))
        let pool = try #require(PoolID("us-east-1:0000-1"))
        let issuer = CredentialIssuer(
            secrets: try HubSecrets(keys: [HubSecretsTests.one]), clock: clock,
            lifetimeSeconds: 900)
        let one = issuer.issue(for: identity, in: pool, isAuthenticated: true)
        let other = issuer.issue(for: identity, in: pool, isAuthenticated: true)
        let request = try signed(one.accessKeyID, one.secretKey, token: one.sessionToken)
        let call = try authenticator().begin(request)
        #expect(call.principal == .identity(identity, pool: pool, isAuthenticated: true))
        #expect(call.expiresSeconds == one.expiresSeconds)
        #expect(try failure(request) == nil)
        // Without its token it is no access key at all, with another one's it is not that one's.
        #expect(try failure(signed(one.accessKeyID, one.secretKey)) == .unrecognizedClient)
        #expect(
            try failure(signed(one.accessKeyID, one.secretKey, token: other.sessionToken))
                == .unrecognizedClient)
        #expect(
            try failure(signed(one.accessKeyID, other.secretKey, token: one.sessionToken))
                == .invalidSignature)
        // A key of the settings is not looked up where a token comes with it.
        #expect(
            try failure(signed("AKIDALL", "secret of all pools", token: one.sessionToken))
                == .unrecognizedClient)
    }

    @Test("bearers' tokens are tried in order, and the last one's failure is told")
    func bearers() async throws {
        let developer = Principal.developer(keyID: "k", pools: nil)
        let first = Takes(token: "one", taken: .admin)
        let second = Takes(token: "two", taken: developer)
        let authenticator = try authenticator([first, second])
        #expect(try await authenticator.bearer("Bearer one") == .admin)
        #expect(try await authenticator.bearer("bearer two") == developer)
        do throws(APIFailure) {
            _ = try await authenticator.bearer("Bearer three")
            Issue.record("a token that nobody takes was taken")
        } catch {
            #expect(error == APIFailure(.notAuthorized, "not two"))
        }
        let broken = Takes(token: "one", taken: .admin, failure: .serviceUnavailable)
        let failing = try self.authenticator([broken, second])
        #expect(await Self.kind(failing, "Bearer two") == .serviceUnavailable)
        let closed = try self.authenticator()
        #expect(await Self.kind(closed, "Bearer two") == .notAuthorized)
        for header in [nil, "", "Bearer", "Bearer ", "Basic two", "Bearer t wo", "Bearer é"] {
            let missing = await Self.kind(authenticator, header)
            #expect(missing == .missingAuthenticationToken)
        }
        let long = "Bearer " + String(repeating: "x", count: 20_000)
        #expect(await Self.kind(authenticator, long) == .missingAuthenticationToken)
    }

    private static func kind(
        _ authenticator: Authenticator, _ header: String?
    ) async -> APIFailure.Kind? {
        do throws(APIFailure) {
            _ = try await authenticator.bearer(header)
            return nil
        } catch {
            return error.kind
        }
    }

    @Test("the hub's own token is taken whole")
    func adminToken() async throws {
        let mode = AdminTokenMode(Array("correct-horse".utf8))
        let authenticator = try authenticator([mode])
        #expect(try await authenticator.bearer("Bearer correct-horse") == .admin)
        for wrong in ["correct-hors", "correct-horses", "Correct-horse", "c"] {
            #expect(await Self.kind(authenticator, "Bearer \(wrong)") == .notAuthorized)
        }
    }

    @Test("tokens of the settings are taken whole, each for what it reaches")
    func staticBearers() async throws {
        let (identity, pool) = ("us-east-1:0000-2", "us-east-1:0000-1")
        let mode = StaticBearerMode([
            .init(token: HubSecret("token-of-a-team-1"), reach: .space("team")),
            .init(token: HubSecret("token-of-a-team-2"), reach: .space("team")),
            .init(token: HubSecret("token-of-a-device"), reach: .identity(identity, pool: pool)),
        ])
        let authenticator = try authenticator([mode])
        for number in 1...2 {
            let found = try await authenticator.bearer("Bearer token-of-a-team-\(number)")
            #expect(found == .replica(space: "team"))
        }
        let device = try await authenticator.bearer("Bearer token-of-a-device")
        let expected = Principal.identity(
            try #require(IdentityID(identity)), pool: try #require(PoolID(pool)),
            isAuthenticated: true)
        #expect(device == expected)
        for wrong in ["token-of-a-team-", "token-of-a-team-3", "Token-of-a-device", "t"] {
            #expect(await Self.kind(authenticator, "Bearer \(wrong)") == .notAuthorized)
        }
        let none = try self.authenticator([StaticBearerMode([])])
        #expect(await Self.kind(none, "Bearer token-of-a-device") == .notAuthorized)
    }

    @Test("a token of an identity is a bearer's")
    func identityTokens() async throws {
        let identity = try #require(IdentityID("us-east-1:0000-2"))
        let pool = try #require(PoolID("us-east-1:0000-1"))
        let tokens = IdentityTokens(
            secrets: try HubSecrets(keys: [HubSecretsTests.one]), clock: clock)
        let authenticator = try authenticator([IdentityTokenMode(tokens: tokens)])
        let token = tokens.issue(for: identity, in: pool, isAuthenticated: false)
        let expected = Principal.identity(identity, pool: pool, isAuthenticated: false)
        #expect(try await authenticator.bearer("Bearer \(token)") == expected)
        clock.advance(by: .seconds(900))
        #expect(await Self.kind(authenticator, "Bearer \(token)") == .notAuthorized)
    }
}
