/// A request whose signature is to be verified as soon as its body is there. What it claims is not
/// proved before ``finish(body:)`` has returned.
struct PendingCall: Sendable {
    /// Who it says it is.
    let principal: Principal
    /// When its credentials end, in seconds since 1970-01-01 UTC; nil for never. What outlives the
    /// request, such as a stream of events, ends then.
    let expiresSeconds: Int64?
    private let request: SigV4Request
    private let claim: SigV4Claim
    private let secret: String
    private let verifier: SigV4Verifier

    init(
        _ request: SigV4Request, _ claim: SigV4Claim, _ key: CallerKey, _ verifier: SigV4Verifier
    ) {
        principal = key.principal
        expiresSeconds = key.expiresSeconds
        secret = key.secret
        self.request = request
        self.claim = claim
        self.verifier = verifier
    }

    /// - Parameter body: all of it; empty if there is none.
    /// - Throws: `invalidSignature`.
    func finish(body: [UInt8]) throws(APIFailure) {
        try verifier.verify(claim, of: request, body: body, secret: secret)
    }
}
