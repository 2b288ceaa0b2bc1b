import TestSupport
import Testing

@testable import tidemark

@Suite struct ExportTests {
    let tool: CommandLineTool
    let store: String

    init() throws {
        tool = try CommandLineTool()
        store = tool.path("store")
    }

    @Test func anExportRestoresEveryByte() async throws {
        for (index, key) in HostileKeys.all.enumerated() {
            let value = Base64.encode(HostileKeys.all[HostileKeys.all.count - 1 - index])
            try await tool.succeed(
                "put", store, "d", Base64.encode(key), "--base64-key", "--base64", value)
        }
        try await tool.succeed("put", store, "d", "empty", "")
        try await tool.succeed("put", store, "d", "gone", "x")
        try await tool.succeed("delete", store, "d", "gone")
        let first = try await tool.succeed("export", store, "d")
        #expect(try first.objects().count == HostileKeys.all.count + 1)
        let copy = tool.path("copy")
        try await tool.succeed("import", copy, "d", "-", input: first.output)
        #expect(try await tool.succeed("export", copy, "d").output == first.output)
    }

    @Test func importedLinesComeOutAgain() async throws {
        let lines = [#"{"id": "a", "n": 1.0}"#, #"{"id": "b"}"#, #"{"id": "c", "x": "é"}"#]
        let content = lines.joined(separator: "\n") + "\n"
        let file = try tool.file("a.jsonl", content)
        try await tool.succeed("import", store, "d", file, "--key", "id")
        #expect(try await tool.succeed("export", store, "d", "--lines").text == content)
        try await tool.succeed("put", store, "d", "d", "two\nlines")
        expectFailure(
            try await tool.run("export", store, "d", "--lines"), .badData, "without --lines")
    }

    @Test func aClosedPipeEndsInSilence() async throws {
        let content = (0..<20_000).map { #"{"key":"\#($0)","value":"some text"}"# }
            .joined(separator: "\n")
        let file = try tool.file("a.jsonl", content)
        try await tool.succeed("import", store, "d", file)
        for command in ["export store d", "scan store d", "scan store d --json", "log store"] {
            let outcome = try await tool.shell(
                "\"$tidemark\" \(command) | head -n 1; echo \"${PIPESTATUS[0]}\"")
            #expect(outcome.errors == "", "\(command)")
            #expect(outcome.lines.count == 2, "\(command)")
            #expect(outcome.lines.last == "0", "\(command)")
        }
        let help = try await tool.shell(
            "\"$tidemark\" --help | true; echo \"${PIPESTATUS[0]}\"")
        #expect(help.errors == "")
        #expect(help.text == "0\n")
    }

    /// The store's files must not take the place of a descriptor that the shell left closed.
    @Test func closedDescriptorsDoNotHarmTheStore() async throws {
        let outcome = try await tool.shell(
            """
            "$tidemark" put store d k v <&- >&- 2>&-
            "$tidemark" export store d >&-
            "$tidemark" verify store && "$tidemark" get store d k
            """)
        #expect(outcome.status == 0)
        #expect(outcome.text.hasSuffix("all whole\nv"))
    }

    @Test func aFullDiskIsAnError() async throws {
        try await tool.succeed("put", store, "d", "k", "v")
        let outcome = try await tool.shell("\"$tidemark\" export store d >/dev/full")
        expectFailure(outcome, .inputOutput, "No space left")
    }
}
