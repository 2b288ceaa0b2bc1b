import FoundationEssentials
import JWTKit

/// A key that verifies signatures of one algorithm. What a token says of its algorithm cannot make
/// it verify by another.
struct TokenKey: Sendable {
    /// `kid`; nil if it has none.
    let id: String?
    let algorithm: IssuerSettings.Algorithm
    /// With this key alone.
    private let keys: JWTKeyCollection

    private init(
        id: String?, algorithm: IssuerSettings.Algorithm, keys: JWTKeyCollection
    ) {
        self.id = id
        self.algorithm = algorithm
        self.keys = keys
    }

    static func shared(_ secret: [UInt8], id: String? = nil) async -> TokenKey {
        let keys = JWTKeyCollection()
        await keys.add(hmac: HMACKey(from: secret), digestAlgorithm: .sha256)
        return TokenKey(id: id, algorithm: .hs256, keys: keys)
    }

    /// nil for a key of another kind, or one that is none.
    static func publicKey(_ key: JWK) async -> TokenKey? {
        let algorithm: IssuerSettings.Algorithm
        let own: JWK.Algorithm
        if key.keyType == .rsa {
            algorithm = .rs256
            own = .rs256
        } else if key.keyType == .ecdsa {
            algorithm = .es256
            own = .es256
        } else {
            return nil
        }
        guard key.algorithm == nil || key.algorithm == own else { return nil }
        var key = key
        key.algorithm = own
        let id = key.keyIdentifier?.string
        // A collection takes none without.
        if id == nil { key.keyIdentifier = JWKIdentifier(string: "") }
        let keys = JWTKeyCollection()
        guard (try? await keys.add(jwk: key)) != nil else { return nil }
        return TokenKey(id: id, algorithm: algorithm, keys: keys)
    }

    /// What a token says, if this key has signed it; nil if it has not, or says it in another form.
    func claims(of token: String) async -> LoginClaims? {
        try? await keys.verify(token, as: LoginClaims.self)
    }
}

/// A JSON Web Key Set: RFC 7517, section 5. Keys of kinds that are not known, or not for
/// signatures, are passed over, as it says.
struct KeySet: Decodable {
    /// Of a set; more are of no use to anybody.
    static let keysMax = 100

    private let keys: [Entry]

    private struct Entry: Decodable {
        let key: JWK?
        /// Of a shared key; kinds `oct`.
        let secret: [UInt8]?
        let id: String?
        let isForSignatures: Bool

        private enum CodingKeys: String, CodingKey {
            case kty, kid, use, k, alg
        }

        init(from decoder: any Decoder) throws {
            key = try? JWK(from: decoder)
            let fields = try? decoder.container(keyedBy: CodingKeys.self)
            func text(_ name: CodingKeys) -> String? {
                guard let fields else { return nil }
                return try? fields.decodeIfPresent(String.self, forKey: name)
            }
            let isShared = text(.kty) == "oct" && (text(.alg) ?? "HS256") == "HS256"
            secret = isShared ? text(.k).flatMap { Base64.decodedFromURL($0) } : nil
            id = text(.kid)
            isForSignatures = text(.use) == nil || text(.use) == "sig"
        }
    }

    /// - Throws: `KeySourceError` for what is no key set.
    static func tokenKeys(
        in bytes: [UInt8], allowed: Set<IssuerSettings.Algorithm>
    ) async throws -> [TokenKey] {
        guard let set = try? JSONDecoder().decode(KeySet.self, from: Data(bytes)) else {
            throw KeySourceError(description: "it is not a JSON Web Key Set")
        }
        var found: [TokenKey] = []
        for entry in set.keys.prefix(keysMax) where entry.isForSignatures {
            var key: TokenKey?
            if let secret = entry.secret, secret.count >= HubSecrets.secretBytesMin {
                key = await TokenKey.shared(secret, id: entry.id)
            } else if let jwk = entry.key {
                key = await TokenKey.publicKey(jwk)
            }
            if let key, allowed.contains(key.algorithm) { found.append(key) }
        }
        return found
    }
}
