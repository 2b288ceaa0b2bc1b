import Foundation
import Testing
import Tidemark

/// The example in README.md is the code of `ReadmeExample.swift`, to the letter, and it works.
@Suite struct ReadmeTests {
    @Test func theExampleIsTheCodeThatIsCompiledHere() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let example = try String(
            contentsOf: folder.appendingPathComponent("ReadmeExample.swift"), encoding: .utf8)
        let readme = try String(
            contentsOf: folder.appendingPathComponent("../../README.md"), encoding: .utf8)
        #expect(readme.contains("```swift\n" + example + "```"))
    }

    /// Its other example, of the store alone, is built and run by `tools/embedding`.
    @Test func theExampleWorks() async throws {
        let directory = try TemporaryDirectory()
        let hub = try directory.store("hub")
        let shop = try directory.store("shop")
        try shop.dataset("orders").put("2 tins of paint", for: "order-17")
        try await withHub(hub) { url, _ in
            try await synchronizeOrders(of: shop, hubURL: url, token: testToken)
        }
        #expect(try hub.dataset("orders").text("order-17") == "2 tins of paint")
    }
}
