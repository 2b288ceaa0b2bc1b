import TidemarkSync

/// For which of the APIs a request is signed.
enum SignedService: String, Sendable {
    case sync = "cognito-sync"
    case identity = "cognito-identity"
}

/// Finds out who makes a request.
///
/// For signed requests in two steps, so that the body of a stranger is never read:
/// ``begin(_:for:)`` looks at the head, and what it returns verifies the signature over head and
/// body.
struct Authenticator: Sendable {
    private let issuer: CredentialIssuer
    private let keys: StaticKeys
    private let region: String?
    private let bearers: [any BearerMode]
    private let clock: any SyncEnvironment

    /// - Parameters:
    ///   - region: that requests must be signed for; nil for any.
    ///   - bearers: ways in which a bearer's token can be good, tried in this order.
    init(
        issuer: CredentialIssuer, keys: StaticKeys, region: String?, bearers: [any BearerMode],
        clock: any SyncEnvironment
    ) {
        self.issuer = issuer
        self.keys = keys
        self.region = region
        self.bearers = bearers
        self.clock = clock
    }

    /// What a signed request claims, by its header or its query. With a session token it must be
    /// that of temporary credentials of the hub; else the access key must be one of the settings.
    ///
    /// - Throws: `missingAuthenticationToken`, `incompleteSignature`, `invalidSignature`,
    ///   `unrecognizedClient`, `expiredToken`.
    func begin(
        _ request: SigV4Request, for service: SignedService = .sync
    ) throws(APIFailure) -> PendingCall {
        let verifier = SigV4Verifier(region: region, service: service.rawValue)
        let claim = try verifier.claim(of: request, now: Int64(clamping: clock.now() / 1_000))
        let key =
            try claim.securityToken == nil ? keys.key(of: claim) : issuer.key(of: claim)
        return PendingCall(request, claim, key, verifier)
    }

    /// Who a bearer is: for replicas, for receivers of events, and for who runs the hub.
    ///
    /// - Parameter authorization: the header of that name; nil if there is none.
    /// - Throws: `missingAuthenticationToken` without a token, `notAuthorized` if nobody takes it:
    ///   as the last of the ways says. What keeps it from being looked at as it is:
    ///   `tooManyRequests`, `serviceUnavailable`, `internalError`.
    func bearer(_ authorization: String?) async throws(APIFailure) -> Principal {
        guard let token = Bearer.token(in: authorization) else {
            throw APIFailure(
                .missingAuthenticationToken,
                "the token is missing; send one as Authorization: Bearer")
        }
        var refusal = APIFailure(.notAuthorized, "this hub takes no such tokens")
        for mode in bearers {
            do throws(APIFailure) {
                return try await mode.principal(of: token)
            } catch {
                guard error.kind == .notAuthorized else { throw error }
                refusal = error
            }
        }
        throw refusal
    }
}
