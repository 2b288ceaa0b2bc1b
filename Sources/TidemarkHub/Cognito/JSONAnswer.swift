/// Writes the JSON of an answer, member by member: answers with records are what the hub sends most
/// of, so their bytes go where they belong at once.
///
///     var answer = JSONAnswer()
///     answer.open("{")
///     answer.add("Count", 2)
///     answer.close("}")
///
/// Members that have no value are not added: no client of the API expects a null.
struct JSONAnswer: Sendable {
    private(set) var bytes: [UInt8] = []
    /// Whether something stands before the next member or element.
    private var needsComma = false

    init() {}

    /// Begins an object, or a list.
    ///
    /// - Parameters:
    ///   - bracket: `{` or `[`.
    ///   - name: of the member that it is; nil for an element, and for the whole.
    mutating func open(_ bracket: Unicode.Scalar, as name: String? = nil) {
        begin(name)
        bytes.append(UInt8(ascii: bracket))
        needsComma = false
    }

    mutating func close(_ bracket: Unicode.Scalar) {
        bytes.append(UInt8(ascii: bracket))
        needsComma = true
    }

    mutating func add(_ name: String? = nil, text: String) {
        begin(name)
        appendQuoted(text.utf8)
    }

    /// - Parameter utf8: is known to be UTF-8.
    mutating func add(_ name: String? = nil, utf8: [UInt8]) {
        begin(name)
        appendQuoted(utf8)
    }

    mutating func add(_ name: String, _ number: UInt64) {
        begin(name)
        bytes.append(contentsOf: String(number).utf8)
    }

    mutating func add(_ name: String, _ number: Int) {
        begin(name)
        bytes.append(contentsOf: String(number).utf8)
    }

    /// - Parameter number: what is no number, or too large to be told as one, is told as 0.
    mutating func add(_ name: String, real number: Double) {
        begin(name)
        // Three digits behind the point: of seconds and bytes a second that is enough.
        let thousandths = (number * 1_000).rounded()
        let isTold = thousandths.magnitude < 1e15
        bytes.append(contentsOf: (isTold ? String(thousandths / 1_000) : "0").utf8)
    }

    mutating func add(_ name: String, _ flag: Bool) {
        begin(name)
        bytes.append(contentsOf: (flag ? "true" : "false").utf8)
    }

    mutating func add(_ name: String, _ date: APIDate) {
        begin(name)
        bytes.append(contentsOf: date.text.utf8)
    }

    /// Adds an element that is JSON already.
    mutating func add(json: [UInt8]) {
        begin(nil)
        bytes.append(contentsOf: json)
    }

    private mutating func begin(_ name: String?) {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
        needsComma = true
        guard let name else { return }
        bytes.append(UInt8(ascii: "\""))
        bytes.append(contentsOf: name.utf8)
        bytes.append(UInt8(ascii: "\""))
        bytes.append(UInt8(ascii: ":"))
    }

    /// RFC 8259, section 7. All that must be escaped is ASCII, so UTF-8 need not be decoded.
    private mutating func appendQuoted(_ text: some Sequence<UInt8>) {
        bytes.append(UInt8(ascii: "\""))
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case UInt8(ascii: "\n"): bytes.append(contentsOf: "\\n".utf8)
            case UInt8(ascii: "\r"): bytes.append(contentsOf: "\\r".utf8)
            case UInt8(ascii: "\t"): bytes.append(contentsOf: "\\t".utf8)
            case ..<0x20:
                bytes.append(contentsOf: (byte < 0x10 ? "\\u000" : "\\u00").utf8)
                bytes.append(contentsOf: String(byte, radix: 16).utf8)
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}
