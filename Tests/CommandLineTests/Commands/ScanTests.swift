import TestSupport
import Testing

@testable import tidemark

@Suite struct ScanTests {
    let tool: CommandLineTool
    let store: String

    init() throws {
        tool = try CommandLineTool()
        store = tool.path("store")
    }

    private func fill() async throws {
        let lines = ["ant", "bee", "beetle", "cat", "dog"].map { #"{"id":"\#($0)"}"# }
        let file = try tool.file("animals.jsonl", lines.joined(separator: "\n"))
        try await tool.succeed("import", store, "animals", file, "--key", "id")
    }

    private func keys(_ arguments: String...) async throws -> [String] {
        let binary = try CommandLineTool.binary()
        let running = try RunningCommand(
            binary, ["scan", store, "animals", "--json"] + arguments, in: tool.directory)
        return try await running.outcome().objects().compactMap { $0["key"] as? String }
    }

    @Test func rangesPrefixesOrderAndLimit() async throws {
        try await fill()
        #expect(try await keys() == ["ant", "bee", "beetle", "cat", "dog"])
        #expect(try await keys("--from", "bee", "--to", "cat") == ["bee", "beetle"])
        #expect(try await keys("--from", "bef") == ["cat", "dog"])
        #expect(try await keys("--to", "bee") == ["ant"])
        #expect(try await keys("--prefix", "bee") == ["bee", "beetle"])
        #expect(try await keys("--reverse", "--limit", "2") == ["dog", "cat"])
        #expect(try await keys("--prefix", "bee", "--reverse") == ["beetle", "bee"])
        #expect(try await keys("--limit", "0") == [])
        #expect(try await keys("--from", "x") == [])
        #expect(
            try await keys("--prefix", Base64.encode(Array("bee".utf8)), "--base64-key")
                == ["bee", "beetle"])
    }

    @Test func theTable() async throws {
        try await fill()
        try await tool.succeed("delete", store, "animals", "cat")
        #expect(
            try await tool.succeed("scan", store, "animals", "--from", "beetle").text == """
                KEY     BYTES  VALUE
                beetle     15  {"id":"beetle"}
                dog        12  {"id":"dog"}

                """)
        #expect(
            try await tool.succeed(
                "scan", store, "animals", "--from", "beetle", "--deleted"
            ).text == """
                KEY       BYTES  VALUE
                beetle       15  {"id":"beetle"}
                cat     deleted
                dog          12  {"id":"dog"}

                """)
    }

    @Test func hostileKeysAndValuesStayOnTheirLine() async throws {
        for key in HostileKeys.all {
            try await tool.succeed(
                "put", store, "d", Base64.encode(key), "--base64-key", "--base64",
                Base64.encode(key))
        }
        let text = try await tool.succeed("scan", store, "d").text
        #expect(text.split(separator: "\n").count == HostileKeys.all.count + 1)
        expectSafeForTerminal(text)
        let objects = try await tool.succeed("scan", store, "d", "--json").objects()
        #expect(objects.count == HostileKeys.all.count)
    }

    @Test func wrongQuestions() async throws {
        expectFailure(try await tool.run("scan", store, "d"), .noInput)
        try await fill()
        expectFailure(try await tool.run("scan", store, "nothing"), .negative, "nothing")
        expectFailure(
            try await tool.run("scan", store, "animals", "--prefix", "a", "--from", "b"), .usage)
        expectFailure(try await tool.run("scan", store, "animals", "--limit", "-1"), .usage)
    }
}
