import TestSupport
import Testing

@testable import TidemarkHub

struct HubSecretsTests {
    static let one = [UInt8](repeating: 1, count: 32)
    static let two = [UInt8](repeating: 2, count: 32)

    private static func error(_ text: String) -> HubSettingsError? {
        do throws(HubSettingsError) {
            _ = try HubSecrets(text: text)
            return nil
        } catch {
            return error
        }
    }

    @Test("no two uses have a key in common, and no two secrets")
    func uses() throws {
        let (one, two) = (try HubSecrets(keys: [Self.one]), try HubSecrets(keys: [Self.two]))
        var seen: Set<[UInt8]> = []
        for use in SecretUse.allCases {
            for secrets in [one, two] {
                let mac = secrets.mac([5], for: use)
                #expect(mac.count == 32)
                #expect(seen.insert(mac).inserted)
                #expect(secrets.signer(of: mac, [5], for: use) == 0)
                #expect(secrets.signer(of: mac, [6], for: use) == nil)
                #expect(secrets.signer(of: Array(mac.dropLast()), [5], for: use) == nil)
            }
        }
        #expect(Set(SecretUse.allCases.map(\.rawValue)) == [1, 2, 3, 4, 5, 6])
        // Frozen: what was sealed by an older hub is opened by a newer one.
        let key = Digests.hmac(Array("tidemark-hub-v1".utf8) + [4], key: Self.one)
        #expect(one.mac([5], for: .page) == Digests.hmac([5], key: key))
    }

    @Test("the first secret signs and all verify")
    func rotation() throws {
        let old = try HubSecrets(keys: [Self.one])
        let both = try HubSecrets(keys: [Self.two, Self.one])
        let new = try HubSecrets(keys: [Self.two])
        let mac = old.mac([1, 2], for: .page)
        #expect(both.signer(of: mac, [1, 2], for: .page) == 1)
        #expect(both.mac([1, 2], for: .page) == new.mac([1, 2], for: .page))
        #expect(new.signer(of: mac, [1, 2], for: .page) == nil)
    }

    @Test("a file has a secret on each line, and comments")
    func text() throws {
        let line = Base64.encoded(Self.one)
        let secrets = try HubSecrets(text: "# ours\n\n  \(line)\t\r\n\(Base64.encoded(Self.two))\n")
        let expected = try HubSecrets(keys: [Self.one, Self.two])
        #expect(secrets.mac([9], for: .webhook) == expected.mac([9], for: .webhook))
        let mac = try HubSecrets(keys: [Self.two]).mac([9], for: .webhook)
        #expect(secrets.signer(of: mac, [9], for: .webhook) == 1)
    }

    @Test("what is no secret is refused, and never shown")
    func refusals() throws {
        let short = Base64.encoded(Array("not very secret".utf8))
        for text in ["", "# nothing", short, "not base64!", "\(short)\n!!"] {
            let error = try #require(Self.error(text))
            #expect(error.value == nil)
            #expect(!"\(error)".contains(short))
            #expect(!"\(error)".contains("not base64!"))
        }
        let many = (0..<9).map { [UInt8](repeating: UInt8($0), count: 32) }
        #expect(throws: HubSettingsError.self) { try HubSecrets(keys: many) }
        #expect(throws: HubSettingsError.self) { try HubSecrets(keys: []) }
    }

    @Test("secrets that are drawn differ")
    func drawn() {
        let one = HubSecrets.drawn().mac([], for: .page)
        #expect(one != HubSecrets.drawn().mac([], for: .page))
    }

    @Test("a setting that is wrong is told by its key and what may stand there")
    func settingsErrors() {
        let shown = HubSettingsError("listen.port", value: "70000", allowed: "0...65535")
        #expect("\(shown)" == #"listen.port cannot be "70000"; allowed: 0...65535"#)
        let hidden = HubSettingsError("adminToken", allowed: "visible ASCII characters")
        #expect("\(hidden)".hasPrefix("adminToken is missing or not usable; allowed: visible"))
        let long = HubSettingsError("x", value: String(repeating: "y", count: 5_000), allowed: "z")
        #expect(long.description.utf8.count < 400)
    }
}

struct SealedTokenTests {
    @Test("what was sealed is opened for its use alone, and no altered token is")
    func alterations() throws {
        var generator = SeededGenerator(Seed.drawn())
        let secrets = try HubSecrets(keys: [HubSecretsTests.one])
        let others = try HubSecrets(keys: [HubSecretsTests.two])
        for _ in 0..<300 {
            let payload = generator.bytes(generator.below(100))
            let use = generator.element(of: SecretUse.allCases)
            let token = SealedToken.seal(payload, use, secrets)
            #expect(SealedToken.open(token, use, secrets) == payload)
            #expect(SealedToken.open(token, use, others) == nil)
            for other in SecretUse.allCases where other != use {
                #expect(SealedToken.open(token, other, secrets) == nil)
            }
            var bytes = Array(token.utf8)
            let index = generator.below(bytes.count)
            bytes[index] ^= UInt8(1 + generator.below(127))
            #expect(SealedToken.open(String(decoding: bytes, as: UTF8.self), use, secrets) == nil)
            #expect(SealedToken.open(String(token.dropLast()), use, secrets) == nil)
            #expect(SealedToken.open(token + "A", use, secrets) == nil)
        }
    }

    @Test("tokens have a bound, and one of another version is none")
    func bounds() throws {
        let secrets = try HubSecrets(keys: [HubSecretsTests.one])
        let largest = [UInt8](repeating: 7, count: SealedToken.payloadBytesMax)
        let token = SealedToken.seal(largest, .page, secrets)
        #expect(token.utf8.count <= SealedToken.charactersMax)
        #expect(SealedToken.open(token, .page, secrets) == largest)
        #expect(SealedToken.open("", .page, secrets) == nil)
        #expect(SealedToken.open(String(repeating: "A", count: 5_000), .page, secrets) == nil)
        let signed: [UInt8] = [2, 1, 2, 3]
        let later = Base64.encodedForURL(signed + secrets.mac(signed, for: .page))
        #expect(SealedToken.open(later, .page, secrets) == nil)
    }
}
