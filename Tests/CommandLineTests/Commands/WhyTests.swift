import TestSupport
import Testing
import Tidemark

@testable import tidemark

/// `why`: what keeps bytes on disk.
struct WhyTests {
    let tool: CommandLineTool
    let names: FixtureNames

    init() throws {
        tool = try CommandLineTool()
        names = try FixtureStore.make(in: tool.directory.path)
    }

    @Test(arguments: [
        "flour", "salt", "rye", "shelf 2", "bun", "000000.seg", "000000.log", "000000.val",
    ])
    func ofTheFixture(subject: String) async throws {
        try await expectUnchanged(names.store) {
            var subject = subject
            if subject.hasPrefix("000000") {
                // Of files the first with that ending.
                let ending = String(subject.suffix(4))
                let files = try Files.list(names.store)
                subject = try #require(files.first { $0.hasSuffix(ending) })
            }
            let text = try await tool.succeed("why", names.store, subject).text
            expectSafeForTerminal(text)
            let name = "why-" + subject.replacing(" ", with: "-")
            try Golden.expect(text, is: name, replacing: names.replacements)
            let lines = try await tool.succeed("why", names.store, subject, "--json")
            #expect(try !lines.objects().isEmpty)
        }
    }

    private func reasons(_ key: String, _ more: String...) async throws -> [String] {
        try await RunningCommand(
            try CommandLineTool.binary(),
            ["why", names.store, key, "--dataset", "stock", "--json"] + more, in: tool.directory
        ).outcome().objects().compactMap { $0["reason"] as? String }
    }

    @Test func reasonsOfAKey() async throws {
        let flour = try await reasons("flour")
        #expect(flour.first == "current")
        // The newest was never exchanged: what the phone has is the ancestor of what may come.
        #expect(flour.dropFirst().first == "unsynchronisedChange")
        #expect(flour.dropFirst(2).allSatisfy { $0 == "none" })
        let kept = try await reasons("flour", "--history", "9")
        #expect(kept.dropFirst().allSatisfy { $0 == "retention" })
        #expect(try await reasons("salt").first == "peerHorizon")
    }

    @Test func wrongQuestions() async throws {
        expectFailure(try await tool.run("why", names.store, "oats"), .negative, "oats")
        expectFailure(try await tool.run("why", names.store, "000099.seg"), .negative, "000099")
        expectFailure(
            try await tool.run("why", names.store, "000099.seg", "--is-key"), .negative)
        expectFailure(
            try await tool.run("why", names.store, "flour", "--dataset", "none"), .negative)
    }
}
