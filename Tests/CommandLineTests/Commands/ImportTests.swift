import TestSupport
import Testing

@testable import tidemark

@Suite struct ImportTests {
    let tool: CommandLineTool
    let store: String

    init() throws {
        tool = try CommandLineTool()
        store = tool.path("store")
    }

    private func get(_ key: String) async throws -> String {
        try await tool.succeed("get", store, "d", key).text
    }

    @Test func theLineAsItStandsBecomesTheValue() async throws {
        let file = try tool.file(
            "a.jsonl",
            """
            { "name": "apple",  "id" : 1.0 }\r

              {"id":"two","nested":{"id":"x"}}
            {"\\u0069d":"\\u00e9"}
            """)
        let outcome = try await tool.succeed("import", store, "d", file, "--key", "id")
        #expect(outcome.text == "3 records imported\n")
        #expect(try await get("1.0") == #"{ "name": "apple",  "id" : 1.0 }"#)
        #expect(try await get("two") == #"{"id":"two","nested":{"id":"x"}}"#)
        #expect(try await get("é") == #"{"\u0069d":"\u00e9"}"#)
    }

    @Test func oneFieldAsTheValue() async throws {
        let content = #"{"id":"a","v":"x\ny"}"# + "\n" + #"{"id":"b","v":[1, 2]}"#
        let file = try tool.file("a.ndjson", content)
        try await tool.succeed("import", store, "d", file, "--key", "id", "--value", "v")
        #expect(try await get("a") == "x\ny")
        #expect(try await get("b") == "[1, 2]")
    }

    @Test(arguments: [
        ("{\"id\":1}\nnot json\n{\"id\":3}\n", 2, "an object"),
        ("{\"id\":1}\n{\"other\":2}\n{\"id\":3}\n", 2, "no field \"id\""),
        ("{\"id\":1}\n{\"id\":2,\"id\":2}\n{\"id\":3}\n", 2, "twice"),
        ("{\"id\":1}\n\n\n{\"id\":true}\n{\"id\":3}\n", 4, "string or a number"),
        ("{\"id\":1}\n{\"id\":\"\"}\n{\"id\":3}\n", 2, "empty"),
        ("{\"id\":1}\n{\"id\":2\n}\n{\"id\":3}\n", 2, "comma"),
    ])
    func aBadLineIsNamedAndTheOnesBeforeAreStored(
        content: String, line: Int, reason: String
    ) async throws {
        let file = try tool.file("bad.jsonl", content)
        let stopped = try await tool.run("import", store, "d", file, "--key", "id")
        expectFailure(
            stopped, .badData, "line \(line) of", reason, "1 record before it is stored",
            "--skip-bad-lines")
        #expect(try await get("1") == #"{"id":1}"#)
        expectFailure(try await tool.run("get", store, "d", "3"), .negative)

        let skipped = try await tool.succeed(
            "import", store, "d", file, "--key", "id", "--skip-bad-lines")
        #expect(skipped.text.hasPrefix("2 records imported, "))
        #expect(skipped.text.contains("line \(line)"))
        #expect(try await get("3") == #"{"id":3}"#)
    }

    @Test func aKeyTooLongIsABadLine() async throws {
        let key = String(repeating: "k", count: 65_536)
        let file = try tool.file("a.jsonl", "{\"id\":\"\(key)\"}\n")
        expectFailure(
            try await tool.run("import", store, "d", file, "--key", "id"), .badData, "line 1",
            "65,535")
    }

    @Test func commaSeparatedValues() async throws {
        let file = try tool.file(
            "a.csv", "\u{FEFF}id,name\r\n1,\"Ada, \"\"Countess\"\"\"\r\n2,\"two\r\nlines\"\r\n")
        try await tool.succeed("import", store, "d", file, "--key", "id")
        #expect(try await get("1") == #"{"id":"1","name":"Ada, \"Countess\""}"#)
        #expect(try await get("2") == #"{"id":"2","name":"two\r\nlines"}"#)
        expectFailure(
            try await tool.run("import", store, "d", file), .usage, "--key")
        expectFailure(
            try await tool.run("import", store, "d", file, "--key", "nobody"), .usage, "id, name")
        let bad = try tool.file("bad.csv", "id,name\n1,a\n2\n3,c\n")
        expectFailure(
            try await tool.run("import", store, "d", bad, "--key", "id"), .badData, "line 3")
        let skipped = try await tool.succeed(
            "import", store, "d", bad, "--key", "id", "--skip-bad-lines")
        #expect(skipped.text.hasPrefix("2 records imported, 1 bad line left out"))
    }

    @Test func manyBatches() async throws {
        let count = 3 * Importer.batchRecordsMax + 7
        let content = (0..<count).map { #"{"id":"\#($0)","n":\#($0)}"# }.joined(separator: "\n")
        let file = try tool.file("many.jsonl", content)
        let outcome = try await tool.succeed("import", store, "d", file, "--key", "id")
        #expect(outcome.text == "3,007 records imported\n")
        let scanned = try await tool.succeed("scan", store, "d", "--json")
        #expect(scanned.lines.count == count)
    }

    @Test func fromStandardInput() async throws {
        let line = Array(#"{"key":"k","value":"v"}"#.utf8)
        try await tool.succeed("import", store, "d", "-", input: line)
        #expect(try await get("k") == "v")
    }

    @Test func whatTheFileIsMustBeKnown() async throws {
        let file = try tool.file("a.txt", #"{"id":"k"}"#)
        expectFailure(
            try await tool.run("import", store, "d", file, "--key", "id"), .usage, "--format")
        try await tool.succeed("import", store, "d", file, "--key", "id", "--format", "jsonl")
        #expect(try await get("k") == #"{"id":"k"}"#)
    }

    @Test func aFileThatIsNotThere() async throws {
        expectFailure(
            try await tool.run("import", store, "d", tool.path("no.csv"), "--key", "id"),
            .noInput, "no.csv")
        #expect(!Files.exists(store), "a store was made for nothing")
        try Files.createDirectory(tool.path("folder.csv"))
        expectFailure(
            try await tool.run("import", store, "d", tool.path("folder.csv"), "--key", "id"),
            .noInput, "is a directory")
        #expect(!Files.exists(store))
    }
}
