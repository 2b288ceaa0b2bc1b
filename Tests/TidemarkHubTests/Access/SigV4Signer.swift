@testable import TidemarkHub

/// Signs requests as a client does, for tests that need more of them than were published.
struct SigV4Signer {
    var accessKeyID = "AKIDEXAMPLE"
    var secret = "secret of a test"
    var region = "us-east-1"
    var service = "cognito-sync"
    var time = "20260301T120000Z"
    /// Names of headers that are left out of the signature.
    var unsigned: Set<String> = []

    /// With `host` and all other headers that the request has, and its time.
    func signed(_ request: SigV4Request, body: [UInt8]) throws -> SigV4Request {
        var request = request
        request.headers.append((name: "x-amz-date", value: time))
        let names = Set(request.headers.map(\.name)).subtracting(unsigned).sorted()
        let digest = Digests.hexadecimal(Digests.sha256(body))
        let canonical = try SigV4Canonical.request(
            request, signedHeaders: names, bodyDigest: digest)
        var draft = request
        draft.headers.append((name: "authorization", value: authorization(names, "00")))
        let claim = try SigV4Claim(draft)
        let text = SigV4Canonical.textToSign(claim, canonicalRequest: canonical)
        let key = SigV4Canonical.signingKey(secret: secret, claim)
        let signature = Digests.hexadecimal(Digests.hmac(Array(text.utf8), key: key))
        request.headers.append((name: "authorization", value: authorization(names, signature)))
        return request
    }

    /// The same in the query, good for so many seconds.
    func presigned(_ request: SigV4Request, expiresSeconds: Int64) throws -> SigV4Request {
        var request = request
        let names = Set(request.headers.map(\.name)).subtracting(unsigned).sorted()
        let parameters = [
            ("X-Amz-Algorithm", SigV4Claim.algorithm), ("X-Amz-Credential", credential),
            ("X-Amz-Date", time), ("X-Amz-Expires", String(expiresSeconds)),
            ("X-Amz-SignedHeaders", names.joined(separator: ";")),
        ]
        for (name, value) in parameters {
            if !request.query.isEmpty { request.query += "&" }
            request.query += name + "=" + PercentCoding.encoded(value.utf8)
        }
        let canonical = try SigV4Canonical.request(
            request, signedHeaders: names, bodyDigest: Digests.hexadecimal(Digests.sha256([])))
        var draft = request
        draft.query += "&X-Amz-Signature=00"
        let claim = try SigV4Claim(draft)
        let text = SigV4Canonical.textToSign(claim, canonicalRequest: canonical)
        let key = SigV4Canonical.signingKey(secret: secret, claim)
        let signature = Digests.hexadecimal(Digests.hmac(Array(text.utf8), key: key))
        request.query += "&X-Amz-Signature=\(signature)"
        return request
    }

    private var credential: String {
        "\(accessKeyID)/\(time.prefix(8))/\(region)/\(service)/aws4_request"
    }

    private func authorization(_ names: [String], _ signature: String) -> String {
        "AWS4-HMAC-SHA256 Credential=\(credential), "
            + "SignedHeaders=\(names.joined(separator: ";")), Signature=\(signature)"
    }
}
