import TestSupport
import Testing

@testable import tidemark

/// `verify`: what is damaged, where, and what helps.
struct VerifyTests {
    let tool: CommandLineTool
    let names: FixtureNames

    init() throws {
        tool = try CommandLineTool()
        names = try FixtureStore.make(in: tool.directory.path)
    }

    private func files(_ ending: String) throws -> [String] {
        try Files.list(names.store).filter { $0.hasSuffix(ending) }
    }

    private func flip(_ name: String, at offset: Int) throws {
        let path = "\(names.store)/\(name)"
        try Files.overwrite([try Files.read(path)[offset] ^ 0x10], in: path, at: offset)
    }

    @Test func aWholeStore() async throws {
        try await expectUnchanged(names.store) {
            let text = try await tool.succeed("verify", names.store).text
            try Golden.expect(text, is: "verify", replacing: names.replacements)
            for threads in ["1", "3", "64"] {
                let other = try await tool.succeed("verify", names.store, "--threads", threads)
                #expect(other.text == text)
            }
            let lines = try await tool.succeed("verify", names.store, "--json").text
            try Golden.expect(lines, is: "verify-json", replacing: names.replacements)
        }
    }

    @Test func damageIsToldWithWhatHelps() async throws {
        try flip(try #require(files(".seg").first), at: 80 + 40)
        try flip(try #require(files(".val").first), at: 80 + 40)
        try await expectUnchanged(names.store) {
            let outcome = try await tool.run("verify", names.store)
            expectFailure(outcome, .damage, "damages found")
            expectSafeForTerminal(outcome.text)
            try Golden.expect(
                outcome.text, is: "verify-damaged", replacing: names.replacements)
            let objects = try await tool.run("verify", names.store, "--json").objects()
            let damages = objects.filter { $0["kind"] as? String == "damage" }
            let places = damages.map { "\($0["file"] ?? "") \($0["offset"] ?? "")" }
            #expect(Set(places).count == 2 && places.count == 2, "each is told once: \(places)")
            #expect(damages.allSatisfy { $0["remedy"] is String })
            #expect(objects.last?["damages"] as? Int == 2)
        }
    }

    /// Every file by itself: damage is named by the file that it is in, and by no other.
    @Test(arguments: ["MANIFEST", ".seg", ".val", ".log"])
    func missingFiles(ending: String) async throws {
        let name = try #require(files(ending).first)
        try Files.remove("\(names.store)/\(name)")
        let outcome = try await tool.run("verify", names.store, "--json")
        guard ending != "MANIFEST" else { return expectFailure(outcome, .noInput, "no store") }
        expectFailure(outcome, .damage, name)
        let damages = try outcome.objects().filter { $0["kind"] as? String == "damage" }
        #expect(damages.count == 1)
        #expect((damages.first?["file"] as? String)?.hasSuffix("/\(name)") == true)
    }

    @Test func wrongCommandLines() async throws {
        for threads in ["0", "65", "x"] {
            let outcome = try await tool.run("verify", names.store, "--threads", threads)
            expectFailure(outcome, .usage, "--threads")
        }
        expectFailure(try await tool.run("verify", tool.path("none")), .noInput, "no store")
        let help = try await tool.succeed("verify", "--help").text
        #expect(help.contains("EXAMPLES:"))
        expectSafeForTerminal(help)
    }
}
