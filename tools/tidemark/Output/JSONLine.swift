import Tidemark

/// One JSON object on one line, built member by member in the order of the calls.
///
/// Text is escaped so that the line holds no control character. Bytes that are not UTF-8 become
/// `{"base64": "..."}`, so that nothing is lost and no reader meets a broken line.
struct JSONLine {
    private(set) var bytes: [UInt8] = [UInt8(ascii: "{")]

    /// The object with its closing brace and the end of the line.
    var line: [UInt8] { bytes + Array("}\n".utf8) }

    mutating func add(_ name: String, _ number: some BinaryInteger) {
        startMember(name)
        bytes += String(number).utf8
    }

    /// To the third place behind the point; `null` for nil.
    mutating func add(_ name: String, ratio: Double?) {
        startMember(name)
        guard let ratio, ratio >= 0, ratio < 1e12 else {
            bytes += "null".utf8
            return
        }
        let thousandths = Int((ratio * 1_000).rounded())
        let rest = String(thousandths % 1_000)
        bytes += "\(thousandths / 1_000).".utf8
        bytes += String(repeating: "0", count: 3 - rest.utf8.count).utf8
        bytes += rest.utf8
    }

    mutating func add(_ name: String, _ flag: Bool) {
        startMember(name)
        bytes += (flag ? "true" : "false").utf8
    }

    mutating func add(_ name: String, _ text: String) {
        startMember(name)
        Self.append(text: Array(text.utf8).span, to: &bytes)
    }

    /// Text where the bytes are UTF-8, else `{"base64": "..."}`; `null` for nil.
    mutating func add(_ name: String, _ content: [UInt8]?) {
        startMember(name)
        guard let content else {
            bytes += "null".utf8
            return
        }
        if isUTF8(content.span) {
            Self.append(text: content.span, to: &bytes)
        } else {
            bytes += "{\"base64\":\"\(Base64.encode(content))\"}".utf8
        }
    }

    /// An object of its own.
    mutating func add(_ name: String, _ object: JSONLine) {
        startMember(name)
        bytes += object.bytes
        bytes.append(UInt8(ascii: "}"))
    }

    /// An array of texts.
    mutating func add(_ name: String, texts: [String]) {
        startMember(name)
        bytes.append(UInt8(ascii: "["))
        for (index, text) in texts.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            Self.append(text: Array(text.utf8).span, to: &bytes)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    private mutating func startMember(_ name: String) {
        if bytes.count > 1 {
            bytes.append(UInt8(ascii: ","))
        }
        Self.append(text: Array(name.utf8).span, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
    }

    /// Appends well-formed UTF-8 as a JSON string.
    static func append(text: Span<UInt8>, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        for index in text.indices {
            let byte = text[index]
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                bytes.append(UInt8(ascii: "\\"))
                bytes.append(byte)
            case UInt8(ascii: "\n"): bytes += [UInt8(ascii: "\\"), UInt8(ascii: "n")]
            case UInt8(ascii: "\r"): bytes += [UInt8(ascii: "\\"), UInt8(ascii: "r")]
            case UInt8(ascii: "\t"): bytes += [UInt8(ascii: "\\"), UInt8(ascii: "t")]
            case 0..<0x20, 0x7F:
                let digits = String(byte, radix: 16)
                bytes += "\\u00\(digits.count == 1 ? "0" : "")\(digits)".utf8
            default:
                bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }
}

extension JSONLine {
    /// The members that tell a version: dot, vector, time, author.
    mutating func add(_ version: Version) {
        var dot = JSONLine()
        dot.add("replica", version.dot.replica.description)
        dot.add("counter", version.dot.counter)
        add("dot", dot)
        var vector = JSONLine()
        for entry in version.vector.dots {
            vector.add(entry.replica.description, entry.counter)
        }
        add("vector", vector)
        // Two members, so that the first can be parsed as a date by anyone.
        let time = version.time
        add("time", HybridTime(milliseconds: time.milliseconds, counter: 0).description)
        add("timeCounter", time.counter)
        add("author", version.author)
    }

    /// The member that tells when a record expires.
    static let expiryName = "expiresAt"

    /// When a record expires, as a date; no member if it does not.
    mutating func add(expiresAt: UInt64?) {
        guard let expiresAt else { return }
        add(Self.expiryName, HybridTime(milliseconds: expiresAt, counter: 0).description)
    }

    /// A record as every reading command prints it.
    init(_ record: Record) {
        self.init()
        add("key", record.key)
        add("value", record.value)
        add("isDeleted", record.isDeleted)
        add(record.version)
        add("syncCount", record.syncCount.rawValue)
        add("isDirty", record.isDirty)
        add(expiresAt: record.expiresAt)
    }
}
