import Foundation
import Testing
import Tidemark
import TidemarkSync

/// The example in the article about conflicts is the code of `CustomMerge.swift`, to the letter,
/// and it works.
struct CustomMergeTests {
    @Test func theExampleIsTheCodeThatIsCompiledHere() throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let example = try String(
            contentsOf: folder.appendingPathComponent("CustomMerge.swift"), encoding: .utf8)
        let sources = folder.appendingPathComponent("../../../Sources")
        let article = try String(
            contentsOf: sources.appendingPathComponent(
                "TidemarkSync/TidemarkSync.docc/ConflictHandling.md"), encoding: .utf8)
        #expect(article.contains("```swift\n" + example + "```"))
    }

    @Test func theExampleWorks() async throws {
        let directory = TemporaryDirectory()
        let till = try TestReplica("till", in: directory)
        let hub = try TestReplica("hub", in: directory)
        let (ours, theirs) = (try till.dataset("orders"), try hub.dataset("orders"))
        for key in ["17", "18", "19"] {
            try ours.put(#"{"state":"open","items":["paint"],"note":""}"#, for: key)
        }
        _ = try await synchronizeOrders(ours, with: hub.transport)
        // One is changed on both sides, one is deleted on one, one is settled by its state alone.
        try theirs.put(#"{"state":"paid","items":["paint","brush"],"note":""}"#, for: "17")
        try ours.put(#"{"state":"open","items":["paint","tape"],"note":"call"}"#, for: "17")
        try theirs.put(#"{"state":"paid","items":["paint"],"note":""}"#, for: "18")
        try ours.delete("18")
        try theirs.put(#"{"state":"cancelled","items":["paint"],"note":""}"#, for: "19")
        try ours.put(#"{"state":"shipped","items":["paint"],"note":""}"#, for: "19")
        let result = try await synchronizeOrders(ours, with: hub.transport)
        #expect(result.conflicts == 3)
        let order = try JSONValue(parsing: try #require(try theirs.get("17")))
        #expect(order["state"] == "paid" && order["note"] == "call")
        #expect(Set(order["items"]?.elements ?? []) == ["paint", "brush", "tape"])
        #expect(try theirs.get("18") == nil)
        let other = try JSONValue(parsing: try #require(try theirs.get("19")))
        #expect(other["state"] == "cancelled")
        try expectEqual([till, hub], dataset: "orders")
    }
}
