/// What is wrong with a JSON text, and where.
struct JSONProblem: Error {
    let what: String
    /// In bytes from the start of the line.
    let position: Int
}

/// Walks over one JSON text (RFC 8259) without building anything: it checks every byte and tells
/// where the members of the outermost object lie.
///
/// An import keeps each line as it was written and needs one field of it, so decoding the whole
/// line and encoding it again would be most of the work, and would not give the same bytes back.
struct JSONScanner {
    /// Containers within containers; deeper texts are refused so that none can exhaust the stack.
    static let depthMax = 256

    private(set) var position = 0

    /// Calls `member` with the name (quotes included) and the value of each member of the object
    /// that is the whole text.
    mutating func scanObject(
        _ text: Span<UInt8>, member: (Range<Int>, Range<Int>) throws(JSONProblem) -> Void
    ) throws(JSONProblem) {
        skipSpace(text)
        try expect(UInt8(ascii: "{"), "an object", text)
        try scanMembers(text, depth: 1, member)
        skipSpace(text)
        guard position == text.count else { throw problem("something after the object") }
    }

    private mutating func scanMembers(
        _ text: Span<UInt8>, depth: Int,
        _ member: (Range<Int>, Range<Int>) throws(JSONProblem) -> Void
    ) throws(JSONProblem) {
        skipSpace(text)
        if peek(text) == UInt8(ascii: "}") {
            position += 1
            return
        }
        while true {
            skipSpace(text)
            let name = position
            guard peek(text) == UInt8(ascii: "\"") else {
                throw problem("a member's name is expected")
            }
            try scanString(text)
            let nameEnd = position
            skipSpace(text)
            try expect(UInt8(ascii: ":"), "a colon", text)
            skipSpace(text)
            let value = position
            try scanValue(text, depth: depth)
            try member(name..<nameEnd, value..<position)
            skipSpace(text)
            if peek(text) == UInt8(ascii: ",") {
                position += 1
            } else {
                return try expect(UInt8(ascii: "}"), "a comma or a closing brace", text)
            }
        }
    }

    private mutating func scanValue(_ text: Span<UInt8>, depth: Int) throws(JSONProblem) {
        switch peek(text) {
        case UInt8(ascii: "\""): try scanString(text)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try scanNumber(text)
        case UInt8(ascii: "t"): try scanWord("true", text)
        case UInt8(ascii: "f"): try scanWord("false", text)
        case UInt8(ascii: "n"): try scanWord("null", text)
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            guard depth < Self.depthMax else {
                throw problem("nested more than \(Self.depthMax) deep")
            }
            if peek(text) == UInt8(ascii: "[") {
                try scanArray(text, depth: depth + 1)
            } else {
                position += 1
                try scanMembers(text, depth: depth + 1) { _, _ throws(JSONProblem) in }
            }
        default: throw problem("a value is expected")
        }
    }

    private mutating func scanArray(_ text: Span<UInt8>, depth: Int) throws(JSONProblem) {
        position += 1
        skipSpace(text)
        if peek(text) == UInt8(ascii: "]") {
            position += 1
            return
        }
        while true {
            skipSpace(text)
            try scanValue(text, depth: depth)
            skipSpace(text)
            if peek(text) == UInt8(ascii: ",") {
                position += 1
            } else {
                return try expect(UInt8(ascii: "]"), "a comma or a closing bracket", text)
            }
        }
    }

    private mutating func scanString(_ text: Span<UInt8>) throws(JSONProblem) {
        position += 1
        while position < text.count {
            let byte = text[position]
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return
            case UInt8(ascii: "\\"):
                try scanEscape(text)
            case 0..<0x20:
                throw problem("a control character in a string must be escaped")
            case 0x20..<0x80:
                position += 1
            default:
                let length = utf8SequenceLength(in: text, at: position)
                guard length > 0 else { throw problem("a string is not UTF-8") }
                position += length
            }
        }
        throw problem("a string has no end")
    }

    private mutating func scanEscape(_ text: Span<UInt8>) throws(JSONProblem) {
        position += 1
        switch peek(text) {
        case UInt8(ascii: "u"):
            for digit in position + 1...position + 4 {
                guard digit < text.count, hexadecimalValue(text[digit]) != nil else {
                    throw problem("\\u needs four hexadecimal digits")
                }
            }
            position += 5
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
            UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            position += 1
        default:
            throw problem("an unknown escape")
        }
    }

    private mutating func scanNumber(_ text: Span<UInt8>) throws(JSONProblem) {
        if peek(text) == UInt8(ascii: "-") {
            position += 1
        }
        if peek(text) == UInt8(ascii: "0") {
            position += 1
        } else {
            try scanDigits(text)
        }
        if peek(text) == UInt8(ascii: ".") {
            position += 1
            try scanDigits(text)
        }
        if peek(text) == UInt8(ascii: "e") || peek(text) == UInt8(ascii: "E") {
            position += 1
            if peek(text) == UInt8(ascii: "+") || peek(text) == UInt8(ascii: "-") {
                position += 1
            }
            try scanDigits(text)
        }
    }

    private mutating func scanDigits(_ text: Span<UInt8>) throws(JSONProblem) {
        let start = position
        while position < text.count, (0x30...0x39).contains(text[position]) {
            position += 1
        }
        guard position > start else { throw problem("a digit is expected") }
    }

    private mutating func scanWord(
        _ word: StaticString, _ text: Span<UInt8>
    ) throws(JSONProblem) {
        for byte in "\(word)".utf8 {
            guard peek(text) == byte else { throw problem("\(word) is expected") }
            position += 1
        }
    }

    private mutating func skipSpace(_ text: Span<UInt8>) {
        while position < text.count {
            switch text[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            default: return
            }
        }
    }

    private mutating func expect(
        _ byte: UInt8, _ name: StaticString, _ text: Span<UInt8>
    ) throws(JSONProblem) {
        guard peek(text) == byte else { throw problem("\(name) is expected") }
        position += 1
    }

    /// The byte at the position; 0, which no token begins with, at the end.
    private func peek(_ text: Span<UInt8>) -> UInt8 {
        position < text.count ? text[position] : 0
    }

    private func problem(_ what: String) -> JSONProblem {
        JSONProblem(what: what, position: position)
    }
}

func hexadecimalValue(_ digit: UInt8) -> UInt32? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt32(digit - UInt8(ascii: "a")) + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt32(digit - UInt8(ascii: "A")) + 10
    default: nil
    }
}
