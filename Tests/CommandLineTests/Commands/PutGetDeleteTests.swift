import TestSupport
import Testing

@testable import tidemark

@Suite struct PutGetDeleteTests {
    let tool: CommandLineTool
    let store: String

    init() throws {
        tool = try CommandLineTool()
        store = tool.path("store")
    }

    @Test func whatIsPutIsGot() async throws {
        let put = try await tool.succeed("put", store, "fruits", "apple", "green")
        #expect(normalised(put.text) == "REPLICA:1\n")
        #expect(try await tool.succeed("get", store, "fruits", "apple").text == "green")
    }

    @Test func valuesComeBackByteForByte() async throws {
        let every = (0...255).map { UInt8($0) } + Array("\n".utf8)
        try await tool.succeed("put", store, "d", "k", input: every)
        #expect(try await tool.succeed("get", store, "d", "k").output == every)
        try await tool.succeed("put", store, "d", "k", "--base64", Base64.encode(every))
        #expect(try await tool.succeed("get", store, "d", "k").output == every)
        try await tool.succeed(
            "put", store, "d", "k", "--base64", input: Array((Base64.encode(every) + "\n").utf8))
        #expect(try await tool.succeed("get", store, "d", "k").output == every)
    }

    @Test func anEmptyValueIsNotAMissingOne() async throws {
        try await tool.succeed("put", store, "d", "k", "")
        #expect(try await tool.succeed("get", store, "d", "k").output == [])
        expectFailure(try await tool.run("get", store, "d", "other"), .negative, "other", "scan")
    }

    @Test(arguments: HostileKeys.all) func hostileKeysAreKept(key: [UInt8]) async throws {
        let encoded = Base64.encode(key)
        try await tool.succeed("put", store, "d", encoded, "v", "--base64-key")
        #expect(try await tool.succeed("get", store, "d", encoded, "--base64-key").text == "v")
        let object = try await tool.succeed("get", store, "d", encoded, "--base64-key", "--json")
        if let text = String(validating: key, as: UTF8.self) {
            #expect(try object.objects()[0]["key"] as? String == text)
        } else {
            #expect(try object.objects()[0]["key"] as? [String: String] == ["base64": encoded])
        }
        try await tool.succeed("delete", store, "d", encoded, "--base64-key")
        let missing = try await tool.run("get", store, "d", encoded, "--base64-key")
        expectFailure(missing, .negative)
        expectSafeForTerminal(String(missing.errors.prefix(60)))
    }

    @Test func jsonTellsTheVersion() async throws {
        try await tool.succeed("put", store, "d", "k", "1")
        try await tool.succeed("put", store, "d", "k", "2", "--author", "Ada")
        let object = try await tool.succeed("get", store, "d", "k", "--json").objects()[0]
        #expect(object["value"] as? String == "2")
        #expect(object["author"] as? String == "Ada")
        #expect(object["isDeleted"] as? Bool == false)
        #expect(object["isDirty"] as? Bool == true)
        let dot = try #require(object["dot"] as? [String: Any])
        #expect(dot["counter"] as? Int == 2)
        let replica = try #require(dot["replica"] as? String)
        #expect(replica.count == 32)
        #expect(object["vector"] as? [String: Int] == [replica: 2])
    }

    @Test func deletingTellsWhetherThereWasARecord() async throws {
        try await tool.succeed("put", store, "d", "k", "v")
        try await tool.succeed("delete", store, "d", "k")
        expectFailure(try await tool.run("get", store, "d", "k"), .negative)
        let before = try Files.contents(store)
        expectFailure(try await tool.run("delete", store, "d", "k"), .negative, "nothing")
        let scanned = try await tool.succeed("scan", store, "d", "--deleted", "--json").objects()
        #expect(scanned.count == 1)
        #expect(scanned[0]["isDeleted"] as? Bool == true)
        #expect(Set(before.keys) == Set(try Files.list(store)))
    }

    @Test(arguments: ["memory", "process", "disk"])
    func everyDurabilityIsThereAfterwards(level: String) async throws {
        try await tool.succeed("put", store, "d", "k", "v", "--durability", level)
        #expect(try await tool.succeed("get", store, "d", "k").text == "v")
    }

    @Test func boundsAreUsageErrors() async throws {
        expectFailure(try await tool.run("put", store, "d", "", "v"), .usage)
        expectFailure(try await tool.run("put", store, "no/slash", "k", "v"), .usage)
        let long = Base64.encode([UInt8](repeating: 1, count: 65_536))
        expectFailure(try await tool.run("put", store, "d", long, "v", "--base64-key"), .usage)
        expectFailure(
            try await tool.run("put", store, "d", "k", "?", "--base64"), .usage, "base64")
        expectFailure(
            try await tool.run("get", store, "d", "?", "--base64-key"), .usage, "base64")
    }
}
