import TestSupport
import Testing

@testable import tidemark

@Suite struct TerminalTextTests {
    @Test(arguments: [
        ("plain text", "plain text"),
        ("tab\tline\nreturn\r", #"tab\tline\nreturn\r"#),
        ("\u{1B}[2J", #"\u{001B}[2J"#),
        (#"\t"#, #"\\t"#),
        ("\u{202E}x", #"\u{202E}x"#),
        ("a\u{2028}b\u{A0}c", #"a\u{2028}b\u{00A0}c"#),
        ("\u{9B}m\u{7F}", #"\u{009B}m\u{007F}"#),
        ("é漢🙂", "é漢🙂"),
    ])
    func escapesWhatIsNoGlyph(text: String, expected: String) {
        #expect(TerminalText.escaped(text) == expected)
    }

    @Test func bytesThatAreNotTextAreSpelledOut() {
        #expect(TerminalText.escaped([0x61, 0xFF, 0x62]) == #"a\xFFb"#)
        #expect(TerminalText.escaped([0xC3]) == #"\xC3"#)
        #expect(TerminalText.escaped([0xED, 0xA0, 0x80]) == #"\xED\xA0\x80"#)
        #expect(TerminalText.escaped([0xC0, 0x80]) == #"\xC0\x80"#)
    }

    /// Different bytes must look different, or one key could pass for another.
    @Test func escapingLosesNothing() {
        var random = SeededGenerator(.drawn())
        var seen: [String: [UInt8]] = [:]
        for _ in 0..<20_000 {
            let alphabet = Array("\\xutn{}01F\n\t\r".utf8) + [0xFF, 0xC3, 0xA9, 0x1B]
            let bytes = (0..<random.below(7)).map { _ in random.element(of: alphabet) }
            let escaped = TerminalText.escaped(bytes)
            #expect(seen[escaped] == nil || seen[escaped] == bytes)
            seen[escaped] = bytes
        }
    }

    @Test func whatIsCutFitsAndSaysSo() {
        var random = SeededGenerator(.drawn())
        let pieces = ["a", "漢", "\u{1B}", "e\u{301}", "🙂", "\\", "é"]
        for _ in 0..<5_000 {
            let text = (0..<random.below(30)).map { _ in random.element(of: pieces) }.joined()
            let columns = random.below(25)
            let cut = TerminalText.escaped(text, columnsMax: columns)
            let whole = TerminalText.escaped(text)
            #expect(TerminalText.width(of: cut) <= columns)
            if TerminalText.width(of: whole) <= columns {
                #expect(cut == whole)
            } else if columns > 0 {
                #expect(cut.hasSuffix("…"))
            }
            #expect(TerminalText.width(of: TerminalText.truncated(whole, to: columns)) <= columns)
            let lines = TerminalText.wrapped(whole, columnsMax: columns + 2)
            #expect(lines.joined() == whole)
            #expect(lines.allSatisfy { TerminalText.width(of: $0) <= columns + 2 })
        }
    }

    @Test func utf8IsJudgedAsTheStandardLibraryDoes() {
        var random = SeededGenerator(.drawn())
        let starts: [UInt8] = [
            0x41, 0x80, 0xBF, 0xC0, 0xC2, 0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5,
        ]
        for _ in 0..<50_000 {
            let bytes = (0..<1 + random.below(5)).map { _ in
                random.oneIn(2) ? random.element(of: starts) : UInt8(random.below(256))
            }
            #expect(isUTF8(bytes.span) == (String(validating: bytes, as: UTF8.self) != nil))
        }
    }

    @Test(arguments: [
        ("", [""]), ("one", ["one"]), ("one two three", ["one two", "three"]),
        ("a wordtoolong b", ["a", "wordtool", "ong b"]), ("  spaced   out ", ["spaced", "out"]),
    ])
    func textIsWrappedBetweenWords(text: String, lines: [String]) {
        #expect(TerminalText.wrappedWords(text, columnsMax: 8) == lines)
    }
}
