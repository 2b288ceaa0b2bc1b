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

    @Test func theExampleWorks() async throws {
        let directory = try TemporaryDirectory()
        let hub = try directory.store("hub")
        let path = directory.path + "/shop"
        try await withHub(hub) { url, _ in
            try await keepOrders(at: path, hubURL: url, token: testToken)
        }
        let orders = try hub.dataset("orders")
        #expect(try orders.text("order-17") == "2 tins of paint")
        #expect(try orders.text("order-17/state") == "shipped")
        #expect(try orders.text("order-16") == nil)
    }
}
