import TestSupport
import Testing

@testable import tidemark

@Suite struct UsageTests {
    let tool: CommandLineTool

    init() throws {
        tool = try CommandLineTool()
    }

    private static let commands = TidemarkCommand.plainNames

    @Test func helpNamesEveryExitStatus() async throws {
        let help = try await tool.succeed("--help").text
        for status in CommandStatus.allCases {
            #expect(help.contains(" \(status.rawValue)  \(status.meaning)\n"))
        }
        for command in TidemarkCommand.names {
            #expect(help.contains("  \(command) "))
        }
        expectSafeForTerminal(help)
    }

    /// Those whose first argument is no store.
    private static let firstArguments = ["salvage": "<file>", "check-bundle": "<file>"]

    @Test(arguments: commands) func everyCommandHasHelp(command: String) async throws {
        let first = Self.firstArguments[command] ?? "<store>"
        let help = try await tool.succeed(command, "--help").text
        #expect(help.contains(first), "the first argument is \(first)")
        #expect(try await tool.run(command).status == CommandStatus.usage.rawValue)
        expectFailure(try await tool.run(command), .usage, first, "tidemark \(command) --help")
    }

    @Test func wrongCommandLines() async throws {
        expectFailure(try await tool.run("frobnicate"), .usage, "frobnicate")
        expectFailure(try await tool.run("scan", "s", "d", "--wrong"), .usage, "--wrong")
        expectFailure(try await tool.run("put", "s", "d", "k", "v", "--durability", "x"), .usage)
        // What a user typed comes back as safely as what a store holds.
        let hostile = try await tool.run("scan", "s", "d", "--\u{1B}[2J\nsecond line")
        expectFailure(hostile, .usage)
        #expect(!hostile.errors.contains("\u{1B}"))
    }

    @Test func withoutArgumentsThereIsHelp() async throws {
        let outcome = try await tool.run()
        #expect(outcome.text.contains("SUBCOMMANDS:"))
    }

    @Test func argumentsMustBeText() async throws {
        let outcome = try await tool.shell("\"$tidemark\" put store d $'\\xff' v")
        expectFailure(outcome, .usage, "argument 4", "--base64-key")
        #expect(!Files.exists(tool.path("store")))
    }

    @Test(arguments: [
        ("127.0.0.1:80", "127.0.0.1", 80), ("localhost:0", "localhost", 0), ("[::1]:7", "::1", 7),
    ])
    func listenAddresses(text: String, host: String, port: Int) throws {
        let address = try ListenAddress(text)
        #expect(address.host == host)
        #expect(address.port == port)
    }

    @Test(arguments: ["", "80", ":80", "a:", "a:x", "a:65536", "::1:80", "a:-1", "[]:1"])
    func noListenAddresses(text: String) {
        #expect(throws: CommandFailure.self) { try ListenAddress(text) }
    }
}
