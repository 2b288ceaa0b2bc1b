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

    @Test func historyTellsIt() async throws {
        let ends = try await tool.succeed("history", path, "sessions", "ends").text
        #expect(ends.contains("expires \(Self.endText)\n"))
        let stays = try await tool.succeed("history", path, "sessions", "stays").text
        #expect(!stays.contains("expires"))
    }
}
