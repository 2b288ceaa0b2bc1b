/// The text that a signature is of: see "Create a signed AWS API request" in the IAM user guide.
enum SigV4Canonical {
    /// Method, path, query, signed headers and the digest of the body, one below the other.
    ///
    /// The path is encoded a second time, as all services but one have it. It is not normalised:
    /// no route has empty segments, `.` or `..`.
    ///
    /// - Throws: `invalidParameter` for a query that is not percent-encoded UTF-8.
    static func request(
        _ request: SigV4Request, signedHeaders: [String], bodyDigest: String
    ) throws(APIFailure) -> String {
        var text = request.method + "\n"
        text += PercentCoding.encoded(request.path.utf8, keepsSlash: true) + "\n"
        text += try query(request) + "\n"
        for name in signedHeaders {
            let values = request.values(of: name).map(trimmed)
            text += name + ":" + values.joined(separator: ",") + "\n"
        }
        text += "\n" + signedHeaders.joined(separator: ";") + "\n" + bodyDigest
        return text
    }

    /// What the signing key is used on.
    static func textToSign(_ claim: SigV4Claim, canonicalRequest: String) -> String {
        let digest = Digests.hexadecimal(Digests.sha256(Array(canonicalRequest.utf8)))
        let scope = "\(claim.day)/\(claim.region)/\(claim.service)/aws4_request"
        return "\(SigV4Claim.algorithm)\n\(claim.time.text)\n\(scope)\n\(digest)"
    }

    /// The key of a day, region and service. It cannot be led back to the secret.
    static func signingKey(secret: String, _ claim: SigV4Claim) -> [UInt8] {
        var key = Array("AWS4\(secret)".utf8)
        for part in [claim.day, claim.region, claim.service, "aws4_request"] {
            key = Digests.hmac(Array(part.utf8), key: key)
        }
        return key
    }

    /// Encoded anew, since clients differ in what they leave as it is; sorted by name, then value.
    private static func query(_ request: SigV4Request) throws(APIFailure) -> String {
        var pairs: [(name: String, value: String)] = []
        for parameter in try request.parameters() where parameter.name != "X-Amz-Signature" {
            pairs.append(
                (
                    name: PercentCoding.encoded(parameter.name.utf8),
                    value: PercentCoding.encoded(parameter.value.utf8)
                ))
        }
        pairs.sort { one, other in
            one.name == other.name
                ? one.value.utf8.lexicographicallyPrecedes(other.value.utf8)
                : one.name.utf8.lexicographicallyPrecedes(other.name.utf8)
        }
        return pairs.map { $0.name + "=" + $0.value }.joined(separator: "&")
    }

    /// Without blanks at both ends, and with one where there are several.
    private static func trimmed(_ value: String) -> String {
        value.split { $0 == " " || $0 == "\t" }.joined(separator: " ")
    }
}
