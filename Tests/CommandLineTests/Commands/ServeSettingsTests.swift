import TestSupport
import Testing
import Tidemark

@testable import tidemark

/// What `serve` says of settings that it cannot start with. It says so before it makes a store.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct ServeSettingsTests {
    let tool: CommandLineTool

    init() throws {
        tool = try CommandLineTool()
    }

    @Test(
        "a mistake in the settings is told by its name",
        arguments: [
            (#"{"listen": {"prot": 1}}"#, "listen.prot"),
            (#"{"protection": {"readers": 0}}"#, "protection.readers"),
            (#"{"pools": ["app"]}"#, "pool.app.id"),
            (#"{"adminTokenFile": "none-such"}"#, "adminTokenFile"),
            ("no JSON", "config"),
        ])
    func mistakes(_ content: String, _ name: String) async throws {
        let file = try tool.file("settings.json", content)
        let outcome = try await tool.run(
            "serve", tool.path("hub"), "--listen", "127.0.0.1:0", "--config", file)
        expectFailure(outcome, .usage)
        #expect(outcome.errors.contains(name), "\(outcome.errors)")
        #expect(!Files.exists(tool.path("hub")))
    }

    @Test("a hub that nobody could use is refused")
    func nobody() async throws {
        let outcome = try await tool.run("serve", tool.path("hub"), "--listen", "127.0.0.1:0")
        expectFailure(outcome, .usage)
        #expect(outcome.errors.contains("--token-file"))
    }

    @Test("a file of settings that is not there is told")
    func noFile() async throws {
        let outcome = try await tool.run(
            "serve", tool.path("hub"), "--config", tool.path("none"))
        expectFailure(outcome, .usage)
        #expect(outcome.errors.contains("config"))
    }

    @Test("days of tombstones have bounds")
    func tombstones() async throws {
        for days in ["0", "36501", "x"] {
            let outcome = try await tool.run(
                "serve", tool.path("hub"), "--tombstone-days", days)
            expectFailure(outcome, .usage)
        }
    }

    @Test("how far a clock may be ahead has bounds")
    func clocks() async throws {
        for seconds in ["-1", "86401", "x"] {
            let outcome = try await tool.run(
                "serve", tool.path("hub"), "--clock-ahead-seconds=\(seconds)")
            expectFailure(outcome, .usage)
        }
    }

    /// Five minutes, as among replicas of one owner, would let any device win for so long.
    @Test("the served store believes clocks that are 10 seconds ahead, unless it is told otherwise")
    func clockOfServedStore() async throws {
        let options = ServeCommand.served(
            StoreOptions(), tombstoneDays: 2, clockAheadSeconds: 10)
        #expect(options.clockAheadMax == .seconds(10))
        #expect(options.tombstoneAge == .seconds(172_800))
        let help = try await tool.run("serve", "--help")
        // However wide the lines are.
        let words = help.text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(words.contains("--clock-ahead-seconds <seconds>"))
        #expect(words.contains("(default: 10)"))
    }
}
