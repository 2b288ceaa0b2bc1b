import TestSupport
import Testing

@testable import TidemarkHub

struct Base64Tests {
    @Test(
        "the test vectors of RFC 4648, section 10",
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
        ])
    func vectors(_ text: String, _ encoded: String) {
        #expect(Base64.encoded(Array(text.utf8)) == encoded)
        #expect(Base64.decoded(encoded) == Array(text.utf8))
        let short = encoded.replacing("=", with: "")
        #expect(Base64.encodedForURL(Array(text.utf8)) == short)
        #expect(Base64.decodedFromURL(short) == Array(text.utf8))
    }

    @Test("all bytes come back in both alphabets, and each text is the only one of its bytes")
    func roundTrips() {
        var generator = SeededGenerator(Seed.drawn())
        for _ in 0..<2_000 {
            let bytes = generator.bytes(generator.below(70))
            #expect(Base64.decoded(Base64.encoded(bytes)) == bytes)
            let text = Base64.encodedForURL(bytes)
            #expect(Base64.decodedFromURL(text) == bytes)
            guard !text.isEmpty else { continue }
            var altered = Array(text.utf8)
            let index = generator.below(altered.count)
            altered[index] = UInt8(truncatingIfNeeded: generator.next()) & 0x7F
            let other = String(decoding: altered, as: UTF8.self)
            if other != text { #expect(Base64.decodedFromURL(other) != bytes) }
        }
        #expect(Base64.encodedForURL([0xFB, 0xFF]) == "-_8")
        #expect(Base64.encoded([0xFB, 0xFF]) == "+/8=")
    }

    @Test(
        "what stands for no bytes is refused",
        arguments: [
            "A", "AAAAA", "A===", "Zg=", "Zg===", "====", "Zh==", "Zm9=", "Z g=", "é", "-_8=",
        ])
    func refusals(_ text: String) {
        #expect(Base64.decoded(text) == nil)
    }

    @Test("padding and the other alphabet are refused where URLs are meant")
    func urls() {
        for text in ["Zg==", "+/8", "Zh", "A", "Zm9vY", "a b", "Zg\n"] {
            #expect(Base64.decodedFromURL(text) == nil)
        }
    }
}
