import Tidemark

/// Signs requests with Signature Version 4, as clients of AWS do.
struct RequestSigner: Sendable {
    let accessKeyID: String
    let secret: HubSecret
    /// Of temporary credentials; nil for permanent ones.
    let token: HubSecret?
    let region: String

    /// The request with its time, its token and its signature. All headers that it has are signed:
    /// `host` must be among them.
    ///
    /// - Parameter milliseconds: since 1970-01-01 UTC.
    /// - Throws: `invalidParameter` for a query that is not percent-encoded UTF-8.
    func signed(
        _ request: SigV4Request, body: [UInt8], service: String, milliseconds: UInt64
    ) throws(APIFailure) -> SigV4Request {
        let time = Self.time(milliseconds)
        var request = request
        request.headers.append((name: "x-amz-date", value: time))
        if let token {
            request.headers.append((name: "x-amz-security-token", value: token.text))
        }
        let names = request.headers.map(\.name).sorted()
        let scope = "\(time.prefix(8))/\(region)/\(service)/aws4_request"
        let authorization = { (signature: String) in
            (
                name: "authorization",
                value: "\(SigV4Claim.algorithm) Credential=\(accessKeyID)/\(scope), "
                    + "SignedHeaders=\(names.joined(separator: ";")), Signature=\(signature)"
            )
        }
        // What the request is going to claim, but for the signature that follows from it.
        var draft = request
        draft.headers.append(authorization("0"))
        let claim = try SigV4Claim(draft)
        let canonical = try SigV4Canonical.request(
            request, signedHeaders: names, bodyDigest: Digests.hexadecimal(Digests.sha256(body)))
        let text = SigV4Canonical.textToSign(claim, canonicalRequest: canonical)
        let key = SigV4Canonical.signingKey(secret: secret.text, claim)
        request.headers.append(
            authorization(Digests.hexadecimal(Digests.hmac(Array(text.utf8), key: key))))
        return request
    }

    /// `20150830T123600Z`
    private static func time(_ milliseconds: UInt64) -> String {
        let text = HybridTime(milliseconds: milliseconds, counter: 0).description
        let digits = text.prefix(19).filter { $0 != "-" && $0 != ":" }
        return "\(digits)Z"
    }
}
