import Crypto

/// SHA-256 and HMAC-SHA-256 over arrays of bytes.
enum Digests {
    static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        Array(SHA256.hash(data: bytes))
    }

    /// Of all parts, one behind the other. That no two lists of them are the same bytes is for the
    /// caller to see to.
    static func sha256(ofParts parts: [[UInt8]]) -> [UInt8] {
        var digest = SHA256()
        for part in parts { digest.update(data: part) }
        return Array(digest.finalize())
    }

    static func hmac(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: bytes, using: SymmetricKey(data: key)))
    }

    /// Lower-case hexadecimal, as signatures of AWS have it.
    static func hexadecimal(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 0xF)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static let digits = Array("0123456789abcdef".utf8)
}
