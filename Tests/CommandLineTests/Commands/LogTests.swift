import TestSupport
import Testing
import Tidemark

@testable import tidemark

/// `log`: filters, the bytes of a file, and following a writer.
struct LogTests {
    let tool: CommandLineTool
    let names: FixtureNames

    init() throws {
        tool = try CommandLineTool()
        names = try FixtureStore.make(in: tool.directory.path)
    }

    private func run(_ arguments: [String]) async throws -> Outcome {
        let running = try RunningCommand(
            try CommandLineTool.binary(), ["log", names.store] + arguments, in: tool.directory)
        return try await running.outcome()
    }

    @Test func ofTheFixture() async throws {
        try await expectUnchanged(names.store) {
            let text = try await run([]).text
            expectSafeForTerminal(text)
            try Golden.expect(text, is: "log", replacing: names.replacements)
            let flour = ["--dataset", "stock", "--key", "flour"]
            let filtered = try await run(flour).text
            try Golden.expect(filtered, is: "log-flour", replacing: names.replacements)
            let lines = try await run(flour + ["--json"]).text
            try Golden.expect(lines, is: "log-flour-json", replacing: names.replacements)
        }
    }

    @Test func filtersLeaveOutWhatTheySay() async throws {
        func keys(_ arguments: String...) async throws -> [String] {
            try await run(arguments + ["--json"]).objects().compactMap { $0["key"] as? String }
        }
        #expect(try await keys("--author", "grace", "--dataset", "stock") == ["flour"])
        let deleted = try await keys("--op", "delete", "--dataset", "stock")
        #expect(deleted == ["salt", "rye"])
        let early = try await keys("--dataset", "stock", "--until", "2026-03-02T06:03:00Z")
        #expect(early == ["flour", "rye", "salt"])
        let late = try await keys("--dataset", "stock", "--since", "2026-03-02T08:30:00Z")
        #expect(late == ["flour"])
        #expect(try await keys("--since", "2027-01-01", "--dataset", "stock").isEmpty)
        let two = try await run(["--op", "delete", "--op", "create", "--json"]).objects()
        #expect(two.contains { $0["operation"] as? String == "datasetCreated" })
        let files = try await run(["--json"]).objects().compactMap { $0["segment"] as? String }
        let file = try #require(files.first)
        let number = try #require(Int(file.prefix { $0.isNumber }))
        let ofFile = try await run(["--segment", "\(number)", "--json"]).objects()
        #expect(ofFile.count == files.filter { $0 == file }.count)
    }

    @Test func wrongQuestions() async throws {
        expectFailure(try await run(["--hex"]), .usage, "--segment")
        expectFailure(try await run(["--offset", "64"]), .usage, "--hex")
        expectFailure(try await run(["--segment", "99", "--hex"]), .negative, "99")
        expectFailure(try await run(["--op", "nothing"]), .usage, "nothing")
        expectFailure(try await run(["--since", "yesterday"]), .usage, "yesterday")
    }

    @Test func bytesOfASegment() async throws {
        let segment = try #require(
            try Files.list(names.store).first { $0.hasSuffix(".seg") })
        let text = try await expectUnchanged(names.store) {
            try await run(["--segment", segment, "--hex"]).text
        }
        expectSafeForTerminal(text)
        try Golden.expect(text, is: "log-hex-segment")
    }

    /// Two value files are in the fixture, with the numbers of segments.
    @Test func bytesOfEveryFileAreNamed() async throws {
        for file in try Files.list(names.store) where file != "MANIFEST" {
            let bytes = try Files.read("\(names.store)/\(file)")
            let outcome = try await run(["--segment", file, "--hex", "--json"])
            var position = 0
            for field in try outcome.objects() where field["isContent"] as? Bool == false {
                #expect(field["offset"] as? Int == position, "\(file) at \(position)")
                position += try #require(field["count"] as? Int)
                #expect((field["field"] as? String)?.isEmpty == false)
            }
            #expect(position == bytes.count, "\(file)")
            #expect(!outcome.text.contains("\"damaged\""), "\(file)")
        }
    }

    @Test func whatWasWrittenSinceIsFollowed() async throws {
        let writer = try Store.open(
            at: names.store, options: StoreOptions(durability: .process, author: "late"))
        defer { try? writer.close() }
        let following = try RunningCommand(
            try CommandLineTool.binary(),
            ["log", names.store, "--follow", "--dataset", "stock", "--author", "late", "--json"],
            in: tool.directory)
        try writer.dataset("stock").put("1", for: "oats")
        try await eventually("printed") { try following.output().contains("\"oats\"") }
        try writer.sealAll()
        try writer.dataset("stock").put("2", for: "spelt")
        try await eventually("printed") { try following.output().contains("\"spelt\"") }
        following.interrupt()
        let outcome = try await following.outcome()
        #expect(outcome.status == 130 && outcome.errors.isEmpty)
        let keys = try outcome.objects().compactMap { $0["key"] as? String }
        #expect(keys == ["oats", "spelt"])
    }
}
