/// What the text of a request may be before a parser sees it.
enum JSONBounds {
    /// Levels of objects and lists: the deepest request of the API has three.
    static let depthMax = 16

    /// - Throws: `serialization` if the text is not UTF-8, has a zero byte, as other encodings of
    ///   Unicode do, or is nested deeper. Whether it is JSON is for the parser to say. O(n).
    static func check(_ body: [UInt8], depthMax: Int = JSONBounds.depthMax) throws(APIFailure) {
        guard isUTF8(body) else {
            throw APIFailure(.serialization, "the body is not UTF-8; send JSON in UTF-8")
        }
        var depth = 0
        var isInText = false
        var isEscaped = false
        for byte in body {
            switch byte {
            case 0:
                throw APIFailure(.serialization, "the body has a zero byte; send JSON in UTF-8")
            case _ where isEscaped:
                isEscaped = false
            case UInt8(ascii: "\\") where isInText:
                isEscaped = true
            case UInt8(ascii: "\""):
                isInText.toggle()
            case UInt8(ascii: "{") where !isInText, UInt8(ascii: "[") where !isInText:
                depth += 1
                guard depth <= depthMax else {
                    throw APIFailure(
                        .serialization, "the body is nested deeper than \(depthMax) levels")
                }
            case UInt8(ascii: "}") where !isInText, UInt8(ascii: "]") where !isInText:
                depth -= 1
            default: break
            }
        }
    }

    /// Most texts are ASCII, of which nothing need be copied to find that out.
    static func isUTF8(_ bytes: [UInt8]) -> Bool {
        bytes.allSatisfy { $0 < 0x80 } || String(validating: bytes, as: UTF8.self) != nil
    }
}
