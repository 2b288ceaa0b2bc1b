import Logging
import TestSupport
import Testing
import TidemarkSync

@testable import TidemarkHub

/// Who signed in where is believed of the issuers in the settings, by their keys alone.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct TokenVerifierTests {
    static let provider = "login.example.com"
    let time = VirtualEnvironment()

    private func verifier(_ issuers: [IssuerSettings], _ source: TestKeySource) -> TokenVerifier {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return TokenVerifier(issuers: issuers, source: source, clock: time, logger: logger)
    }

    private static func issuer(
        _ algorithms: Set<IssuerSettings.Algorithm>, _ keys: IssuerSettings.Keys,
        provider: String = Self.provider, issuer: String = "https://login.example.com"
    ) -> IssuerSettings {
        IssuerSettings(
            provider: provider, issuer: issuer, audiences: ["other", "app"],
            algorithms: algorithms, keys: keys)
    }

    /// Of a shared secret.
    private func shared() -> TokenVerifier {
        verifier(
            [Self.issuer([.hs256], .shared(HubSecret(TestKeys.shared)))], TestKeySource(nil))
    }

    private static func failure(
        _ verifier: TokenVerifier, _ token: String, provider: String? = Self.provider
    ) async -> APIFailure.Kind? {
        do throws(APIFailure) {
            _ = try await verifier.verify(token, provider: provider)
            return nil
        } catch {
            return error.kind
        }
    }

    @Test("a token with a shared secret says who signed in")
    func sharedSecret() async throws {
        let verifier = shared()
        let login = VerifiedLogin(provider: Self.provider, subject: "alice")
        let token = TestToken().shared()
        #expect(try await verifier.verify(token, provider: Self.provider) == login)
        #expect(try await verifier.verify(token, provider: nil) == login)
        let wrong = [UInt8](repeating: 9, count: 32)
        #expect(await Self.failure(verifier, TestToken().shared(secret: wrong)) == .notAuthorized)
        #expect(await Self.failure(verifier, token, provider: "example.org") == .notAuthorized)
        for index in [0, 30, token.utf8.count - 2] {
            var bytes = Array(token.utf8)
            bytes[index] = bytes[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            let altered = String(decoding: bytes, as: UTF8.self)
            #expect(await Self.failure(verifier, altered) == .notAuthorized)
        }
    }

    @Test("issuer, audience, times and subject must fit")
    func claims() async throws {
        let verifier = shared()
        var wrong: [TestToken] = []
        func add(_ change: (inout TestToken) -> Void) {
            var token = TestToken()
            change(&token)
            wrong.append(token)
        }
        add { $0.iss = "https://login.example.com/" }
        add { $0.iss = nil }
        add { $0.aud = "another app" }
        add { $0.aud = nil }
        add { $0.exp = nil }
        add { $0.exp = 1_699_999_940 }
        add { $0.nbf = 1_700_000_061 }
        add { $0.sub = nil }
        add { $0.sub = "" }
        add { $0.sub = "a\u{0}b" }
        add { $0.sub = String(repeating: "x", count: 1_025) }
        for token in wrong {
            #expect(await Self.failure(verifier, token.shared()) == .notAuthorized, "\(token)")
        }
        var right = TestToken()
        right.exp = 1_699_999_941
        right.nbf = 1_700_000_060
        right.aud = "other"
        #expect(await Self.failure(verifier, right.shared()) == nil)
        time.advance(by: .seconds(1))
        #expect(await Self.failure(verifier, right.shared()) == .notAuthorized)
    }

    @Test("an audience can be a list, or the client that a token is for")
    func audiences() async throws {
        let verifier = shared()
        let begin = #"{"iss":"https://login.example.com","sub":"a","exp":1700003600,"#
        for (end, isRight) in [
            (#""aud":["x","app"]}"#, true), (#""aud":["x"]}"#, false), (#""aud":[]}"#, false),
            (#""client_id":"app"}"#, true), (#""client_id":"x"}"#, false),
            (#""aud":"x","client_id":"app"}"#, false), (#""aud":7}"#, false),
        ] {
            let failure = await Self.failure(verifier, TestToken.shared(begin + end))
            #expect((failure == nil) == isRight, "\(end)")
        }
    }

    @Test("what is no such token, or hides behind its head, is refused")
    func heads() async throws {
        let verifier = shared()
        let token = TestToken()
        let unsigned = token.shared(head: #"{"alg":"none"}"#)
        let bare = unsigned.split(separator: ".").prefix(2).joined(separator: ".") + "."
        var wrong = [
            "", "x", "a.b.c", "..", bare, unsigned, String(repeating: "A", count: 20_000),
            token.shared() + ".x",
        ]
        for head in [
            #"{"alg":"NONE"}"#, #"{"alg":"HS512"}"#, #"{"alg":"RS256"}"#, #"{"alg":"ES256"}"#,
            #"{"alg":["HS256"]}"#, #"{}"#, #"[]"#, #"{"alg":"HS256","crit":["b64"],"b64":false}"#,
        ] {
            wrong.append(token.shared(head: head))
        }
        for token in wrong {
            #expect(await Self.failure(verifier, token) == .notAuthorized, "\(token.prefix(80))")
        }
    }

    @Test("keys of a set verify by their own algorithm alone")
    func keySets() async throws {
        let keys = TestKeys.set([
            #"{"kty":"from the future","kid":"new","q":1}"#, TestKeys.rsaPublic,
            TestKeys.curvePublic, #"{"kty":"EC","kid":"broken","alg":"ES256","crv":"P-256"}"#,
        ])
        let source = TestKeySource(keys)
        let verifier = verifier(
            [Self.issuer([.rs256, .es256], .url("https://login.example.com/keys"))], source)
        let rsa = try await TestToken().signed(TestKeys.rsaPrivate)
        let curve = try await TestToken().signed(TestKeys.curvePrivate)
        #expect(await Self.failure(verifier, rsa) == nil)
        #expect(await Self.failure(verifier, curve) == nil)
        #expect(source.count == 1)
        // The public key, which everybody knows, taken for a shared secret.
        for secret in [keys, Array(TestKeys.rsaPublic.utf8)] {
            let head = #"{"alg":"HS256","kid":"rsa"}"#
            let forged = TestToken().shared(head: head, secret: secret)
            #expect(await Self.failure(verifier, forged) == .notAuthorized)
        }
        let onlyCurve = self.verifier(
            [Self.issuer([.es256], .file(path: "keys"))], TestKeySource(keys))
        #expect(await Self.failure(onlyCurve, rsa) == .notAuthorized)
        #expect(await Self.failure(onlyCurve, curve) == nil)
    }

    @Test("a shared key of a file is one for HS256, and none that is for encryption is taken")
    func fileKeys() async throws {
        let secret = Base64.encodedForURL(TestKeys.shared)
        func verifier(_ key: String, _ allowed: Set<IssuerSettings.Algorithm>) -> TokenVerifier {
            self.verifier(
                [Self.issuer(allowed, .file(path: "keys"))], TestKeySource(TestKeys.set([key])))
        }
        let right = #"{"kty":"oct","kid":"s","alg":"HS256","k":"\#(secret)"}"#
        let token = TestToken().shared(head: #"{"alg":"HS256","kid":"s"}"#)
        #expect(await Self.failure(verifier(right, [.hs256]), token) == nil)
        #expect(await Self.failure(verifier(right, [.rs256]), token) != nil)
        for wrong in [
            #"{"kty":"oct","kid":"s","use":"enc","k":"\#(secret)"}"#,
            #"{"kty":"oct","kid":"s","alg":"HS512","k":"\#(secret)"}"#,
            #"{"kty":"oct","kid":"t","k":"\#(secret)"}"#, #"{"kty":"oct","kid":"s","k":"c2hvcnQ"}"#,
        ] {
            #expect(await Self.failure(verifier(wrong, [.hs256]), token) != nil)
        }
    }

    @Test("a key that is not known is looked for once a minute, whatever tokens come")
    func newKeys() async throws {
        let source = TestKeySource(TestKeys.set([TestKeys.rsaPublic]))
        let verifier = verifier(
            [Self.issuer([.rs256, .es256], .url("https://login.example.com/keys"))], source)
        let rsa = try await TestToken().signed(TestKeys.rsaPrivate)
        var later = TestToken()
        later.exp = 1_700_100_000
        let curve = try await later.signed(TestKeys.curvePrivate)
        #expect(await Self.failure(verifier, rsa) == nil)
        for _ in 0..<20 { #expect(await Self.failure(verifier, curve) == .notAuthorized) }
        #expect(source.count == 1)
        source.answer(with: TestKeys.set([TestKeys.curvePublic]))
        time.advance(by: .seconds(60))
        #expect(await Self.failure(verifier, curve) == nil)
        #expect(source.count == 2)
        // The old one is gone with the set that had it.
        #expect(await Self.failure(verifier, rsa) == .notAuthorized)
        #expect(source.count == 2)
        // Known ones are read again each hour, and stay if that fails.
        source.answer(with: nil)
        time.advance(by: .seconds(3_600))
        #expect(await Self.failure(verifier, curve) == nil)
        #expect(source.count == 3)
    }

    @Test("a token whose key is known does not wait while keys are read again for another one")
    func knownBesideReading() async throws {
        let source = HeldKeySource(TestKeys.set([TestKeys.rsaPublic]))
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let verifier = TokenVerifier(
            issuers: [Self.issuer([.rs256, .es256], .url("https://login.example.com/keys"))],
            source: source, clock: time, logger: logger)
        let rsa = try await TestToken().signed(TestKeys.rsaPrivate)
        let curve = try await TestToken().signed(TestKeys.curvePrivate)
        #expect(await Self.failure(verifier, rsa) == nil)
        time.advance(by: .seconds(60))
        source.hold()
        let unknown = Task { await Self.failure(verifier, curve) }
        try await eventually("asked again") { source.counts.begun == 2 }
        #expect(await Self.failure(verifier, rsa) == nil)
        #expect(source.counts.ended == 1)
        source.release()
        #expect(await unknown.value == .notAuthorized)
        #expect(source.counts.ended == 2)
    }

    @Test("keys without names are read again when none of them has signed a token")
    func namelessKeys() async throws {
        let source = TestKeySource(TestKeys.set([TestKeys.otherCurveNameless]))
        let verifier = verifier(
            [Self.issuer([.es256], .url("https://login.example.com/keys"))], source)
        let curve = try await TestToken().signed(TestKeys.curvePrivate)
        for _ in 0..<5 { #expect(await Self.failure(verifier, curve) == .notAuthorized) }
        #expect(source.count == 1)
        source.answer(with: TestKeys.set([TestKeys.curveNameless]))
        time.advance(by: .seconds(60))
        #expect(await Self.failure(verifier, curve) == nil)
        #expect(source.count == 2)
    }

    @Test("without keys the caller is told to come again, and they are looked for each minute")
    func withoutKeys() async throws {
        let source = TestKeySource(nil)
        let verifier = verifier(
            [Self.issuer([.rs256], .url("https://login.example.com/keys"))], source)
        let rsa = try await TestToken().signed(TestKeys.rsaPrivate)
        for _ in 0..<5 { #expect(await Self.failure(verifier, rsa) == .serviceUnavailable) }
        #expect(source.count == 1)
        source.answer(with: Array("no JSON".utf8))
        time.advance(by: .seconds(60))
        #expect(await Self.failure(verifier, rsa) == .serviceUnavailable)
        source.answer(with: TestKeys.set([TestKeys.rsaPublic]))
        time.advance(by: .seconds(60))
        #expect(await Self.failure(verifier, rsa) == nil)
        #expect(source.count == 3)
    }

    @Test("a bearer's token is looked at by the issuer that it names")
    func bearers() async throws {
        let other = [UInt8](repeating: 5, count: 40)
        let verifier = verifier(
            [
                Self.issuer([.hs256], .shared(HubSecret(TestKeys.shared))),
                Self.issuer(
                    [.hs256], .shared(HubSecret(other)), provider: "b",
                    issuer: "https://b.example.com"),
            ], TestKeySource(nil))
        var token = TestToken()
        token.iss = "https://b.example.com"
        let login = try await verifier.verify(token.shared(secret: other), provider: nil)
        #expect(login == VerifiedLogin(provider: "b", subject: "alice"))
        #expect(await Self.failure(verifier, token.shared(), provider: nil) == .notAuthorized)
        let mixed = token.shared(secret: other)
        #expect(await Self.failure(verifier, mixed, provider: Self.provider) == .notAuthorized)
        token.iss = "https://c.example.com"
        #expect(await Self.failure(verifier, token.shared(), provider: nil) == .notAuthorized)
    }

    @Test("of several apps of one issuer a bearer's token is of the one that it is meant for")
    func apps() async throws {
        var issuers: [IssuerSettings] = []
        for number in 0..<8 {
            var issuer = Self.issuer(
                [.hs256], .shared(HubSecret(TestKeys.shared)), provider: "p\(number)")
            issuer.audiences = ["app \(number)", "all"]
            issuers.append(issuer)
        }
        let verifier = verifier(issuers, TestKeySource(nil))
        for number in 0..<8 {
            var token = TestToken()
            token.aud = "app \(number)"
            let login = try await verifier.verify(token.shared(), provider: nil)
            #expect(login.provider == "p\(number)")
        }
        var token = TestToken()
        token.aud = "all"
        #expect(try await verifier.verify(token.shared(), provider: nil).provider == "p0")
        token.aud = "none"
        #expect(await Self.failure(verifier, token.shared(), provider: nil) == .notAuthorized)
    }
}
