import JWTKit
import Synchronization
import TestSupport
import TidemarkSync

@testable import TidemarkHub

/// Keys that were made for these tests and sign nothing else.
enum TestKeys {
    static let shared = Array("a shared secret of at least 32 bytes".utf8)

    private static let modulus =
        "mFW94Cwu5jEKHUFnK6o7UoqYhQlWmCRfzomZuNZFvJaKpgWyR7GFSWDglAFIjUKwnEGbjOBGyz5IqGhC"
        + "v1wlQMAp0kD8AHI3ncDaLNS06keeCdOBOfO-bhfCCb62RViDMvJr51aUA8hTMtNPjSuVNrzbjOshy3jv"
        + "AacYSK6AuKX5XUsq_UaTkt_WkoKirvGlyrOSIEUr3VTG4eRG9xKOLll_znsy4YFNvhXQjxLeNvgL_vjg"
        + "HyGP3qGlhIeYsdtzHGZs7r5kKfHGKmbvZ8lJ2zzXQypfi-nS9YSPMimVyPUpNL4yQrEgP_e0eH2sEmCe"
        + "LbVzZ7Ddnt3PdG76NMoSgQ"
    private static let exponent =
        "Ip0G5Bc9_9WAPhYElo4bZR2zWrU8vRy0vUYUTQS4-0k8j01HjVVHmxz9YnvpK5nN7e9VZBz40Qkhssxf"
        + "8EHEgDI5vnnAGOza-MgfeuTJB9vGi-aIXC3nZPYWg6bXHSonw42EWaAZSUO9LdUIZCQVR0cB3wL1Xpmn"
        + "uxkn4inueyX3c4tMq5OK7V6lwGV5GJ0-0hrLmYCdWx0ssXQjdXE4CRnu71u133BRzRU4o_LY_K0CyfYU"
        + "pVKx8YcOsvpWXwSbRa2M58ilX5Ebrpw8fMz_Iq_UMqBfHnKit9vKvMVbxxyMwKRGH_aRDlGrbEXDKla5"
        + "w7XFfBEmAHK9GYctmwjinQ"
    private static let prime =
        "0um7uWLcbFoHlmCtYCX0yU3-SSu-5Id_WE6XgMut_RtsOQ8dpE14Vx8ThvkCcFh5s3M6gylpYeNBr4hR"
        + "vK07QvzHta2BJHf0xvetWn2fIBsHUZRxR47OTv__37M9jl23RuUuszcLdkGeIcv90lXjeJ-8QU5N2x_5"
        + "kgYo1Tnsvq0"
    private static let otherPrime =
        "uOZO1uaZO0XdqN4RoJZUttlvoGkrCuQap_HiknCB5lU_RQgvcQy0wH74-XnhFd7n-nvwPen8HXUPJjXi"
        + "9y_moyMVMUx7QmqbIqj48EXgU9li56krRi0eUJZVjLQsuSs90U4nmbAc792CuHCX15GFZHeeq-pMKDLm"
        + "4MTzuzlWgaU"
    private static let curve =
        #""crv":"P-256","x":"BOeSVo52JBEOcOxwtg0-AyuCExJhPLEQ0M4T0BAmaFw","#
        + #""y":"tfp88bTz45vTFgIdw7qqFXqkXZF5WZYr6x63h2BJFmg""#

    /// Without `alg`, as some issuers have theirs.
    static let rsaPublic = #"{"kty":"RSA","kid":"rsa","use":"sig","n":"\#(modulus)","e":"AQAB"}"#
    static let rsaPrivate =
        #"{"kty":"RSA","kid":"rsa","alg":"RS256","n":"\#(modulus)","e":"AQAB","d":"\#(exponent)","#
        + #""p":"\#(prime)","q":"\#(otherPrime)"}"#
    static let curvePublic = #"{"kty":"EC","kid":"curve","alg":"ES256",\#(curve)}"#
    /// The same without its name, as an issuer with one key may have it.
    static let curveNameless = #"{"kty":"EC","alg":"ES256",\#(curve)}"#
    /// The base point of the curve.
    static let otherCurveNameless =
        #"{"kty":"EC","alg":"ES256","crv":"P-256","#
        + #""x":"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY","#
        + #""y":"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"}"#
    static let curvePrivate =
        #"{"kty":"EC","kid":"curve","alg":"ES256",\#(curve),"#
        + #""d":"oZGiQvttQjb-V1Jjuf66xsMbcVAnaTdG2p5AnzSZuog"}"#

