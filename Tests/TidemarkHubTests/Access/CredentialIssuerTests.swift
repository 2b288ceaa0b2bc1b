import TestSupport
import Testing
import TidemarkSync

@testable import TidemarkHub

/// Temporary credentials are good until they end, and no others are.
struct CredentialIssuerTests {
    let time = VirtualEnvironment()
    let identity: IdentityID
    let pool: PoolID

    init() throws {
        identity = try #require(IdentityID("us-east-1:0000-2"))
        pool = try #require(PoolID("us-east-1:0000-1"))
    }

    private func issuer(_ keys: [[UInt8]] = [HubSecretsTests.one]) throws -> CredentialIssuer {
        CredentialIssuer(
            secrets: try HubSecrets(keys: keys), clock: time, lifetimeSeconds: 3_600)
    }

    private static func claim(_ accessKeyID: String, _ token: String?) throws -> SigV4Claim {
        var headers = [
            (name: "host", value: "h"), (name: "x-amz-date", value: "20260301T120000Z"),
            (
                name: "authorization",
                value: "AWS4-HMAC-SHA256 Credential=\(accessKeyID)/20260301/us-east-1/"
                    + "cognito-sync/aws4_request, SignedHeaders=host;x-amz-date, Signature=00"
            ),
        ]
        if let token { headers.append((name: "x-amz-security-token", value: token)) }
        return try SigV4Claim(
            SigV4Request(method: "GET", path: "/", query: "", headers: headers))
    }

    private static func failure(
        _ issuer: CredentialIssuer, _ accessKeyID: String, _ token: String?
    ) throws -> APIFailure.Kind? {
        let claim = try claim(accessKeyID, token)
        do throws(APIFailure) {
            _ = try issuer.key(of: claim)
            return nil
        } catch {
            return error.kind
        }
    }

