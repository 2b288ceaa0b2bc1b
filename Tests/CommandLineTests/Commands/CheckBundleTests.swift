import TestSupport
import Testing

@testable import tidemark

/// `check-bundle`: a file without a store.
struct CheckBundleTests {
    let tool: CommandLineTool

    init() throws {
        tool = try CommandLineTool()
    }

    private func makeBundle() async throws {
        let store = tool.path("store")
        for name in ["apple", "pear", "plum"] {
            try await tool.succeed("put", store, "fruits", name, "one \(name)")
        }
        try await tool.succeed(
            "bundle", "export", store, tool.path("fruits.bundle"), "--dataset", "fruits")
    }

    /// The path is told as it was given: a relative one stays so.
    @Test func aWholeBundle() async throws {
        try await makeBundle()
        let outcome = try await tool.shell("\"$tidemark\" check-bundle fruits.bundle")
        #expect(outcome.status == 0 && outcome.errors.isEmpty)
        expectSafeForTerminal(outcome.text)
        // Times differ from run to run, and with them the length of their differences.
        let size = Quantities.bytes(try Files.read(tool.path("fruits.bundle")).count)
        try Golden.expect(outcome.text, is: "check-bundle", replacing: [size: "SIZE"])
        let lines = try await tool.succeed("check-bundle", tool.path("fruits.bundle"), "--json")
        let object = try #require(try lines.objects().first)
        #expect(object["file"] as? String == tool.path("fruits.bundle"))
        let bundle = try #require(object["bundle"] as? [String: Any])
        #expect(bundle["records"] as? Int == 3)
    }

    @Test func damagedBundles() async throws {
        try await makeBundle()
        let whole = try Files.read(tool.path("fruits.bundle"))
        var random = SeededGenerator(.drawn())
        for _ in 0..<6 {
            var bytes = whole
            bytes[random.below(bytes.count)] ^= 1 << random.below(8)
            let bad = try tool.file("bad.bundle", bytes)
            let outcome = try await tool.run("check-bundle", bad, "--json")
            #expect([65, 78].contains(outcome.status), "\(outcome.errors)")
        }
        let cut = try tool.file("bad.bundle", Array(whole.dropLast(3)))
        expectFailure(try await tool.run("check-bundle", cut), .badData, "bad.bundle at byte")
        let damage = try await tool.run("check-bundle", cut, "--json").objects()
        #expect(damage.map { $0["kind"] as? String } == ["damage"])
        #expect(damage[0]["file"] as? String == cut)
        expectFailure(try await tool.run("check-bundle", tool.path("none")), .noInput)
        let help = try await tool.succeed("check-bundle", "--help").text
        #expect(help.contains("EXAMPLES:"))
        expectSafeForTerminal(help)
    }
}