    static func set(_ keys: [String]) -> [UInt8] {
        Array(#"{"keys":[\#(keys.joined(separator: ","))]}"#.utf8)
    }
}

/// A token in the making.
struct TestToken: JWTPayload {
    var iss: String? = "https://login.example.com"
    var sub: String? = "alice"
    var aud: String? = "app"
    var exp: Double? = 1_700_003_600
    var nbf: Double?

    func verify(using algorithm: some JWTAlgorithm) async throws {}

    /// Signed with HMAC-SHA-256 by hand, so that the head can be anything.
    ///
    /// - Parameter head: nil for a right one.
    func shared(
        head: String = #"{"alg":"HS256","typ":"JWT"}"#, secret: [UInt8] = TestKeys.shared
    ) -> String {
        var claims: [String] = []
        for (name, text) in [("iss", iss), ("sub", sub), ("aud", aud)] {
            if let text { claims.append("\"\(name)\":\(JSONText.quoted(text))") }
        }
        for (name, number) in [("exp", exp), ("nbf", nbf)] {
            if let number { claims.append("\"\(name)\":\(number)") }
        }
        return Self.shared("{\(claims.joined(separator: ","))}", head: head, secret: secret)
    }

    static func shared(
        _ claims: String, head: String = #"{"alg":"HS256"}"#, secret: [UInt8] = TestKeys.shared
    ) -> String {
        let signed = [head, claims].map { Base64.encodedForURL(Array($0.utf8)) }
            .joined(separator: ".")
        let signature = Digests.hmac(Array(signed.utf8), key: secret)
        return signed + "." + Base64.encodedForURL(signature)
    }

    /// Signed by a JSON Web Key with its private part.
    func signed(_ key: String) async throws -> String {
        let keys = JWTKeyCollection()
        let jwk = try JWK(json: key)
        try await keys.add(jwk: jwk)
        return try await keys.sign(self, kid: jwk.keyIdentifier)
    }
}

/// Key sets that a test changes, and how often they were asked for.
final class TestKeySource: KeySource {
    private struct State {
        var answer: [UInt8]?
        var count = 0
    }

    private let state: Mutex<State>

    init(_ answer: [UInt8]?) {
        state = Mutex(State(answer: answer))
    }

    var count: Int { state.withLock { $0.count } }

    /// nil to fail.
    func answer(with bytes: [UInt8]?) {
        state.withLock { $0.answer = bytes }
    }

    func bytes(of keys: IssuerSettings.Keys) async throws -> [UInt8] {
        let said = state.withLock { state in
            state.count += 1
            return state.answer
        }
        guard let answer = said else { throw KeySourceError(description: "a test says so") }
        return answer
    }
}

/// A key set that comes when a test says so.
final class HeldKeySource: KeySource {
    private struct State {
        var isHeld = false
        var counts = (begun: 0, ended: 0)
    }

    private let answer: [UInt8]
    private let state = Mutex(State())

    init(_ answer: [UInt8]) {
        self.answer = answer
    }

    var counts: (begun: Int, ended: Int) { state.withLock { $0.counts } }

    func hold() {
        state.withLock { $0.isHeld = true }
    }

    func release() {
        state.withLock { $0.isHeld = false }
    }

    func bytes(of keys: IssuerSettings.Keys) async throws -> [UInt8] {
        state.withLock { $0.counts.begun += 1 }
        try await eventually("released") { state.withLock { !$0.isHeld } }
        state.withLock { $0.counts.ended += 1 }
        return answer
    }
}