    @Test("what was issued says whose it is, and has the secret that it was issued with")
    func roundTrip() throws {
        let issuer = try issuer()
        for isAuthenticated in [false, true] {
            let issued = issuer.issue(for: identity, in: pool, isAuthenticated: isAuthenticated)
            #expect(issued.accessKeyID.hasPrefix("ASIA"))
            #expect(issued.accessKeyID.utf8.count == 20)
            #expect(issued.secretKey.utf8.count == 40)
            #expect(issued.sessionToken.utf8.count <= 2_048)
            #expect(issued.expiresSeconds == Int64(time.now() / 1_000) + 3_600)
            let key = try issuer.key(of: Self.claim(issued.accessKeyID, issued.sessionToken))
            #expect(
                key.principal
                    == .identity(identity, pool: pool, isAuthenticated: isAuthenticated))
            #expect(key.secret == issued.secretKey)
            #expect(key.expiresSeconds == issued.expiresSeconds)
        }
        let names = Set((0..<200).map { _ in AccessKeyName.drawn() })
        #expect(names.count == 200)
    }

    @Test("they end at their time")
    func expiry() throws {
        let issuer = try issuer()
        let issued = issuer.issue(for: identity, in: pool, isAuthenticated: false)
        time.advance(by: .seconds(3_599))
        #expect(try Self.failure(issuer, issued.accessKeyID, issued.sessionToken) == nil)
        time.advance(by: .seconds(1))
        #expect(
            try Self.failure(issuer, issued.accessKeyID, issued.sessionToken) == .expiredToken)
    }

    @Test("another access key, no token, and tokens of other uses and hubs are refused")
    func strangers() throws {
        let issuer = try issuer()
        let issued = issuer.issue(for: identity, in: pool, isAuthenticated: false)
        let other = issuer.issue(for: identity, in: pool, isAuthenticated: false)
        let unknown = APIFailure.Kind.unrecognizedClient
        #expect(try Self.failure(issuer, other.accessKeyID, issued.sessionToken) == unknown)
        #expect(try Self.failure(issuer, issued.accessKeyID, nil) == unknown)
        #expect(try Self.failure(issuer, issued.accessKeyID, "AAAA") == unknown)
        let secrets = try HubSecrets(keys: [HubSecretsTests.one])
        let login = IdentityTokens(secrets: secrets, clock: time)
            .issue(for: identity, in: pool, isAuthenticated: true)
        #expect(try Self.failure(issuer, issued.accessKeyID, login) == unknown)
        let stranger = try self.issuer([HubSecretsTests.two])
        #expect(try Self.failure(stranger, issued.accessKeyID, issued.sessionToken) == unknown)
    }

    @Test("far more tokens than are remembered stay good, each with its own secret")
    func many() throws {
        let issuer = try issuer()
        let issued = (0..<2_000).map { number in
            issuer.issue(for: identity, in: pool, isAuthenticated: number % 2 == 0)
        }
        for _ in 0..<2 {
            for (number, one) in issued.enumerated() {
                let key = try issuer.key(of: Self.claim(one.accessKeyID, one.sessionToken))
                #expect(key.secret == one.secretKey)
                let isAuthenticated = number % 2 == 0
                #expect(
                    key.principal
                        == .identity(identity, pool: pool, isAuthenticated: isAuthenticated))
            }
        }
        let cache = CallerKeyCache()
        let key = try issuer.key(of: Self.claim(issued[0].accessKeyID, issued[0].sessionToken))
        for number in 0..<20_000 {
            cache.keep(CallerKeyCache.Entry(accessKeyID: "\(number)", key: key), of: "\(number)")
        }
        let kept = (0..<20_000).filter { cache.entry(of: "\($0)") != nil }
        #expect(kept.count <= 16_384)
        #expect(kept.last == 19_999)
        for number in kept {
            #expect(cache.entry(of: "\(number)")?.accessKeyID == "\(number)")
        }
    }

    @Test("a new secret in front leaves old credentials good, with their secret keys")
    func rotation() throws {
        let issued = try issuer().issue(for: identity, in: pool, isAuthenticated: false)
        let rotated = try issuer([HubSecretsTests.two, HubSecretsTests.one])
        let key = try rotated.key(of: Self.claim(issued.accessKeyID, issued.sessionToken))
        #expect(key.secret == issued.secretKey)
        let new = rotated.issue(for: identity, in: pool, isAuthenticated: false)
        #expect(try Self.failure(issuer(), new.accessKeyID, new.sessionToken) != nil)
    }

    @Test("what a session token says comes back, and nothing else is one")
    func claims() throws {
        var generator = SeededGenerator(Seed.drawn())
        let claim = SessionClaim(
            accessKeyID: AccessKeyName.drawn(), identity: identity, pool: pool,
            isAuthenticated: true, expiresSeconds: 1_772_366_400)
        let bytes = claim.encoded
        #expect(SessionClaim(bytes) == claim)
        #expect(SessionClaim(bytes + [0]) == nil)
        for count in bytes.indices { #expect(SessionClaim(Array(bytes.prefix(count))) == nil) }
        for _ in 0..<500 {
            var altered = bytes
            let index = generator.below(bytes.count)
            altered[index] ^= UInt8(1 + generator.below(255))
            if let read = SessionClaim(altered) { #expect(read != claim) }
        }
    }

    @Test("a lifetime out of bounds is taken for the nearest")
    func lifetimes() throws {
        let secrets = try HubSecrets(keys: [HubSecretsTests.one])
        for (given, taken) in [(1, 900), (900, 900), (43_200, 43_200), (99_999, 43_200)] {
            let issuer = CredentialIssuer(
                secrets: secrets, clock: time, lifetimeSeconds: Int64(given))
            #expect(issuer.lifetimeSeconds == Int64(taken))
        }
    }

    @Test("tokens of identities end, and are none of another kind")
    func identityTokens() throws {
        let secrets = try HubSecrets(keys: [HubSecretsTests.one])
        let tokens = IdentityTokens(secrets: secrets, clock: time)
        let token = tokens.issue(for: identity, in: pool, isAuthenticated: true, seconds: 60)
        #expect(try tokens.verified(token).identity == identity)
        let session = try issuer().issue(for: identity, in: pool, isAuthenticated: true)
        #expect(throws: APIFailure.self) { try tokens.verified(session.sessionToken) }
        #expect(throws: APIFailure.self) { try tokens.verified("") }
        time.advance(by: .seconds(60))
        #expect(throws: APIFailure.self) { try tokens.verified(token) }
    }
}
