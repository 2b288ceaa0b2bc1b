import FoundationEssentials
import JWTKit

/// The head of a token (RFC 7519), read before anything is verified: it says which key to take.
struct TokenHead: Sendable {
    /// `alg`.
    let algorithm: IssuerSettings.Algorithm
    /// `kid`; nil if the token does not say.
    let keyID: String?

    /// The model of the Cognito API allows 50,000; no issuer comes near this.
    static let charactersMax = 16_384

    /// - Throws: `notAuthorized` for what is no token, or has an algorithm that is never allowed.
    init(_ token: String) throws(APIFailure) {
        guard token.utf8.count <= Self.charactersMax else {
            throw TokenVerifier.invalid("it is too long")
        }
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let json = Base64.decodedFromURL(parts[0]),
            let fields = try? JSONDecoder().decode(Fields.self, from: Data(json))
        else {
            throw TokenVerifier.invalid("it is not a signed JSON Web Token")
        }
        guard fields.crit == nil else {
            throw TokenVerifier.invalid("its head has extensions that must be understood")
        }
        guard let algorithm = IssuerSettings.Algorithm(rawValue: fields.alg) else {
            throw TokenVerifier.invalid("its algorithm is none of HS256, RS256 and ES256")
        }
        self.algorithm = algorithm
        keyID = fields.kid
    }

    private struct Fields: Decodable {
        let alg: String
        let kid: String?
        let crit: [String]?
    }
}

/// What a token says, as far as it matters here. Dates are in seconds since 1970-01-01 UTC.
struct LoginClaims: JWTPayload {
    let issuer: String?
    let subject: String?
    let audiences: [String]
    let expires: Double?
    let notBefore: Double?

    private enum CodingKeys: String, CodingKey {
        case issuer = "iss"
        case subject = "sub"
        case audiences = "aud"
        case clientID = "client_id"
        case expires = "exp"
        case notBefore = "nbf"
    }

    init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        issuer = try fields.decodeIfPresent(String.self, forKey: .issuer)
        subject = try fields.decodeIfPresent(String.self, forKey: .subject)
        expires = try fields.decodeIfPresent(Double.self, forKey: .expires)
        notBefore = try fields.decodeIfPresent(Double.self, forKey: .notBefore)
        // One or several: RFC 7519, section 4.1.3. Access tokens of some issuers have neither, but
        // the client that they are for.
        if let one = try? fields.decodeIfPresent(String.self, forKey: .audiences) {
            audiences = [one]
        } else if let several = try fields.decodeIfPresent([String].self, forKey: .audiences) {
            audiences = several
        } else {
            let client = try fields.decodeIfPresent(String.self, forKey: .clientID)
            audiences = client.map { [$0] } ?? []
        }
    }

    func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encodeIfPresent(issuer, forKey: .issuer)
        try fields.encodeIfPresent(subject, forKey: .subject)
        try fields.encode(audiences, forKey: .audiences)
        try fields.encodeIfPresent(expires, forKey: .expires)
        try fields.encodeIfPresent(notBefore, forKey: .notBefore)
    }

    /// Nothing: `TokenVerifier` compares with the issuer's settings and the hub's clock.
    func verify(using algorithm: some JWTAlgorithm) async throws {}
}
