import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import tidemark

/// `failed`: records that could not be exchanged.
@Suite struct FailedTests {
    private struct Unwanted: Error, CustomStringConvertible {
        let description = "no \u{1B}[31mweeds"
    }

    let tool: CommandLineTool
    let north: String

    init() throws {
        tool = try CommandLineTool()
        north = tool.path("north")
    }

    /// North refuses what the south has of the weeds.
    private func fill() async throws {
        let pair = try StorePair(in: tool)
        let plants = try pair.south.dataset("plants")
        try plants.put("1", for: "nettle")
        try plants.put("2", for: "rose")
        try plants.put("3", for: "thistle")
        var options = SyncOptions()
        options.validate = { record in
            if record.keyText != "rose" { throw Unwanted() }
        }
        await pair.exchange(options)
        try pair.close()
    }

    private func states(_ more: String...) async throws -> [String] {
        let running = try RunningCommand(
            try CommandLineTool.binary(), ["failed", "list", north, "--json"] + more,
            in: tool.directory)
        return try await running.outcome().objects().map {
            "\($0["key"] ?? "") \($0["state"] ?? "")"
        }.sorted()
    }

    @Test func theyAreListed() async throws {
        try await fill()
        let before = try Files.contents(north)
        #expect(try await states() == ["nettle waiting", "thistle waiting"])
        let text = try await tool.succeed("failed", north)
        expectSafeForTerminal(text.text)
        #expect(text.lines.count == 4)
        #expect(text.lines[3].contains("'tidemark failed retry'"))
        #expect(text.lines[0].hasPrefix("WAY  PEER "))
        #expect(text.lines[1].hasPrefix("in   "))
        #expect(text.lines[1].contains("plants/"))
        let objects = try await tool.succeed("failed", north, "--json").objects()
        #expect(objects.first?["code"] as? String == "recordRefused")
        #expect(objects.first?["direction"] as? String == "incoming")
        #expect(try Files.contents(north) == before)
    }

    @Test func thatNothingHasFailedIsSaid() async throws {
        try await tool.succeed("put", north, "plants", "rose", "red")
        #expect(try await tool.succeed("failed", north).text == "no record has failed\n")
        #expect(try await tool.succeed("failed", north, "--json").text == "")
    }

    @Test func oneIsTriedAgainAndOneDropped() async throws {
        try await fill()
        let due = try await tool.succeed("failed", "retry", north, "plants", "nettle")
        #expect(due.text == "1 record due\n")
        let dropped = try await tool.succeed("failed", "drop", north, "plants", "thistle")
        #expect(dropped.text == "1 record dropped\n")
        #expect(try await states() == ["nettle due"])
        #expect(try await states("--dropped") == ["nettle due", "thistle dropped"])
    }

    @Test func allAtOnce() async throws {
        try await fill()
        let due = try await tool.succeed("failed", "retry", north, "plants", "--all")
        #expect(due.text == "2 records due\n")
        #expect(try await states() == ["nettle due", "thistle due"])
    }

    @Test func whatHasNotFailed() async throws {
        try await fill()
        expectFailure(
            try await tool.run("failed", "retry", north, "plants", "rose"), .negative, "rose")
        expectFailure(try await tool.run("failed", "drop", north, "plants"), .usage, "--all")
        expectFailure(try await tool.run("failed", "drop", north, "none", "--all"), .negative)
        expectFailure(try await tool.run("failed", tool.path("nowhere")), .noInput)
    }

    @Test func ofTheFixture() async throws {
        let names = try FixtureStore.make(in: tool.directory.path)
        try await expectUnchanged(names.store) {
            expectSafeForTerminal(try await tool.succeed("failed", names.store).text)
            let lines = try await tool.succeed("failed", names.store, "--json").text
            try Golden.expect(lines, is: "failed-json", replacing: names.replacements)
        }
    }
}
