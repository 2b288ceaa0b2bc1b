import Testing
import TidemarkSync

/// Reading and writing JSON: everything that RFC 8259 allows and nothing else, and nothing lost.
struct JSONTests {
    private func parsed(_ text: String) throws(JSONError) -> JSONValue {
        try JSONValue(parsing: Array(text.utf8))
    }

    @Test(arguments: [
        ("null", "null"), (" \t\r\n true ", "true"), ("false", "false"), ("0", "0"),
        ("-0", "-0"), ("1.50", "1.50"), ("-12.5E+03", "-12.5E+03"), ("1e9999", "1e9999"),
        ("98765432109876543210987654321", "98765432109876543210987654321"),
        (#""""#, #""""#), (#""a\/b""#, #""a/b""#),
        (#""\"\\\b\f\n\r\t""#, #""\"\\\u0008\u000c\n\r\t""#),
        (#""\u00e9\u20AC\ud83d\ude00\u0000""#, #""é€😀\u0000""#), ("[]", "[]"), ("[ ]", "[]"),
        ("[1, [2], 3]", "[1,[2],3]"), ("{}", "{}"), ("{ }", "{}"),
        (#"{ "b" : 1 , "a" : {"x":[]} }"#, #"{"b":1,"a":{"x":[]}}"#),
        // Two names, though Swift calls the texts equal.
        ("{\"é\":1,\"e\u{301}\":2}", "{\"é\":1,\"e\u{301}\":2}"),
    ])
    func reads(_ text: String, _ expected: String) throws {
        let value = try parsed(text)
        #expect(Array(value.description.utf8) == Array(expected.utf8))
        #expect(try parsed(expected) == value)
    }

    @Test(arguments: [
        ("", 0), (" ", 1), ("nul", 0), ("nulll", 4), ("True", 0), ("01", 1), ("1.", 2), (".5", 0),
        ("-", 1), ("+1", 0), ("1e", 2), ("0x1", 1), ("NaN", 0), ("[", 1), ("[1", 2), ("[1,]", 3),
        ("[1 2]", 3), ("]", 0), ("{", 1), (#"{"a"}"#, 4), (#"{"a":}"#, 5), (#"{"a":1,}"#, 7),
        (#"{a:1}"#, 1), (#"{"a":1,"\u0061":2}"#, 7), (#"""#, 1), (#""a"#, 2), (#""\x""#, 2),
        (#""\u12g4""#, 5), (#""\ud800""#, 2), (#""\ud800\u0041""#, 2), (#""\udc00""#, 2),
        ("\"\n\"", 1), ("1 1", 2), ("\u{feff}1", 0),
    ])
    func refuses(_ text: String, _ offset: Int) throws {
        let error = #expect(throws: JSONError.self) { try parsed(text) }
        #expect(error?.offset == offset, "\(text): \(error?.description ?? "")")
    }

    @Test func refusesWhatIsNotUnicode() {
        for bytes: [UInt8] in [[0x22, 0xFF, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22], [0xF7, 1, 1]] {
            #expect(throws: JSONError.self) { try JSONValue(parsing: bytes) }
        }
    }

    @Test func depthAndLengthAreBounded() throws {
        let most = JSONLimits.depthMax
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(try parsed(nested(most)).description == nested(most))
        let error = #expect(throws: JSONError.self) { try parsed(nested(most + 1)) }
        #expect(error?.offset == most)
        #expect(throws: JSONError.self) { try parsed(String(repeating: "[", count: 1_000_000)) }
        let blanks = [UInt8](repeating: 0x20, count: JSONLimits.bytesMax)
        #expect(throws: JSONError.self) { try JSONValue(parsing: blanks + [0x31]) }
        #expect(try JSONValue(parsing: Array(blanks.dropLast()) + [0x31]) == 1)
    }

    @Test func equalityIsOfWhatIsSaid() throws {
        #expect(try parsed(#"{"a":1,"b":[2]}"#) == parsed(#"{"b":[2],"a":1}"#))
        #expect(try parsed(#"{"a":1}"#) != parsed(#"{"a":1.0}"#))
        #expect(try parsed(#"{"a":1}"#) != parsed(#"{"a":1,"b":1}"#))
        #expect(try parsed(#"{"a":1,"b":1}"#) != parsed(#"{"a":1,"c":1}"#))
        #expect(try parsed("[1,2]") != parsed("[2,1]"))
        #expect(try parsed("\"é\"") != parsed("\"e\u{301}\""))
        let names: Set<JSONValue> = [
            try parsed(#"{"a":1,"b":2}"#), try parsed(#"{"b":2,"a":1}"#), "é", "e\u{301}",
        ]
        #expect(names.count == 3)
    }

    @Test func membersAreFoundAndChanged() throws {
        var object = JSONObject([("a", 1), ("b", 2), ("a", 3)])
        #expect(JSONValue.object(object).description == #"{"a":3,"b":2}"#)
        object["c"] = [.null, true]
        object["a"] = nil
        object["x"] = nil
        #expect(JSONValue.object(object).description == #"{"b":2,"c":[null,true]}"#)
        #expect(JSONValue.object(object)["b"]?.integer == 2)
        #expect(JSONValue.object(object)["c"]?.elements?.count == 2)
        #expect(JSONNumber("1.5") != nil && JSONNumber("1.5 ") == nil && JSONNumber("") == nil)
    }

    @Test(arguments: [
        ([], ""), (["a"], "/a"), (["a", "b"], "/a/b"), ([""], "/"), (["a/b", "m~n"], "/a~1b/m~0n"),
        (["~\u{301}"], "/~0\u{301}"),
    ])
    func pointers(_ names: [String], _ pointer: String) {
        #expect(JSONPath(names).description == pointer)
        #expect(JSONPath(pointer) == JSONPath(names))
    }

    @Test func whatIsNoPointerIsNoPath() {
        for text in ["a", "a/b", "/~", "/~2", "/a~"] {
            #expect(JSONPath(text) == nil, "\(text)")
        }
    }

    @Test func whatIsWrittenIsReadBack() throws {
        print("whatIsWrittenIsReadBack: seeds from \(baseSeed)")
        for seed in baseSeed..<baseSeed + 2_000 {
            var json = RandomJSON(seed: seed)
            let value = json.value(depth: 5)
            let bytes = value.encoded
            let back = try JSONValue(parsing: bytes)
            #expect(back == value, "seed \(seed)")
            #expect(back.hashValue == value.hashValue, "seed \(seed)")
            #expect(back.encoded == bytes, "seed \(seed)")
        }
    }

    @Test func noBytesTrap() {
        print("noBytesTrap: seeds from \(baseSeed)")
        var refused = 0
        for seed in baseSeed..<baseSeed + 3_000 {
            var json = RandomJSON(seed: seed)
            var bytes = json.value(depth: 4).encoded
            for _ in 0..<1 + json.below(3) {
                switch json.below(3) {
                case 0: bytes = Array(bytes.prefix(json.below(bytes.count + 1)))
                case 1 where !bytes.isEmpty:
                    bytes[json.below(bytes.count)] = UInt8(json.below(256))
                default:
                    bytes.insert(UInt8(json.below(256)), at: json.below(bytes.count + 1))
                }
            }
            guard let value = try? JSONValue(parsing: bytes) else {
                refused += 1
                continue
            }
            #expect((try? JSONValue(parsing: value.encoded)) == value, "seed \(seed)")
        }
        #expect(refused > 1_000)
    }
}
