/// A text that the hub gives out, and believes when it comes back: what it says, and a MAC of it.
///
/// Nothing of it need be kept, so it is good after a restart and at every hub with the same
/// secrets. It is not encrypted: whoever has it can read what it says.
///
/// Form: base64url of the version 1, the payload and 32 bytes of HMAC-SHA-256 over both. What it is
/// for is no part of it, but of the key: a token of one use is none of another.
struct SealedToken {
    static let charactersMax = 2_048
    private static let version: UInt8 = 1
    private static let macBytes = 32
    /// So that the token stays within ``charactersMax``.
    static let payloadBytesMax = charactersMax / 4 * 3 - macBytes - 1

    /// - Parameter payload: at most ``payloadBytesMax``, which all that the hub seals keeps to.
    static func seal(_ payload: [UInt8], _ use: SecretUse, _ secrets: HubSecrets) -> String {
        precondition(payload.count <= payloadBytesMax, "a token is sealed that none can open")
        let signed = [version] + payload
        return Base64.encodedForURL(signed + secrets.mac(signed, for: use))
    }

    /// The payload; nil if it was not sealed for that use with any of the secrets.
    static func open(_ text: String, _ use: SecretUse, _ secrets: HubSecrets) -> [UInt8]? {
        opened(text, use, secrets)?.payload
    }

    /// The same with the place of the secret that sealed it, for what else was derived from that.
    static func opened(
        _ text: String, _ use: SecretUse, _ secrets: HubSecrets
    ) -> (payload: [UInt8], signer: Int)? {
        guard text.utf8.count <= charactersMax, let bytes = Base64.decodedFromURL(text),
            bytes.count > macBytes, bytes[0] == version
        else { return nil }
        let signed = Array(bytes.dropLast(macBytes))
        guard let signer = secrets.signer(of: Array(bytes.suffix(macBytes)), signed, for: use)
        else { return nil }
        return (Array(signed.dropFirst()), signer)
    }
}
