import TidemarkSync

/// Gives out temporary credentials, and knows its own when they come back.
///
/// Nothing of them is kept. The session token says whose they are and until when, sealed; the
/// secret key is the MAC of the session token under a key of its own. So they are good after a
/// restart and at every hub with the same secrets, and end by their time alone: an identity that
/// was merged or deleted is refused by ``IdentityGate``, whatever it signs with.
struct CredentialIssuer: Sendable {
    private let secrets: HubSecrets
    private let clock: any SyncEnvironment
    private let cache = CallerKeyCache()
    let lifetimeSeconds: Int64

    private static let secretKeyCharacters = 40

    /// - Parameter lifetimeSeconds: 900...43,200; what is outside is taken for the nearest of them.
    init(secrets: HubSecrets, clock: any SyncEnvironment, lifetimeSeconds: Int64) {
        self.secrets = secrets
        self.clock = clock
        self.lifetimeSeconds = min(max(lifetimeSeconds, 900), 43_200)
    }

    func issue(
        for identity: IdentityID, in pool: PoolID, isAuthenticated: Bool
    ) -> TemporaryCredentials {
        let claim = SessionClaim(
            accessKeyID: AccessKeyName.drawn(), identity: identity, pool: pool,
            isAuthenticated: isAuthenticated, expiresSeconds: now + lifetimeSeconds)
        let token = SealedToken.seal(claim.encoded, .sessionToken, secrets)
        return TemporaryCredentials(
            accessKeyID: claim.accessKeyID, secretKey: secretKey(of: token, signer: 0),
            sessionToken: token, expiresSeconds: claim.expiresSeconds)
    }

    /// - Throws: `expiredToken`; `unrecognizedClient` if the token is not the hub's, or another
    ///   access key's.
    func key(of claim: SigV4Claim) throws(APIFailure) -> CallerKey {
        guard let token = claim.securityToken, let entry = opened(token),
            entry.accessKeyID == claim.accessKeyID
        else {
            throw APIFailure(
                .unrecognizedClient,
                "The security token included in the request is invalid; ask for new credentials")
        }
        guard now < entry.key.expiresSeconds ?? 0 else {
            throw APIFailure(
                .expiredToken,
                "The security token included in the request is expired; ask for new credentials")
        }
        return entry.key
    }

    /// What a session token is of; nil if it is not one of the hub's.
    private func opened(_ token: String) -> CallerKeyCache.Entry? {
        if let known = cache.entry(of: token) { return known }
        guard let opened = SealedToken.opened(token, .sessionToken, secrets),
            let session = SessionClaim(opened.payload)
        else { return nil }
        let key = CallerKey(
            principal: .identity(
                session.identity, pool: session.pool, isAuthenticated: session.isAuthenticated),
            secret: secretKey(of: token, signer: opened.signer),
            expiresSeconds: session.expiresSeconds)
        let entry = CallerKeyCache.Entry(accessKeyID: session.accessKeyID, key: key)
        cache.keep(entry, of: token)
        return entry
    }

    private func secretKey(of token: String, signer: Int) -> String {
        let mac = secrets.mac(Array(token.utf8), for: .secretKey, signer: signer)
        return String(Base64.encoded(mac).prefix(Self.secretKeyCharacters))
    }

    private var now: Int64 { Int64(clamping: clock.now() / 1_000) }
}
