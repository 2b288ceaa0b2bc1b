import Foundation
import TestSupport
import Testing

@testable import tidemark

@Suite struct Base64Tests {
    /// RFC 4648, section 10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
    ])
    func testVectors(text: String, encoded: String) {
        #expect(Base64.encode(Array(text.utf8)) == encoded)
        #expect(Base64.decode(encoded) == Array(text.utf8))
    }

    @Test(arguments: [
        "Z", "Zg", "Zg=", "Zh==", "Zm9=", "=m9v", "Z===", "====", "Zm 9", "Zm9v\n", "Zm-_",
    ])
    func refusesWhatIsNotCanonical(text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test func agreesWithFoundation() {
        var random = SeededGenerator(.drawn())
        for _ in 0..<500 {
            let bytes = random.bytes(random.below(70))
            #expect(Base64.encode(bytes) == Data(bytes).base64EncodedString())
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
    }
}
