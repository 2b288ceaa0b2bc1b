/// Proves to whoever receives a post that it is of this hub, and of now.
///
/// The key is the endpoint's own, and signs nothing else. Receivers compute the HMAC-SHA-256 of
/// the header's timestamp, a full stop and the body as it came, compare in constant time, and
/// refuse timestamps that are minutes old.
enum WebhookSignature {
    /// Seconds since 1970-01-01 UTC, in decimal digits.
    static let timestampHeader = "X-Tidemark-Timestamp"
    /// `v1=` and the signature in lower-case hexadecimal.
    static let signatureHeader = "X-Tidemark-Signature"
    /// The same for each attempt at one delivery, so that receivers can drop repeats.
    static let deliveryHeader = "X-Tidemark-Delivery"

    static func text(of body: [UInt8], timestamp: UInt64, secret: [UInt8]) -> String {
        let signed = Array("\(timestamp).".utf8) + body
        return "v1=" + Digests.hexadecimal(Digests.hmac(signed, key: secret))
    }
}
