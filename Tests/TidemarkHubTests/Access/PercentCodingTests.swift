import TestSupport
import Testing

@testable import TidemarkHub

struct PercentCodingTests {
    @Test("whatever was encoded is decoded to the same bytes")
    func roundTrip() {
        var generator = SeededGenerator(Seed.drawn())
        for _ in 0..<500 {
            let bytes = generator.bytes(generator.below(60))
            #expect(PercentCoding.decoded(PercentCoding.encoded(bytes)) == bytes)
        }
    }

    @Test("only unreserved characters stay as they are")
    func encoding() {
        #expect(PercentCoding.encoded("a/b c+~".utf8) == "a%2Fb%20c%2B~")
        #expect(PercentCoding.encoded("/a%3A".utf8, keepsSlash: true) == "/a%253A")
        #expect(PercentCoding.encoded("é".utf8) == "%C3%A9")
    }

    @Test("broken escapes are none, and a plus is a plus", arguments: ["%", "%4", "%4g", "a%"])
    func brokenEscapes(_ text: String) {
        #expect(PercentCoding.decoded(text) == nil)
        #expect(PercentCoding.decodedText("a+b%3a") == "a+b:")
        #expect(PercentCoding.decodedText("%FF") == nil)
    }
}
