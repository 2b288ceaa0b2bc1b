/// The bytes that a JSON value stands for, where keys and values of records are concerned.
enum JSONContent {
    /// The text of a string that ``JSONScanner`` has checked; `range` includes its quotes.
    static func string(
        _ text: Span<UInt8>, _ range: Range<Int>
    ) throws(JSONProblem) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count)
        var position = range.lowerBound + 1
        while position < range.upperBound - 1 {
            let byte = text[position]
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                position += 1
                continue
            }
            let escape = text[position + 1]
            position += 2
            switch escape {
            case UInt8(ascii: "b"): bytes.append(0x08)
            case UInt8(ascii: "f"): bytes.append(0x0C)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "u"):
                bytes += String(try scalar(text, &position)).utf8
            default: bytes.append(escape)
            }
        }
        return bytes
    }

    /// A record's key: a string's text, a number as it is written, or `{"base64": "..."}`.
    static func key(_ text: Span<UInt8>, _ range: Range<Int>) throws(JSONProblem) -> [UInt8] {
        switch text[range.lowerBound] {
        case UInt8(ascii: "\""):
            return try string(text, range)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            return copy(text, range)
        default:
            if let bytes = try base64Object(text, range) { return bytes }
            throw JSONProblem(
                what: "the key must be a string or a number", position: range.lowerBound)
        }
    }

    /// A record's value: a string's text, the bytes of `{"base64": "..."}`, and any other JSON as
    /// it is written.
    static func value(_ text: Span<UInt8>, _ range: Range<Int>) throws(JSONProblem) -> [UInt8] {
        if text[range.lowerBound] == UInt8(ascii: "\"") { return try string(text, range) }
        return try base64Object(text, range) ?? copy(text, range)
    }

    static func copy(_ text: Span<UInt8>, _ range: Range<Int>) -> [UInt8] {
        // The span lives through the call, and the range is checked against it.
        unsafe text.extracting(range).withUnsafeBufferPointer { unsafe Array($0) }
    }

    /// The bytes of an object whose one member is named `base64`; nil for anything else.
    private static func base64Object(
        _ text: Span<UInt8>, _ range: Range<Int>
    ) throws(JSONProblem) -> [UInt8]? {
        guard text[range.lowerBound] == UInt8(ascii: "{") else { return nil }
        let object = text.extracting(range)
        var members: [(name: Range<Int>, value: Range<Int>)] = []
        var scanner = JSONScanner()
        try scanner.scanObject(object) { name, value throws(JSONProblem) in
            members.append((name, value))
        }
        guard members.count == 1,
            try string(object, members[0].name) == Array("base64".utf8),
            object[members[0].value.lowerBound] == UInt8(ascii: "\"")
        else { return nil }
        let digits = String(
            decoding: try string(object, members[0].value), as: UTF8.self)
        guard let bytes = Base64.decode(digits) else {
            throw JSONProblem(what: "not canonical base64", position: range.lowerBound)
        }
        return bytes
    }

    /// The scalar of an escape whose `\u` ends before the position; a pair of them above U+FFFF.
    private static func scalar(
        _ text: Span<UInt8>, _ position: inout Int
    ) throws(JSONProblem) -> Unicode.Scalar {
        let start = position
        let unit = codeUnit(text, &position)
        if let scalar = Unicode.Scalar(unit) { return scalar }
        if (0xD800...0xDBFF).contains(unit), text[position] == UInt8(ascii: "\\"),
            text[position + 1] == UInt8(ascii: "u")
        {
            position += 2
            let low = codeUnit(text, &position)
            if (0xDC00...0xDFFF).contains(low),
                let scalar = Unicode.Scalar(0x10000 + (unit & 0x3FF) << 10 + low & 0x3FF)
            {
                return scalar
            }
        }
        throw JSONProblem(what: "half a surrogate pair, which is no text", position: start)
    }

    private static func codeUnit(_ text: Span<UInt8>, _ position: inout Int) -> UInt32 {
        var unit: UInt32 = 0
        for index in position..<position + 4 {
            unit = unit << 4 | (hexadecimalValue(text[index]) ?? 0)
        }
        position += 4
        return unit
    }
}
