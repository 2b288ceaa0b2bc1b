/// Percent-encoding as signatures of AWS want it: all but the unreserved characters of RFC 3986,
/// section 2.3, in upper-case hexadecimal.
enum PercentCoding {
    /// - Parameter keepsSlash: whether `/` stays as it is, as in a path.
    static func encoded(_ bytes: some Sequence<UInt8>, keepsSlash: Bool = false) -> String {
        // A string grows more slowly by characters than an array by bytes.
        var text: [UInt8] = []
        text.reserveCapacity(bytes.underestimatedCount)
        for byte in bytes {
            if isUnreserved(byte) || (keepsSlash && byte == UInt8(ascii: "/")) {
                text.append(byte)
            } else {
                text.append(UInt8(ascii: "%"))
                text.append(digit(byte >> 4))
                text.append(digit(byte & 0xF))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// The bytes that a text stands for; nil if a `%` is not followed by two digits. A `+` stands
    /// for itself, since no client of AWS writes a blank that way.
    static func decoded(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = text.utf8.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.next().flatMap(value(ofDigit:)),
                let low = rest.next().flatMap(value(ofDigit:))
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// The text that another one stands for; nil also if that is not UTF-8.
    static func decodedText(_ text: some StringProtocol) -> String? {
        decoded(text).flatMap { String(validating: $0, as: UTF8.self) }
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default:
            false
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }

    private static func value(ofDigit byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
