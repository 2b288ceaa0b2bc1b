/// Base64 in both alphabets of RFC 4648: the plain one of section 4, and that of section 5 for what
/// stands in paths and queries. There without padding.
enum Base64 {
    private static let plain = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let forURLs = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// In the plain alphabet, padded to fours.
    static func encoded(_ bytes: [UInt8]) -> String {
        let text = encoded(bytes, plain)
        return text + String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    }

    /// In the alphabet for URLs, without padding.
    static func encodedForURL(_ bytes: [UInt8]) -> String {
        encoded(bytes, forURLs)
    }

    /// The bytes that a text in the plain alphabet stands for, padded or not; nil if it stands for
    /// none, or could have been written shorter.
    static func decoded(_ text: some StringProtocol) -> [UInt8]? {
        var digits = Array(text.utf8)
        let padding = digits.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard padding == 0 || (padding <= 2 && digits.count % 4 == 0) else { return nil }
        digits.removeLast(padding)
        return decoded(digits, extra: (UInt8(ascii: "+"), UInt8(ascii: "/")))
    }

    /// The bytes that a text in the alphabet for URLs stands for; nil if it stands for none. Of
    /// each text of bytes there is one only, so that a token cannot be written another way.
    static func decodedFromURL(_ text: some StringProtocol) -> [UInt8]? {
        decoded(Array(text.utf8), extra: (UInt8(ascii: "-"), UInt8(ascii: "_")))
    }

    private static func encoded(_ bytes: [UInt8], _ alphabet: [UInt8]) -> String {
        var digits: [UInt8] = []
        digits.reserveCapacity((bytes.count * 4 + 2) / 3)
        var pending: UInt32 = 0
        var pendingBits: UInt32 = 0
        for byte in bytes {
            pending = pending << 8 | UInt32(byte)
            pendingBits += 8
            while pendingBits >= 6 {
                pendingBits -= 6
                digits.append(alphabet[Int(pending >> pendingBits & 0x3F)])
            }
            pending &= (1 << pendingBits) - 1
        }
        if pendingBits > 0 {
            digits.append(alphabet[Int(pending << (6 - pendingBits) & 0x3F)])
        }
        return String(decoding: digits, as: UTF8.self)
    }

    private static func decoded(_ digits: [UInt8], extra: (UInt8, UInt8)) -> [UInt8]? {
        guard digits.count % 4 != 1 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count * 3 / 4)
        var pending: UInt32 = 0
        var pendingBits: UInt32 = 0
        for digit in digits {
            guard let value = value(of: digit, extra) else { return nil }
            pending = pending << 6 | UInt32(value)
            pendingBits += 6
            if pendingBits >= 8 {
                pendingBits -= 8
                bytes.append(UInt8(truncatingIfNeeded: pending >> pendingBits))
            }
            pending &= (1 << pendingBits) - 1
        }
        // Bits behind the last byte say nothing and must be zero.
        return pending == 0 ? bytes : nil
    }

    private static func value(of digit: UInt8, _ extra: (UInt8, UInt8)) -> UInt8? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): digit - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0") + 52
        case extra.0: 62
        case extra.1: 63
        default: nil
        }
    }
}
