import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import tidemark

/// `peers` and `pending`: who lacks what.
@Suite struct PeersTests {
    let tool: CommandLineTool
    let north: String

    init() throws {
        tool = try CommandLineTool()
        north = tool.path("north")
    }

    /// North and south have exchanged two fruits; then north deleted one, changed the other and
    /// made a third. Returns the id of the south.
    private func fill() async throws -> ReplicaID {
        let pair = try StorePair(in: tool)
        let fruits = try pair.north.dataset("fruits")
        try fruits.put("green", for: "apple")
        try pair.south.dataset("fruits").put("yellow", for: "pear")
        await pair.exchange()
        try fruits.delete("pear")
        try fruits.put("red", for: "apple")
        try fruits.put("blue", for: "fig")
        try pair.north.dataset("herbs").put("fresh", for: "mint")
        let id = pair.south.replicaID
        try pair.close()
        return id
    }

    @Test func howFarEachIsBehind() async throws {
        let south = try await fill()
        let before = try Files.contents(north)
        let text = try await tool.succeed("peers", north)
        expectSafeForTerminal(text.text)
        #expect(text.lines.count == 2, "herbs was never exchanged")
        #expect(text.lines[0].hasPrefix("DATASET  PEER "))
        #expect(text.lines[1].hasPrefix("fruits   \(south.shortDescription) "))
        let objects = try await tool.succeed("peers", "list", north, "--json").objects()
        let peer = try #require(objects.first)
        #expect(objects.count == 1)
        #expect(peer["peer"] as? String == south.description)
        #expect(peer["lag"] as? Int == 3)
        #expect(peer["tombstonesHeld"] as? Int == 1)
        #expect(peer["tombstoneBytesHeld"] as? Int == 4)
        #expect((peer["seen"] as? [String: Any])?.count == 2)
        for date in ["behindSince", "lastArrivalAt"] {
            let text = try #require(peer[date] as? String, "\(date)")
            #expect(Timestamp.milliseconds(Array(text.utf8)) != nil)
        }
        #expect(try Files.contents(north) == before)
    }

    @Test func whatWaitsForEachPeer() async throws {
        let south = try await fill()
        let before = try Files.contents(north)
        let objects = try await tool.succeed("pending", north, "--json").objects()
        #expect(
            objects.map { "\($0["dataset"] ?? "")/\($0["key"] ?? "")" } == [
                "fruits/pear", "fruits/apple", "fruits/fig", "herbs/mint",
            ])
        #expect(objects.dropLast().allSatisfy { $0["peer"] as? String == south.description })
        #expect(objects.last?["peer"] == nil)
        let text = try await tool.succeed("pending", north)
        expectSafeForTerminal(text.text)
        #expect(text.lines.count == 6)
        #expect(text.lines[1].contains("delete"))
        #expect(text.lines.last == "4 records, 28 B; see 'tidemark peers'")
        let some = try await tool.succeed(
            "pending", north, "--peer", south.shortDescription, "--limit", "2")
        #expect(some.lines.last == "2 records or more, 12 B; see 'tidemark peers'")
        #expect(try Files.contents(north) == before)
    }

    @Test func nothingWaitsAfterAnExchange() async throws {
        let pair = try StorePair(in: tool)
        try pair.north.dataset("fruits").put("green", for: "apple")
        await pair.exchange()
        try pair.close()
        #expect(try await tool.succeed("pending", north).text == "nothing waits\n")
        let peer = try await tool.succeed("peers", north, "--json").objects().first
        #expect(peer?["lag"] as? Int == 0)
        #expect(peer?["behindSince"] == nil)
    }

    @Test func aPeerIsRetired() async throws {
        let south = try await fill()
        let retired = try await tool.succeed("peers", "retire", north, south.shortDescription)
        #expect(retired.text == "\(south.shortDescription) retired in 1 dataset\n")
        let peer = try await tool.succeed("peers", north, "--json").objects().first
        #expect(peer?["isRetired"] as? Bool == true)
        let text = try await tool.succeed("peers", north).text
        #expect(text.contains("retired"))
        expectFailure(
            try await tool.run("peers", "retire", north, south.shortDescription), .negative,
            "registered in no such dataset")
        expectFailure(try await tool.run("peers", "retire", north, "5e1f"), .usage)
    }

    @Test func thereIsNoSuchStoreOrDataset() async throws {
        expectFailure(try await tool.run("peers", north), .noInput)
        expectFailure(try await tool.run("pending", north), .noInput)
        _ = try await fill()
        expectFailure(try await tool.run("peers", north, "--dataset", "none"), .negative)
        expectFailure(try await tool.run("pending", north, "--dataset", "none"), .negative)
    }

    @Test func hostileKeys() async throws {
        let pair = try StorePair(in: tool)
        for key in HostileKeys.all { try pair.north.dataset("d").put([1], for: key) }
        try pair.close()
        let text = try await tool.succeed("pending", north)
        expectSafeForTerminal(text.text)
        #expect(text.lines.count == HostileKeys.all.count + 2)
    }

    @Test func ofTheFixture() async throws {
        let names = try FixtureStore.make(in: tool.directory.path)
        try await expectUnchanged(names.store) {
            // The table tells how long ago things were, which goes on.
            expectSafeForTerminal(try await tool.succeed("peers", names.store).text)
            let peers = try await tool.succeed("peers", names.store, "--json").text
            try Golden.expect(peers, is: "peers-json", replacing: names.replacements)
            let pending = try await tool.succeed("pending", names.store).text
            expectSafeForTerminal(pending)
            try Golden.expect(pending, is: "pending", replacing: names.replacements)
            let lines = try await tool.succeed("pending", names.store, "--limit", "3", "--json")
            try Golden.expect(lines.text, is: "pending-json", replacing: names.replacements)
        }
    }

    @Test func besideAWriter() async throws {
        let pair = try StorePair(in: tool)
        try pair.north.dataset("fruits").put("green", for: "apple")
        await pair.exchange()
        try pair.north.dataset("fruits").put("red", for: "apple")
        #expect(
            try await tool.succeed("pending", north).lines.last
                == "1 record, 8 B; see 'tidemark peers'")
        #expect(try await tool.succeed("peers", north).lines.count == 2)
        try pair.close()
    }
}
