import TidemarkSync

/// Tokens that stand for an identity, where Amazon Cognito has tokens of OpenID Connect: a service
/// asks for one on behalf of its user, and the user's device shows it to get credentials, or as a
/// bearer token. They are opaque, and good at this hub alone.
struct IdentityTokens: Sendable {
    private let secrets: HubSecrets
    private let clock: any SyncEnvironment

    /// What clients call the hub itself in `Logins`.
    static let provider = "cognito-identity.amazonaws.com"
    /// If a service does not say.
    static let defaultSeconds: Int64 = 900
    static let secondsMax: Int64 = 86_400

    init(secrets: HubSecrets, clock: any SyncEnvironment) {
        self.secrets = secrets
        self.clock = clock
    }

    /// - Parameter seconds: 1...86,400.
    func issue(
        for identity: IdentityID, in pool: PoolID, isAuthenticated: Bool,
        seconds: Int64 = defaultSeconds
    ) -> String {
        let claim = SessionClaim(
            accessKeyID: AccessKeyName.drawn(), identity: identity, pool: pool,
            isAuthenticated: isAuthenticated,
            expiresSeconds: now + min(max(seconds, 1), Self.secondsMax))
        return SealedToken.seal(claim.encoded, .credential, secrets)
    }

    /// - Throws: `notAuthorized`.
    func verified(_ token: String) throws(APIFailure) -> SessionClaim {
        guard let payload = SealedToken.open(token, .credential, secrets),
            let claim = SessionClaim(payload)
        else {
            throw APIFailure(.notAuthorized, "Invalid login token; get another one")
        }
        guard now < claim.expiresSeconds else {
            throw APIFailure(.notAuthorized, "Invalid login token; it has expired: get another one")
        }
        return claim
    }

    private var now: Int64 { Int64(clamping: clock.now() / 1_000) }
}
