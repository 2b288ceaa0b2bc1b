import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import tidemark

/// `top`: a hub and a store at work.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct TopTests {
    let tool: CommandLineTool

    init() throws {
        tool = try CommandLineTool()
    }

    @Test func aHub() async throws {
        let token = try tool.file("token", "correct-horse\n")
        let wrong = try tool.file("wrong", "incorrect-horse\n")
        let hub = try await HubProcess(tool, store: "hub", tokenFile: token)
        let first = try await tool.succeed(
            "top", hub.url, "--token-file", token, "--interval", "0.05", "--limit", "2", "--json")
        let frames = try first.objects()
        #expect(frames.count == 2)
        // The readings of the page are requests, too.
        #expect(frames.last?["requests"] is Double)
        #expect(frames.last?["connections"] is Double)
        let text = try await tool.succeed(
            "top", hub.url + "/metrics", "--token-file", token, "--interval", "0.05", "--once")
        expectSafeForTerminal(text.text)
        #expect(text.lines.contains("OPERATIONS"))
        expectFailure(
            try await tool.run("top", hub.url, "--token-file", wrong, "--once"), .refused,
            "--token-file")
        try await hub.stop()
        expectFailure(
            try await tool.run("top", hub.url, "--token-file", token, "--once"), .unavailable)
    }

    @Test func aStoreThatIsWritten() async throws {
        let pair = try StorePair(in: tool)
        let north = tool.path("north")
        try pair.north.dataset("fruits").put("green", for: "apple")
        await pair.exchange()
        let running = try RunningCommand(
            try CommandLineTool.binary(), ["top", north, "--interval", "0.05", "--json"],
            in: tool.directory)
        var count = 0
        try await eventually("seen at work") {
            count += 1
            try pair.north.dataset("fruits").put("red", for: "apple \(count)")
            let lines = try running.output().split(separator: "\n")
            return lines.contains { $0.contains(#""datasets":{"fruits":"#) }
        }
        running.terminate()
        let outcome = try await running.outcome()
        #expect(outcome.status == 0, "\(outcome.errors)")
        let last = try #require(try outcome.objects().last)
        #expect(last["operations"] is Double && last["fileBytes"] is Double)
        let lags = try #require(last["lags"] as? [String: Any])
        #expect(lags[pair.south.replicaID.shortDescription] is Int)
        try pair.close()
    }

    @Test func aStoreAtRest() async throws {
        let names = try FixtureStore.make(in: tool.directory.path)
        try await expectUnchanged(names.store) {
            let text = try await tool.succeed(
                "top", names.store, "--once", "--interval", "0.05")
            expectSafeForTerminal(text.text)
            let frame = text.lines.dropFirst().joined(separator: "\n")
            try Golden.expect(frame, is: "top-store", replacing: names.replacements)
        }
    }

    @Test func whatCannotBeWatched() async throws {
        let nowhere = tool.path("nowhere")
        expectFailure(try await tool.run("top", nowhere, "--once"), .noInput, "no store")
        expectFailure(
            try await tool.run("top", nowhere, "--once", "--interval", "0"), .usage, "--interval")
        expectFailure(
            try await tool.run("top", nowhere, "--once", "--limit", "2"), .usage, "--limit")
        expectFailure(
            try await tool.run("top", nowhere, "--token-file", "t"), .usage, "--token-file")
    }
}
