/// Why bytes are not taken for JSON.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, in words.
    public let problem: String
    /// The first byte that does not fit, counted from 0.
    public let offset: Int

    public var description: String { "\(problem) at byte \(offset)" }
}

/// The bounds of JSON that is merged, each with its reason.
public enum JSONLimits {
    /// Arrays and objects within each other. Reading and merging recurse as deep as that, on
    /// stacks of half a megabyte; documents of people have a tenth of it.
    public static let depthMax = 64
    /// Bytes of a document: as values it takes up to twelve times as much memory, and a merge
    /// holds three of them and the outcome.
    public static let bytesMax = 4 << 20
}

extension JSONValue {
    /// Reads one JSON value, with blanks around it and nothing else. O(bytes).
    ///
    /// - Throws: ``JSONError`` for all that RFC 8259 does not allow, for a name that an object has
    ///   twice, for half of a surrogate pair, and beyond the ``JSONLimits``.
    public init(parsing bytes: [UInt8]) throws(JSONError) {
        guard bytes.count <= JSONLimits.bytesMax else {
            throw JSONError(
                problem: "\(bytes.count) bytes exceed \(JSONLimits.bytesMax)",
                offset: JSONLimits.bytesMax)
        }
        var parser = JSONParser(bytes)
        self = try parser.takeValue(depth: 0)
        parser.skipBlanks()
        guard parser.isAtEnd else { throw parser.failure("something follows the value") }
    }
}

/// Reads JSON byte by byte. Recurses to ``JSONLimits/depthMax``.
struct JSONParser {
    private let bytes: [UInt8]
    private var offset = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    var isAtEnd: Bool { offset == bytes.count }

    private var next: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    func failure(_ problem: String) -> JSONError {
        JSONError(problem: problem, offset: offset)
    }

    mutating func skipBlanks() {
        while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) {
            offset += 1
        }
    }

    mutating func takeValue(depth: Int) throws(JSONError) -> JSONValue {
        skipBlanks()
        switch next {
        case UInt8(ascii: "{"): return .object(try takeObject(depth: depth + 1))
        case UInt8(ascii: "["): return .array(try takeArray(depth: depth + 1))
        case UInt8(ascii: "\""): return .string(try takeString())
        case UInt8(ascii: "t"): return try take("true", as: .bool(true))
        case UInt8(ascii: "f"): return try take("false", as: .bool(false))
        case UInt8(ascii: "n"): return try take("null", as: .null)
        default: return .number(try takeNumber())
        }
    }

    private mutating func take(
        _ word: StaticString, as value: JSONValue
    ) throws(JSONError) -> JSONValue {
        let expected = Array(word.description.utf8)
        guard bytes[offset...].starts(with: expected) else { throw failure("no JSON value") }
        offset += expected.count
        return value
    }

    /// Takes a byte if it is the next one.
    private mutating func skip(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        offset += 1
        return true
    }

    private mutating func takeArray(depth: Int) throws(JSONError) -> [JSONValue] {
        try begin(depth)
        var elements: [JSONValue] = []
        skipBlanks()
        if skip(UInt8(ascii: "]")) { return elements }
        while true {
            elements.append(try takeValue(depth: depth))
            skipBlanks()
            if skip(UInt8(ascii: "]")) { return elements }
            guard skip(UInt8(ascii: ",")) else { throw failure("neither a comma nor a ]") }
        }
    }

    private mutating func takeObject(depth: Int) throws(JSONError) -> JSONObject {
        try begin(depth)
        var members: [JSONObject.Member] = []
        var names: Set<ExactText> = []
        skipBlanks()
        if skip(UInt8(ascii: "}")) { return JSONObject() }
        while true {
            skipBlanks()
            let start = offset
            let name = try takeString()
            guard names.insert(ExactText(name)).inserted else {
                throw JSONError(problem: "a name that the object has already", offset: start)
            }
            skipBlanks()
            guard skip(UInt8(ascii: ":")) else { throw failure("no colon after a name") }
            members.append(JSONObject.Member(name: name, value: try takeValue(depth: depth)))
            skipBlanks()
            if skip(UInt8(ascii: "}")) { return JSONObject(checked: members) }
            guard skip(UInt8(ascii: ",")) else { throw failure("neither a comma nor a }") }
        }
    }

    /// Steps into an array or an object.
    private mutating func begin(_ depth: Int) throws(JSONError) {
        guard depth <= JSONLimits.depthMax else {
            throw failure("more than \(JSONLimits.depthMax) values within each other")
        }
        offset += 1
    }

    // MARK: - Numbers

    mutating func takeNumber() throws(JSONError) -> JSONNumber {
        let start = offset
        _ = skip(UInt8(ascii: "-"))
        if !skip(UInt8(ascii: "0")) {
            try takeDigits()
        }
        if skip(UInt8(ascii: ".")) {
            try takeDigits()
        }
        if skip(UInt8(ascii: "e")) || skip(UInt8(ascii: "E")) {
            _ = skip(UInt8(ascii: "+")) || skip(UInt8(ascii: "-"))
            try takeDigits()
        }
        return JSONNumber(checked: String(decoding: bytes[start..<offset], as: UTF8.self))
    }

    private mutating func takeDigits() throws(JSONError) {
        let start = offset
        while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
            offset += 1
        }
        guard offset > start else { throw failure("no JSON value") }
    }

    // MARK: - Strings

    private mutating func takeString() throws(JSONError) -> String {
        let start = offset
        guard skip(UInt8(ascii: "\"")) else { throw failure("no text in quotes") }
        var content: [UInt8] = []
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                offset += 1
                guard let text = String(validating: content, as: UTF8.self) else {
                    throw JSONError(problem: "a text that is not UTF-8", offset: start)
                }
                return text
            case UInt8(ascii: "\\"):
                offset += 1
                content.append(contentsOf: try takeEscape())
            case ..<0x20:
                throw failure("a control character in a text")
            default:
                offset += 1
                content.append(byte)
            }
        }
        throw failure("a text without an end")
    }

    /// What follows a backslash, as UTF-8.
    private mutating func takeEscape() throws(JSONError) -> [UInt8] {
        guard let byte = next else { throw failure("a text without an end") }
        let plain: UInt8? =
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): byte
            case UInt8(ascii: "b"): 0x08
            case UInt8(ascii: "f"): 0x0C
            case UInt8(ascii: "n"): 0x0A
            case UInt8(ascii: "r"): 0x0D
            case UInt8(ascii: "t"): 0x09
            default: nil
            }
        if let plain {
            offset += 1
            return [plain]
        }
        guard byte == UInt8(ascii: "u") else { throw failure("an escape that JSON has not") }
        let start = offset
        offset += 1
        var code = try takeCodeUnit()
        if (0xD800..<0xDC00).contains(code), skip(UInt8(ascii: "\\")), skip(UInt8(ascii: "u")) {
            let low = try takeCodeUnit()
            if (0xDC00..<0xE000).contains(low) {
                code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
            }
        }
        guard let scalar = Unicode.Scalar(code) else {
            throw JSONError(problem: "half of a surrogate pair", offset: start)
        }
        return Array(String(Character(scalar)).utf8)
    }

    private mutating func takeCodeUnit() throws(JSONError) -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw failure("no four hexadecimal digits")
            }
            code = code << 4 | UInt32(digit)
            offset += 1
        }
        return code
    }
}
