import TestSupport
import Testing
import Tidemark

@testable import tidemark

/// What the reading commands tell of records that expire.
@Suite struct ExpiryTests {
    let tool: CommandLineTool
    let path: String
    private static let end: UInt64 = 4_102_444_800_125
    private static let endText = "2100-01-01T00:00:00.125Z"

    init() throws {
        tool = try CommandLineTool()
        path = tool.path("store")
        let store = try Store.open(at: path, options: StoreOptions(compactsAutomatically: false))
        let sessions = try store.dataset("sessions")
        try sessions.put("1", for: "ends", expiresAt: Self.end)
        try sessions.put("2", for: "ended", expiresAt: 1)
        try sessions.put("3", for: "stays")
        try store.deleteExpired()
        try store.close()
    }

    @Test func jsonTellsWhenARecordExpires() async throws {
        let got = try await tool.succeed("get", path, "sessions", "ends", "--json").objects()
        #expect(got[0]["expiresAt"] as? String == Self.endText)
        let scanned = try await tool.succeed("scan", path, "sessions", "--deleted", "--json")
            .objects()
        #expect(scanned.map { $0["key"] as? String } == ["ended", "ends", "stays"])
        #expect(
            scanned.map { $0["expiresAt"] as? String }
                == ["1970-01-01T00:00:00.001Z", Self.endText, nil])
        let versions = try await tool.succeed("history", path, "sessions", "ended", "--json")
            .objects()
        #expect(versions.map { $0["isDeleted"] as? Bool } == [true, false])
        #expect(versions.allSatisfy { $0["expiresAt"] as? String == "1970-01-01T00:00:00.001Z" })
    }

    @Test func theLogTellsWhatExpires() async throws {
        let objects = try await tool.succeed("log", path, "--json").objects()
            .filter { $0["key"] != nil }
        #expect(
            objects.map { "\($0["operation"] ?? "") \($0["expiresAt"] ?? "")" } == [
                "put \(Self.endText)", "put 1970-01-01T00:00:00.001Z", "put ",
                "delete 1970-01-01T00:00:00.001Z",
            ])
        let lines = try await tool.succeed("log", path, "--dataset", "sessions").lines
        #expect(lines.filter { $0.contains(" put ttl ") }.count == 2)
        #expect(lines.filter { $0.contains(" expired ") }.count == 1)
        #expect(lines.filter { $0.contains(" put ") && $0.hasSuffix(" stays") }.count == 1)
    }

    /// A record that has expired is no longer there to be exported.
    @Test func anExportCarriesTheExpiry() async throws {
        let exported = try await tool.succeed("export", path, "sessions")
        #expect(
            exported.text == """
                {"key":"ends","value":"1","expiresAt":"\(Self.endText)"}
                {"key":"stays","value":"3"}

                """)
        let copy = tool.path("copy")
        try await tool.succeed("import", copy, "sessions", "-", input: exported.output)
        #expect(try await tool.succeed("export", copy, "sessions").output == exported.output)
        let store = try Store.open(at: copy, options: StoreOptions(isReadOnly: true))
        let sessions = try #require(try store.existingDataset("sessions"))
        #expect(try sessions.record(for: "ends")?.expiresAt == Self.end)
        let stays = try #require(try sessions.record(for: "stays"))
        #expect(stays.expiresAt == nil)
        try store.close()
        #expect(try await tool.succeed("export", path, "sessions", "--lines").text == "1\n3\n")
    }

    /// With `--key` the line is the user's own, and so is what its fields mean.
    @Test func onlyWhatExportPrintsExpires() async throws {
        let line = #"{"id":"a","key":"b","value":"1","expiresAt":"1970-01-02T00:00:00Z"}"#
        let copy = tool.path("copy")
        try await tool.succeed("import", copy, "d", "-", "--key", "id", input: Array(line.utf8))
        #expect(try await tool.succeed("get", copy, "d", "a").text == line)
        try await tool.succeed("import", copy, "d", "-", input: Array(line.utf8))
        expectFailure(try await tool.run("get", copy, "d", "b"), .negative)
        let never = Array(#"{"expiresAt":null,"value":"2","key":"b"}"#.utf8)
        try await tool.succeed("import", copy, "d", "-", input: never)
        #expect(try await tool.succeed("get", copy, "d", "b").text == "2")
    }

    @Test(arguments: [
        "1900000000", "true", "{}", #""""#, #""2100-01-01""#, #""1970-01-01T00:00:00Z""#,
        #""2100-02-29T00:00:00Z""#, #""10889-08-02T05:31:50.656Z""#,
    ])
    func anExpiryThatIsNoDateMakesABadLine(expiry: String) async throws {
        let line = #"{"key":"a","value":"1","expiresAt":\#(expiry)}"#
        let copy = tool.path("copy")
        expectFailure(
            try await tool.run("import", copy, "d", "-", input: Array(line.utf8)), .badData,
            "line 1", "expiry", "(byte 36 of the line)")
        let skipped = try await tool.succeed(
            "import", copy, "d", "-", "--skip-bad-lines", input: Array(line.utf8))
        #expect(skipped.text.hasPrefix("0 records imported, 1 bad line left out"))
    }

    @Test func historyTellsIt() async throws {
        let ends = try await tool.succeed("history", path, "sessions", "ends").text
        #expect(ends.contains("expires \(Self.endText)\n"))
        let stays = try await tool.succeed("history", path, "sessions", "stays").text
        #expect(!stays.contains("expires"))
    }
}
