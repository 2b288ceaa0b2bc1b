/// The length of the well-formed UTF-8 sequence at `position`, or 0 if there is none.
///
/// After table 3-7 of the Unicode Standard: overlong forms, surrogates and everything above
/// U+10FFFF are not well-formed. O(1).
func utf8SequenceLength(in bytes: Span<UInt8>, at position: Int) -> Int {
    let first = bytes[position]
    if first < 0x80 { return 1 }

    let length: Int
    var secondAllowed: ClosedRange<UInt8> = 0x80...0xBF
    switch first {
    case 0xC2...0xDF: length = 2
    case 0xE0: (length, secondAllowed) = (3, 0xA0...0xBF)
    case 0xED: (length, secondAllowed) = (3, 0x80...0x9F)
    case 0xE1...0xEF: length = 3
    case 0xF0: (length, secondAllowed) = (4, 0x90...0xBF)
    case 0xF4: (length, secondAllowed) = (4, 0x80...0x8F)
    case 0xF1...0xF3: length = 4
    default: return 0
    }

    guard position + length <= bytes.count, secondAllowed.contains(bytes[position + 1]) else {
        return 0
    }
    for index in position + 2..<max(position + 2, position + length)
    where bytes[index] & 0xC0 != 0x80 {
        return 0
    }
    return length
}

/// The scalar that a well-formed sequence stands for, as ``utf8SequenceLength(in:at:)`` found it.
func utf8Scalar(in bytes: Span<UInt8>, at position: Int, length: Int) -> Unicode.Scalar {
    var value: UInt32
    switch length {
    case 1: return Unicode.Scalar(bytes[position])
    case 2: value = UInt32(bytes[position] & 0x1F)
    case 3: value = UInt32(bytes[position] & 0x0F)
    default: value = UInt32(bytes[position] & 0x07)
    }
    for index in position + 1..<position + length {
        value = value << 6 | UInt32(bytes[index] & 0x3F)
    }
    return Unicode.Scalar(value) ?? "\u{FFFD}"
}

/// Whether the bytes are well-formed UTF-8. O(n).
func isUTF8(_ bytes: Span<UInt8>) -> Bool {
    var position = 0
    while position < bytes.count {
        let length = utf8SequenceLength(in: bytes, at: position)
        guard length > 0 else { return false }
        position += length
    }
    return true
}
