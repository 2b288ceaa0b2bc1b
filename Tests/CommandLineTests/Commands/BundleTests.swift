import TestSupport
import Testing

@testable import tidemark

/// Two stores that never meet, and files between them, all through the command.
@Suite struct BundleTests {
    let tool: CommandLineTool
    let north: String
    let south: String
    let file: String

    init() throws {
        tool = try CommandLineTool()
        north = tool.path("north")
        south = tool.path("south")
        file = tool.path("notes.bundle")
    }

    private func export(_ store: String) async throws -> String {
        try await tool.succeed("export", store, "fruits").text
    }

    private func replica(of store: String) async throws -> String {
        let stats = try await tool.succeed("stats", store, "--json").objects()
        return try #require(stats.first?["replica"] as? String)
    }

    @Test func changesGoThereAndBack() async throws {
        try await tool.succeed("put", north, "fruits", "apple", "green")
        try await tool.succeed("put", north, "fruits", "pear", "yellow")
        try await tool.succeed("bundle", "export", north, file, "--dataset", "fruits")
        let taken = try await tool.succeed("bundle", "import", south, file)
        #expect(taken.text == "2 records of fruits changed\n")
        let wanted = try await export(north)
        #expect(try await export(south) == wanted)
        // Once more does nothing.
        let again = try await tool.succeed("bundle", "import", south, file)
        #expect(again.text == "0 records of fruits changed\n")
        try await tool.succeed("put", south, "fruits", "apple", "red")
        let back = try await replica(of: north)
        try await tool.succeed(
            "bundle", "export", south, file, "--dataset", "fruits", "--for", back)
        let result = try await tool.succeed("bundle", "import", north, file, "--json").objects()
        #expect(result.first?["pulled"] as? Int == 1)
        let summary = try #require(result.first?["bundle"] as? [String: Any])
        #expect(summary["receiver"] as? String == back)
        #expect(try await tool.succeed("get", north, "fruits", "apple").text == "red")
    }

    @Test(arguments: [("lww", "second"), ("local", "first"), ("remote", "second")])
    func policiesSettleConflicts(policy: String, winner: String) async throws {
        try await tool.succeed("put", north, "fruits", "k", "first")
        try await tool.succeed("put", south, "fruits", "k", "second")
        try await tool.succeed("bundle", "export", south, file, "--dataset", "fruits")
        let outcome = try await tool.succeed("bundle", "import", north, file, "--policy", policy)
        #expect(outcome.text.hasSuffix(", 1 conflict settled\n"))
        #expect(try await tool.succeed("get", north, "fruits", "k").text == winner)
    }

    @Test func whatABundleHolds() async throws {
        try await tool.succeed("put", north, "fruits", "apple", "green")
        try await tool.succeed("put", north, "fruits", "pear", "yellow")
        let made = try await tool.succeed(
            "bundle", "export", north, file, "--dataset", "fruits", "--since", "1")
        let shown = try await tool.succeed("bundle", "show", file)
        #expect(shown.text == made.text)
        expectSafeForTerminal(shown.text)
        #expect(
            shown.lines.map { $0.prefix(10) }
                == [
                    "bundle    ", "dataset   ", "from      ", "for       ", "changes   ",
                    "has seen  ", "records   ", "size      ",
                ])
        #expect(shown.text.contains("changes   after 1 up to 2\n"))
        #expect(shown.text.contains("records   1 in 1 page\n"))
        let object = try #require(
            try await tool.succeed("bundle", "show", file, "--json").objects().first)
        let sender = try await replica(of: north)
        #expect(object["sender"] as? String == sender)
        #expect(object["since"] as? Int == 1)
        #expect(object["through"] as? Int == 2)
        #expect(object["records"] as? Int == 1)
        #expect(object["isWholeDataset"] as? Bool == false)
        let byteCount = try Files.read(file).count
        #expect(object["bytes"] as? Int == byteCount)
    }

    /// The remedy in the message is the command that makes the bundle that is needed.
    @Test func aBundleThatComesTooEarly() async throws {
        try await tool.succeed("put", north, "fruits", "apple", "green")
        try await tool.succeed("bundle", "export", north, file, "--dataset", "fruits")
        try await tool.succeed("bundle", "import", south, file)
        for value in ["a", "b"] { try await tool.succeed("put", north, "fruits", value, value) }
        try await tool.succeed(
            "bundle", "export", north, file, "--dataset", "fruits", "--since", "2")
        expectFailure(
            try await tool.run("bundle", "import", south, file), .negative,
            "begins after change 2", "export it there since 1")
        #expect(try await tool.succeed("scan", south, "fruits", "--json").lines.count == 1)
        try await tool.succeed(
            "bundle", "export", north, file, "--dataset", "fruits", "--since", "1")
        try await tool.succeed("bundle", "import", south, file)
        let wanted = try await export(north)
        #expect(try await export(south) == wanted)
    }

    @Test func noBundles() async throws {
        try await tool.succeed("put", north, "fruits", "apple", "green")
        try await tool.succeed("bundle", "export", north, file, "--dataset", "fruits")
        let whole = try Files.read(file)
        for bytes in [Array(whole.dropLast()), whole + [0], Array("no bundle at all".utf8), []] {
            let bad = try tool.file("bad.bundle", bytes)
            expectFailure(
                try await tool.run("bundle", "import", south, bad), .badData, "bad.bundle at byte")
            expectFailure(try await tool.run("bundle", "show", bad), .badData, "at byte")
        }
        #expect(!Files.exists(south), "a store was made for a file that is none")
        expectFailure(try await tool.run("bundle", "import", south, tool.path("none")), .noInput)
        expectFailure(try await tool.run("bundle", "import", north, file), .badData, "itself")
    }

    @Test func wrongCommandLines() async throws {
        try await tool.succeed("put", north, "fruits", "apple", "green")
        let export = ["bundle", "export", north, file]
        let named = export + ["--dataset", "fruits"]
        let anID = String(repeating: "a", count: 32)
        let cases: [(arguments: [String], status: CommandStatus, word: String)] = [
            (export, .usage, "--dataset"),
            (named + ["--for", "Ada"], .usage, "32 hexadecimal"),
            (named + ["--since", "1", "--for", anID], .usage, "exclude"),
            (named + ["--since", "2"], .usage, "that has 1"),
            (export + ["--dataset", "herbs"], .negative, "herbs"),
            (["bundle", "export", south, file, "--dataset", "fruits"], .noInput, "no store"),
        ]
        for (arguments, status, word) in cases {
            let running = try RunningCommand(
                try CommandLineTool.binary(), arguments, in: tool.directory)
            expectFailure(try await running.outcome(), status, word)
        }
        #expect(!Files.exists(file))
        let help = try await tool.succeed("bundle").text
        for command in ["export", "import", "show"] { #expect(help.contains("  \(command) ")) }
        for command in ["export", "import", "show"] {
            let help = try await tool.succeed("bundle", command, "--help").text
            #expect(help.contains("--json"))
            expectSafeForTerminal(help)
        }
    }
}
