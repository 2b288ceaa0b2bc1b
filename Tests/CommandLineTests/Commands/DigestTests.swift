import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import tidemark

/// `digest`: whether two stores hold the same.
@Suite struct DigestTests {
    let tool: CommandLineTool
    let north: String
    let south: String

    init() throws {
        tool = try CommandLineTool()
        north = tool.path("north")
        south = tool.path("south")
    }

    /// Two stores that hold the same fruits; only the first has herbs.
    private func fill() async throws {
        let first = try Store.open(at: north, options: StoreOptions(durability: .process))
        let second = try Store.open(at: south, options: StoreOptions(durability: .process))
        try first.dataset("fruits").put("green", for: "apple")
        try second.dataset("fruits").put("yellow", for: "pear")
        try await first.synchronize(with: InMemoryTransport(SyncResponder(store: second)))
        try first.dataset("herbs").put("fresh", for: "mint")
        try first.close()
        try second.close()
    }

    @Test func equalContentHasEqualDigests() async throws {
        try await fill()
        let before = (try Files.contents(north), try Files.contents(south))
        let first = try await tool.succeed("digest", north, "--json").objects()
        let second = try await tool.succeed("digest", south, "--json").objects()
        #expect(first.map { $0["dataset"] as? String } == ["fruits", "herbs"])
        #expect(second.map { $0["dataset"] as? String } == ["fruits"])
        let digest = try #require(first[0]["digest"] as? String)
        #expect(digest.count == 32 && digest == second[0]["digest"] as? String)
        let text = try await tool.succeed("digest", north, "--dataset", "fruits").text
        #expect(text.hasSuffix("\nfruits   \(digest)\n"))

        let both = try await tool.succeed("digest", north, south, "--dataset", "fruits")
        let half = digest.prefix(16)
        #expect(both.lines.last == "fruits   \(half)  \(half)  equal")
        #expect((try Files.contents(north), try Files.contents(south)) == before)
    }

    @Test func otherContentIsTold() async throws {
        try await fill()
        let outcome = try await tool.run("digest", north, south)
        expectFailure(outcome, .negative, "1 dataset not the same", "tidemark diff")
        #expect(outcome.lines.count == 3)
        #expect(outcome.lines[2].hasPrefix("herbs ") && outcome.lines[2].hasSuffix("  differs"))
        let objects = try await tool.run("digest", south, north, "--json").objects()
        #expect(objects.map { $0["isEqual"] as? Bool } == [true, false])
        #expect(objects[1]["first"] == nil && objects[1]["second"] is String)
    }

    @Test func anEmptyDatasetAndNone() async throws {
        try await tool.succeed("put", north, "d", "k", "v")
        try await tool.succeed("delete", north, "d", "k")
        try await tool.succeed("put", south, "e", "k", "v")
        try await tool.succeed("digest", north, south, "--dataset", "d")
        expectFailure(
            try await tool.run("digest", north, south, "--dataset", "none"), .negative,
            "either store")
        expectFailure(try await tool.run("digest", north, "--dataset", "none"), .negative)
    }

    @Test func ofTheFixture() async throws {
        let names = try FixtureStore.makeTwo(in: tool.directory.path)
        let peer = try #require(names.peer)
        try await expectUnchanged(names.store) {
            let one = try await tool.succeed("digest", names.store).text
            try Golden.expect(one, is: "digest", replacing: names.replacements)
            let two = try await tool.run("digest", names.store, peer).text
            try Golden.expect(two, is: "digest-two", replacing: names.replacements)
        }
    }
}
