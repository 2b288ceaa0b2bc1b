import TestSupport
import Testing

@testable import tidemark

/// `salvage`: one file by itself.
struct SalvageCommandTests {
    let tool: CommandLineTool
    let names: FixtureNames

    init() throws {
        tool = try CommandLineTool()
        names = try FixtureStore.make(in: tool.directory.path)
    }

    private func file(_ ending: String) throws -> String {
        "\(names.store)/\(try #require(Files.list(names.store).first { $0.hasSuffix(ending) }))"
    }

    @Test(arguments: ["seg", "val", "log"]) func ofEachKind(ending: String) async throws {
        let file = try file(".\(ending)")
        try await expectUnchanged(names.store) {
            let text = try await tool.succeed("salvage", file).text
            expectSafeForTerminal(text)
            try Golden.expect(text, is: "salvage-\(ending)", replacing: names.replacements)
            let objects = try await tool.succeed("salvage", file, "--json").objects()
            let found = objects.filter { $0["kind"] as? String != "summary" }
            #expect(objects.last?["found"] as? Int == found.count && !found.isEmpty)
        }
    }

    /// Its name and its header say what a file is; it takes neither.
    @Test func aNamelessFile() async throws {
        let original = try file(".seg")
        let wanted = try await tool.succeed("salvage", original, "--json").text
        var bytes = try Files.read(original)
        let renamed = "\(names.store)/1234"
        try Files.write(bytes, to: renamed)
        #expect(try await tool.succeed("salvage", renamed, "--json").text == wanted)
        bytes[30] ^= 1
        try Files.write(bytes, to: renamed)
        #expect(try await tool.succeed("salvage", renamed, "--json").text == wanted)
    }

    @Test func aDamagedFile() async throws {
        let original = try file(".seg")
        var bytes = try Files.read(original)
        let all = try await tool.succeed("salvage", original, "--json").objects()
        bytes[80 + 40] ^= 1
        let damaged = "\(names.store)/\(original.split(separator: "/").last ?? "").copy"
        try Files.write(bytes, to: damaged)
        let outcome = try await tool.run("salvage", damaged, "--json")
        expectFailure(outcome, .damage, "damaged")
        let objects = try outcome.objects()
        #expect(objects.contains { $0["kind"] as? String == "loss" })
        #expect(objects.count < all.count + 2)
    }

    @Test func intoAStore() async throws {
        let target = tool.path("saved")
        let made = try await tool.succeed("salvage", try file(".seg"), "--to", target, "--json")
        #expect(try made.objects().last?["store"] as? String == target)
        try await tool.succeed("verify", target)
        let datasets = try await tool.succeed("datasets", target, "--json").objects()
        #expect(!datasets.isEmpty)
        let again = try await tool.run("salvage", try file(".seg"), "--to", target)
        expectFailure(again, .usage, "not empty")
    }

    @Test func filesThatHoldNoRecords() async throws {
        let notes = try tool.file("notes.txt", "dear diary")
        for path in [notes, "\(names.store)/MANIFEST", tool.path("none")] {
            expectFailure(try await tool.run("salvage", path), .noInput)
            expectFailure(
                try await tool.run("salvage", path, "--to", tool.path("saved")), .noInput)
        }
        let values = try await tool.run("salvage", try file(".val"), "--to", tool.path("saved"))
        expectFailure(values, .noInput, "no records")
        #expect(!Files.exists(tool.path("saved")))
        let help = try await tool.succeed("salvage", "--help").text
        #expect(help.contains("EXAMPLES:"))
        expectSafeForTerminal(help)
    }
}
