/// Verifies requests that are signed with Signature Version 4.
///
/// In three steps, so that strangers cost little: what the request claims is read from its head and
/// checked against the clock and the scope (``claim(of:now:)``); then the secret is looked up and
/// the body read; then the signature is verified (``verify(_:of:body:secret:)``).
///
/// What is signed covers method, path, query, host, time, all headers named `x-amz-…` and the body:
/// a request in which any of them was altered is refused. The same request can be sent again while
/// its time is not too old; operations of the hub are safe to repeat.
struct SigV4Verifier: Sendable {
    /// Of which region requests must be signed for; nil for any.
    let region: String?
    /// For which service.
    let service: String
    /// How far a request's time may be from ours, in seconds: both ways.
    let skewSecondsMax: Int64

    init(region: String?, service: String, skewSecondsMax: Int64 = 300) {
        self.region = region
        self.service = service
        self.skewSecondsMax = skewSecondsMax
    }

    /// What a request claims, if its scope and time fit and all is signed that must be.
    ///
    /// - Parameter now: seconds since 1970-01-01 UTC.
    /// - Throws: `missingAuthenticationToken`, `incompleteSignature`, and `invalidSignature` for a
    ///   wrong scope, a time out of bounds, or a body that is not signed.
    func claim(of request: SigV4Request, now: Int64) throws(APIFailure) -> SigV4Claim {
        let claim = try SigV4Claim(request)
        guard claim.service == service else {
            throw Self.invalid("the request is signed for another service than \(service)")
        }
        guard region == nil || claim.region == region else {
            throw Self.invalid("the request is signed for another region than this hub's")
        }
        guard claim.day == claim.time.day else {
            throw Self.invalid("the date of Credential is not that of X-Amz-Date")
        }
        try checkTime(of: claim, now: now)
        try checkSignedHeaders(of: claim, request)
        return claim
    }

    /// - Parameters:
    ///   - body: all of it; empty if there is none.
    ///   - secret: of the claim's access key.
    /// - Throws: `invalidSignature`.
    func verify(
        _ claim: SigV4Claim, of request: SigV4Request, body: [UInt8], secret: String
    ) throws(APIFailure) {
        let digest = Digests.hexadecimal(Digests.sha256(body))
        if let declared = request.onlyValue(of: "x-amz-content-sha256") {
            guard ConstantTime.areEqual(Array(declared.utf8), Array(digest.utf8)) else {
                throw Self.invalid("X-Amz-Content-Sha256 is not the digest of the body")
            }
        }
        let canonical = try SigV4Canonical.request(
            request, signedHeaders: claim.signedHeaders, bodyDigest: digest)
        let text = SigV4Canonical.textToSign(claim, canonicalRequest: canonical)
        let key = SigV4Canonical.signingKey(secret: secret, claim)
        let expected = Digests.hexadecimal(Digests.hmac(Array(text.utf8), key: key))
        guard ConstantTime.areEqual(Array(claim.signature.utf8), Array(expected.utf8)) else {
            throw Self.invalid(
                "the signature does not match; check the secret key and how the request is signed")
        }
    }

    private func checkTime(of claim: SigV4Claim, now: Int64) throws(APIFailure) {
        let age = now - claim.time.epochSeconds
        guard age >= -skewSecondsMax else {
            throw Self.invalid(
                "Signature not yet current: \(claim.time.text) is more than \(skewSecondsMax) s "
                    + "ahead; set the clock by the header Date")
        }
        guard age <= (claim.expiresSeconds ?? skewSecondsMax) else {
            throw Self.invalid(
                "Signature expired: \(claim.time.text) is \(age) s ago; sign the request anew, "
                    + "and set the clock by the header Date")
        }
    }

    private func checkSignedHeaders(
        of claim: SigV4Claim, _ request: SigV4Request
    ) throws(APIFailure) {
        let signed = Set(claim.signedHeaders)
        guard signed.contains("host") else {
            throw SigV4Claim.incomplete("SignedHeaders lacks host")
        }
        for header in request.headers where header.name.hasPrefix("x-amz-") {
            guard signed.contains(header.name) else {
                throw SigV4Claim.incomplete("SignedHeaders lacks \(header.name)")
            }
        }
        for name in claim.signedHeaders where request.values(of: name).isEmpty {
            throw SigV4Claim.incomplete("a signed header is missing from the request")
        }
        let digests = request.values(of: "x-amz-content-sha256")
        guard digests.count <= 1 else {
            throw SigV4Claim.incomplete("X-Amz-Content-Sha256 comes more than once")
        }
        // Of UNSIGNED-PAYLOAD and the STREAMING-… forms nothing would protect the body.
        guard digests.allSatisfy({ $0.utf8.count == 64 }) else {
            throw Self.invalid(
                "the body is not signed; send the hexadecimal SHA-256 of it as "
                    + "X-Amz-Content-Sha256, or no such header")
        }
    }

    private static func invalid(_ message: String) -> APIFailure {
        APIFailure(.invalidSignature, message)
    }
}
