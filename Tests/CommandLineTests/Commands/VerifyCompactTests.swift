import TestSupport
import Testing

@testable import tidemark

@Suite struct VerifyCompactTests {
    let tool: CommandLineTool
    let store: String

    init() throws {
        tool = try CommandLineTool()
        store = tool.path("store")
    }

    private func fill(_ rounds: Int) async throws {
        let content = (0..<5_000).map { #"{"key":"\#($0)","value":"some text \#($0)"}"# }
            .joined(separator: "\n")
        let file = try tool.file("a.jsonl", content)
        for _ in 0..<rounds {
            try await tool.succeed("import", store, "d", file)
        }
    }

    @Test func aWholeStore() async throws {
        try await fill(1)
        #expect(try await tool.succeed("verify", store).text.hasSuffix(" checked: all whole\n"))
        let summary = try await tool.succeed("verify", store, "--json").objects()
        #expect(summary.count == 1)
        #expect(summary[0]["damages"] as? Int == 0)
    }

    /// Compaction drops superseded versions and says how much room that made.
    @Test func compactionSaysWhatItDid() async throws {
        try await fill(3)
        let before = try await tool.succeed("export", store, "d").output
        let text = try await tool.succeed("compact", store).text
        let lines = text.split(separator: "\n").map(String.init)
        #expect(lines.count == 4)
        let dropped = #/dropped [0-9,]+ versions, of these 0 deletions/#
        #expect(lines[2].wholeMatch(of: dropped) != nil)
        #expect(lines[3].wholeMatch(of: #/freed   [0-9,]+ bytes/#) != nil)
        let form = #/(before|after)\s+([0-9,]+) bytes in [0-9]+ segments?, [0-9,]+ bytes on disk/#
        let numbers = try lines.prefix(2).map { line in
            let match = try #require(line.wholeMatch(of: form), "\(line)")
            return try #require(Int(match.output.2.filter(\.isNumber)))
        }
        #expect(numbers[1] < numbers[0])
        #expect(try await tool.succeed("export", store, "d").output == before)
        try await tool.succeed("verify", store)
        let operations = try await tool.succeed("log", store, "--dataset", "d", "--json").objects()
            .filter { $0["operation"] as? String == "put" }
        #expect(operations.count == 5_000)
    }

    /// What a dry run tells comes true, and it changes nothing.
    @Test(arguments: [[], ["--dataset", "d", "--prefix", "2"]])
    func aDryRun(part: [String]) async throws {
        try await fill(1)
        try await tool.succeed("compact", store)
        try await fill(1)
        func compact(_ more: [String]) async throws -> [String: Any] {
            let arguments = ["compact", store, "--json"] + part + more
            let running = try RunningCommand(
                try CommandLineTool.binary(), arguments, in: tool.directory)
            return try #require(try await running.outcome().objects().first)
        }
        let planned = try await expectUnchanged(store) { try await compact(["--dry-run"]) }
        #expect(planned["isDryRun"] as? Bool == true)
        let text = try await tool.succeed("compact", store, "--dry-run").text
        expectSafeForTerminal(text)
        let labels = text.split(separator: "\n").map { $0.prefix(8) }
        #expect(labels == ["now     ", "then    ", "drops   ", "frees   "])
        let done = try await compact([])
        for figure in ["segmentsAfter", "entriesDropped", "tombstonesDropped"] {
            #expect(planned[figure] as? Int == done[figure] as? Int, "\(figure)")
        }
        let (then, after) = (
            try #require(planned["bytesAfter"] as? Int), try #require(done["bytesAfter"] as? Int)
        )
        // Sealing the log adds what the store itself remembers of its datasets.
        #expect(abs(then - after) < 4_096, "\(then) were planned, \(after) came of it")
    }

    /// A dataset or a range of keys is compacted by itself, and a program can read what became
    /// of it.
    @Test func compactionOfAPart() async throws {
        try await fill(1)
        try await tool.succeed("compact", store)
        try await fill(1)
        let part = try await tool.succeed(
            "compact", store, "--dataset", "d", "--from", "1", "--to", "2", "--json"
        ).objects()
        #expect(part.count == 1)
        #expect(part[0]["entriesDropped"] as? Int == 1_111)
        #expect(part[0]["tombstonesDropped"] as? Int == 0)
        let prefix = try await tool.succeed(
            "compact", store, "--dataset", "d", "--prefix", "2", "--json"
        ).objects()
        #expect(prefix[0]["entriesDropped"] as? Int == 1_111)
        let rest = try await tool.succeed("compact", store, "--json").objects()
        #expect(rest[0]["entriesDropped"] as? Int == 5_000 - 2_222)
        expectFailure(try await tool.run("compact", store, "--prefix", "1"), .usage, "--dataset")
        expectFailure(try await tool.run("compact", store, "--dataset", "x"), .negative, "x")
        try await tool.succeed("verify", store)
    }

    /// Every damaged byte of a sealed segment is found, and named with file and offset.
    @Test func damageIsNamed() async throws {
        try await fill(1)
        try await tool.succeed("compact", store)
        let stats = try await tool.succeed("stats", store, "--json").objects()
        let sealed = stats.first { $0["isSealed"] as? Bool == true }
        let segment = try #require(sealed?["segment"] as? String)
        let path = "\(store)/\(segment)"
        let whole = try Files.read(path)
        var random = SeededGenerator(.drawn())
        for _ in 0..<8 {
            let offset = random.below(whole.count)
            try Files.overwrite([whole[offset] ^ 0x40], in: path, at: offset)
            let outcome = try await tool.run("verify", store)
            expectFailure(outcome, .damage, segment)
            #expect(outcome.text.contains("damage: "))
            #expect(outcome.text.contains(segment))
            expectSafeForTerminal(String(outcome.text.split(separator: "\n").last ?? ""))
            let objects = try await tool.run("verify", store, "--json")
            #expect(objects.status == CommandStatus.damage.rawValue)
            let damage = try #require(try objects.objects().first)
            #expect(damage["kind"] as? String == "damage")
            #expect((damage["file"] as? String)?.hasSuffix(segment) == true)
            let piped = try await tool.shell(
                "\"$tidemark\" verify store | true; echo \"${PIPESTATUS[0]}\"")
            #expect(piped.text == "2\n")
            try Files.overwrite([whole[offset]], in: path, at: offset)
        }
        try await tool.succeed("verify", store)
    }
}
