import Foundation
import TestSupport
import Testing

@testable import tidemark

@Suite struct JSONScannerTests {
    /// Names and values of the outermost members as they are written; nil if the text is refused.
    private func members(_ text: [UInt8]) -> [(name: String, value: String)]? {
        var members: [(String, String)] = []
        var scanner = JSONScanner()
        let span = text.span
        do {
            try scanner.scanObject(span) { name, value throws(JSONProblem) in
                members.append(
                    (
                        String(decoding: text[name], as: UTF8.self),
                        String(decoding: text[value], as: UTF8.self)
                    ))
            }
        } catch {
            return nil
        }
        return members
    }

    @Test func findsMembersAsTheyAreWritten() throws {
        let text = #" {"a" : 1.50 , "b":[1, {"a": "}"}],"c":{"a":[]},"\u0064":"\"x\\" } "#
        let found = try #require(members(Array(text.utf8)))
        #expect(found.map(\.name) == [#""a""#, #""b""#, #""c""#, #""\u0064""#])
        #expect(found.map(\.value) == ["1.50", #"[1, {"a": "}"}]"#, #"{"a":[]}"#, #""\"x\\""#])
        #expect(members(Array("{}".utf8))?.isEmpty == true)
    }

    @Test(arguments: [
        "", " ", "[]", "1", "\"a\"", "null", "{", "}", "{]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
        "{\"a\":1 \"b\":2}", "{a:1}", "{'a':1}", "{\"a\":01}", "{\"a\":1.}", "{\"a\":.5}",
        "{\"a\":+1}", "{\"a\":1e}", "{\"a\":-}", "{\"a\":0x1}", "{\"a\":NaN}", "{\"a\":tru}",
        "{\"a\":nul}", "{\"a\":\"\t\"}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12g4\"}", "{\"a\":\"",
        "{\"a\":\"\\", "{\"a\":\"\\u12", "{\"a\":[1,]}", "{\"a\":[1}", "{\"a\":1}}", "{\"a\":1} x",
        "{\"a\":1}{\"a\":2}", "{,}", "{\"a\":[,]}", "{\"a\"::1}", "\u{FEFF}{}", "{\"a\":1}\u{0}",
    ])
    func refusesWhatIsNoObject(text: String) {
        #expect(members(Array(text.utf8)) == nil)
    }

    @Test func refusesTextThatIsNotUTF8() {
        for bad in [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xC3]] as [[UInt8]] {
            let text = Array("{\"a\":\"".utf8) + bad + Array("\"}".utf8)
            #expect(members(text) == nil)
        }
    }

    @Test func depthIsBounded() {
        func nested(_ depth: Int) -> [UInt8] {
            Array(
                ("{\"a\":" + String(repeating: "[", count: depth)
                    + String(repeating: "]", count: depth) + "}").utf8)
        }
        #expect(members(nested(JSONScanner.depthMax - 1)) != nil)
        #expect(members(nested(JSONScanner.depthMax)) == nil)
        #expect(members(nested(1_000_000)) == nil)
    }

    /// Every text that Foundation writes is taken, with the same members; every piece of it that
    /// is cut short is refused, and bytes changed at random never trap.
    @Test func agreesWithFoundation() throws {
        var random = SeededGenerator(.drawn())
        for _ in 0..<300 {
            let object = randomObject(depth: 3, &random)
            let text = try Array(JSONSerialization.data(withJSONObject: object))
            let found = try #require(members(text))
            #expect(found.count == object.count)
            for (name, value) in found {
                let key = try self.text(of: name)
                let again = try JSONSerialization.jsonObject(
                    with: Data(value.utf8), options: .fragmentsAllowed)
                #expect(NSDictionary(dictionary: ["": object[key] as Any]) == ["": again])
            }
            for length in 0..<text.count {
                #expect(members(Array(text[..<length])) == nil)
            }
            for _ in 0..<50 {
                var damaged = text
                // No exponents: Foundation refuses numbers that no Double can hold.
                let byte = UInt8(random.below(256))
                damaged[random.below(text.count)] = byte & 0xDF == UInt8(ascii: "E") ? 0 : byte
                if members(damaged) != nil {
                    #expect(throws: Never.self) {
                        try JSONSerialization.jsonObject(with: Data(damaged))
                    }
                }
            }
        }
    }

    /// The text of a JSON string.
    private func text(of json: String) throws -> String {
        let bytes = Array(json.utf8)
        return String(
            decoding: try JSONContent.string(bytes.span, 0..<bytes.count), as: UTF8.self)
    }

    private func randomObject(depth: Int, _ random: inout SeededGenerator) -> [String: Any] {
        var object: [String: Any] = [:]
        for _ in 0..<random.below(5) {
            object[randomText(&random)] = randomValue(depth: depth, &random)
        }
        return object
    }

    private func randomValue(depth: Int, _ random: inout SeededGenerator) -> Any {
        switch random.below(depth > 0 ? 7 : 5) {
        case 0: return randomText(&random)
        case 1: return random.below(1_000_000) - 500_000
        case 2: return Double(random.below(1_000)) / 64
        case 3: return random.oneIn(2)
        case 4: return NSNull()
        case 5:
            var elements: [Any] = []
            for _ in 0..<random.below(4) {
                elements.append(randomValue(depth: depth - 1, &random))
            }
            return elements
        default: return randomObject(depth: depth - 1, &random)
        }
    }

    private func randomText(_ random: inout SeededGenerator) -> String {
        let pieces = ["a", "\"", "\\", "/", "\n", "\u{1}", "é", "漢", "🙂", "\u{7F}", "{", "}", ":"]
        return (0..<random.below(8)).map { _ in random.element(of: pieces) }.joined()
    }

    @Test func stringsAreRead() throws {
        #expect(try text(of: #""a\"\\\/\b\f\n\r\té""#) == "a\"\\/\u{8}\u{C}\n\r\té")
        #expect(try text(of: #""\u0041\u00e9\u6F22\uD83D\uDE42""#) == "Aé漢🙂")
        for half in [#"\uD83D"#, #"\uDE42"#, #"\uD83Dx"#, #"\uD83D\n"#, #"\uD83D\u0041"#] {
            #expect(throws: JSONProblem.self) { try text(of: "\"\(half)\"") }
        }
    }

    @Test func keysAndValuesAreRead() throws {
        func key(_ text: String) throws(JSONProblem) -> [UInt8] {
            let bytes = Array(text.utf8)
            return try JSONContent.key(bytes.span, 0..<bytes.count)
        }
        func value(_ text: String) throws(JSONProblem) -> [UInt8] {
            let bytes = Array(text.utf8)
            return try JSONContent.value(bytes.span, 0..<bytes.count)
        }
        #expect(try key("\"a\"") == [0x61])
        #expect(try key("-1.50e3") == Array("-1.50e3".utf8))
        #expect(try key(#"{"base64":"/wA="}"#) == [0xFF, 0x00])
        for bad in ["true", "null", "[]", "{}", #"{"base64":"?"}"#, #"{"base64":1}"#] {
            #expect(throws: JSONProblem.self, "\(bad)") { _ = try key(bad) }
        }
        #expect(try value(#""a\n""#) == Array("a\n".utf8))
        #expect(try value(#"{"base64":"/wA="}"#) == [0xFF, 0x00])
        #expect(try value(#"{"base64":"/wA=", "x":1}"#) == Array(#"{"base64":"/wA=", "x":1}"#.utf8))
        #expect(try value("[1, 2]") == Array("[1, 2]".utf8))
    }
}
