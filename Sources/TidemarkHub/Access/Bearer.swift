/// The value of `Authorization: Bearer`: RFC 6750, section 2.1.
enum Bearer {
    /// More than any token has.
    static let charactersMax = 16_384

    /// The token; nil if the header is missing, of another scheme, or has none.
    static func token(in header: String?) -> String? {
        let scheme = "bearer "
        guard let header, header.utf8.count <= charactersMax + scheme.utf8.count,
            header.prefix(scheme.count).lowercased() == scheme
        else { return nil }
        let token = header.dropFirst(scheme.count)
        guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            return nil
        }
        return String(token)
    }
}

/// One of the ways in which a bearer's token can be good.
protocol BearerMode: Sendable {
    /// - Throws: why it is not.
    func principal(of token: String) async throws(APIFailure) -> Principal
}

/// The hub's own token, of its settings.
struct AdminTokenMode: BearerMode {
    private let digest: [UInt8]

    init(_ token: [UInt8]) {
        digest = Digests.sha256(token)
    }

    /// Digests are compared, so that not even the length of the token shows in the time it takes.
    func principal(of token: String) async throws(APIFailure) -> Principal {
        guard ConstantTime.areEqual(Digests.sha256(Array(token.utf8)), digest) else {
            throw APIFailure(.notAuthorized, "the token is not the hub's; correct it")
        }
        return .admin
    }
}

/// Tokens of the settings, which do not change.
struct StaticBearerMode: BearerMode {
    private struct Entry: Sendable {
        let digest: [UInt8]
        let principal: Principal
    }

    private let entries: [Entry]

    /// - Parameter bearers: checked; what is of no form is passed over.
    init(_ bearers: [HubSettings.StaticBearer]) {
        entries = bearers.compactMap { bearer in
            Self.principal(of: bearer.reach).map {
                Entry(digest: Digests.sha256(bearer.token.bytes), principal: $0)
            }
        }
    }

    private static func principal(of reach: HubSettings.StaticBearer.Reach) -> Principal? {
        switch reach {
        case .space(let space):
            return .replica(space: space)
        case .identity(let identity, let pool):
            guard let identity = IdentityID(identity), let pool = PoolID(pool) else { return nil }
            return .identity(identity, pool: pool, isAuthenticated: true)
        }
    }

    /// All of them are compared, so that the time it takes does not say which one it is.
    func principal(of token: String) async throws(APIFailure) -> Principal {
        let digest = Digests.sha256(Array(token.utf8))
        var found: Principal?
        for entry in entries where ConstantTime.areEqual(entry.digest, digest) {
            found = entry.principal
        }
        guard let found else {
            throw APIFailure(.notAuthorized, "the token is none of the settings'; correct it")
        }
        return found
    }
}

/// A token that the hub gave to an identity: what GetOpenIdToken and
/// GetOpenIdTokenForDeveloperIdentity answer.
struct IdentityTokenMode: BearerMode {
    let tokens: IdentityTokens

    func principal(of token: String) async throws(APIFailure) -> Principal {
        let claim = try tokens.verified(token)
        return .identity(
            claim.identity, pool: claim.pool, isAuthenticated: claim.isAuthenticated)
    }
}
