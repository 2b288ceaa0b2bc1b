import TestSupport
import Testing
import Tidemark

@testable import tidemark

/// `datasets`, `log`, `history`, `stats`, and what all reading commands have in common.
@Suite struct InspectionTests {
    let tool: CommandLineTool
    let store: String

    init() throws {
        tool = try CommandLineTool()
        store = tool.path("store")
    }

    private func fill() async throws {
        try await tool.succeed("put", store, "fruits", "apple", "green", "--author", "Ada")
        try await tool.succeed("put", store, "fruits", "pear", "yellow")
        try await tool.succeed("put", store, "fruits", "apple", "red")
        try await tool.succeed("delete", store, "fruits", "pear")
        try await tool.succeed("put", store, "herbs", "mint", "")
    }

    private static let readingCommands: [[String]] = [
        ["get", "STORE", "fruits", "apple"], ["scan", "STORE", "fruits", "--deleted"],
        ["export", "STORE", "fruits"], ["datasets", "STORE"], ["log", "STORE"],
        ["history", "STORE", "fruits", "apple"], ["stats", "STORE"], ["verify", "STORE"],
    ]

    private func read(_ command: [String], _ more: String...) async throws -> Outcome {
        let running = try RunningCommand(
            try CommandLineTool.binary(), command.map { $0 == "STORE" ? store : $0 } + more,
            in: tool.directory)
        return try await running.outcome()
    }

    @Test func datasetsOfAStore() async throws {
        try await fill()
        #expect(
            try await tool.succeed("datasets", store).text == """
                DATASET  RECORDS  DELETED  SIZE  SYNC COUNT  UNSENT  REPLICAS
                fruits         1        1   8 B           4       2         1
                herbs          1        0   4 B           1       1         1

                """)
        let objects = try await tool.succeed("datasets", store, "--json").objects()
        #expect(objects.map { $0["dataset"] as? String } == ["fruits", "herbs"])
        #expect(objects.map { $0["records"] as? Int } == [1, 1])
        #expect(objects.map { $0["valueBytes"] as? Int } == [3, 0])
    }

    @Test func everyOperationIsInTheLog() async throws {
        try await fill()
        let objects = try await tool.succeed("log", store, "--json").objects()
            .filter { ["put", "delete"].contains($0["operation"] as? String) }
        #expect(
            objects.map { "\($0["dataset"] ?? "") \($0["operation"] ?? "") \($0["key"] ?? "")" }
                == [
                    "fruits put apple", "fruits put pear", "fruits put apple",
                    "fruits delete pear", "herbs put mint",
                ])
        for object in objects {
            let segment = try #require(object["segment"] as? String)
            #expect(Files.exists("\(store)/\(segment)"))
            #expect(object["offset"] is Int)
            #expect(object["dot"] is [String: Any])
        }
        let counts = objects.filter { $0["dataset"] as? String == "fruits" }
            .compactMap { $0["syncCount"] as? Int }
        #expect(counts == counts.sorted() && Set(counts).count == 4)

        let ofKey = try await tool.succeed(
            "log", store, "--dataset", "fruits", "--key", "apple", "--json")
        #expect(ofKey.lines.count == 2)
        #expect(
            try await tool.succeed("log", store, "--dataset", "fruits", "--limit", "3", "--json")
                .lines.count == 3)
        expectFailure(try await tool.run("log", store, "--dataset", "none"), .negative)
    }

    @Test func historyShowsEachVersion() async throws {
        try await fill()
        let newest = try await tool.succeed("history", store, "fruits", "apple", "--json").objects()
        #expect(newest.first?["value"] as? String == "red")
        let text = try await tool.succeed("history", store, "fruits", "pear", "--full").text
        #expect(text.contains("value   (deleted)\n"))
        expectFailure(try await tool.run("history", store, "fruits", "fig"), .negative)
    }

    @Test func statsInObjects() async throws {
        try await fill()
        let objects = try await tool.succeed("stats", store, "--json").objects()
        #expect(objects.map { $0["kind"] as? String }.prefix(3) == ["store", "dataset", "dataset"])
        #expect(objects.last?["kind"] as? String == "segment")
        #expect((objects[0]["replica"] as? String)?.count == 32)
        let segment = try #require(objects.last)
        #expect(segment["live"] as? Int == 2)
        let (entries, dead) = (segment["entries"] as? Int, segment["dead"] as? Int)
        #expect(entries != nil && entries == dead.map { $0 + 3 }, "two live, one deleted")
        // apple: red, and mint with nothing.
        #expect(segment["liveBytes"] as? Int == 12)
        for object in [segment, objects[0]] {
            let space = try #require(object["spaceAmplification"] as? Double)
            #expect(space > 1)
        }
        let text = try await tool.succeed("stats", store).text
        #expect(text.contains(" bytes on disk for each that is live\n"))
        #expect(text.contains("\nDATASET "))
        #expect(text.contains("\nSEGMENT "))
    }

    @Test func statsOfSeveralSegments() async throws {
        let opened = try Store.open(at: store, options: StoreOptions(compactsAutomatically: false))
        let records = try opened.dataset("records")
        for number in 0..<100 { try records.put("value", for: "key \(100 + number)") }
        try opened.compact()
        for number in 0..<40 { try records.put("other", for: "key \(100 + number)") }
        for number in 90..<100 { try records.delete("key \(100 + number)") }
        try opened.close()
        let objects = try await tool.succeed("stats", store, "--json").objects()
        let segments = objects.filter { $0["kind"] as? String == "segment" }
        #expect(segments.map { $0["live"] as? Int } == [40, 50])
        #expect(segments.map { $0["dead"] as? Int } == [0, 50])
        #expect(segments.map { $0["tombstones"] as? Int } == [10, 0])
        #expect(segments.map { $0["liveBytes"] as? Int } == [40 * 12, 50 * 12])
        let text = try await tool.succeed("stats", store).text
        let titles = try Regex("\\nSEGMENT +STATE +FILE +RAW +LIVE +DEAD +DELETED +SPACE\\n")
        #expect(text.contains(titles), "\(text)")
        let sealed = try Regex(" sealed +[0-9.]+ K?i?B +[0-9.]+ K?i?B +50 +50 +0 +[0-9.]+\\n")
        #expect(text.contains(sealed), "\(text)")
        expectSafeForTerminal(text)
        let dataset = objects.first { $0["kind"] as? String == "dataset" }
        #expect(dataset?["dead"] as? Int == 50)
    }

    @Test func outputsFitATerminal() async throws {
        try await fill()
        for key in HostileKeys.all {
            try await tool.succeed(
                "put", store, "fruits", Base64.encode(key), "--base64-key", "v", "--author",
                "\u{1B}[31mred")
        }
        let longName = String(repeating: "long.", count: 25)
        try await tool.succeed("put", store, longName, "k", "v")
        for command in Self.readingCommands where !["get", "export"].contains(command[0]) {
            let outcome = try await read(command)
            #expect(outcome.status == 0, "\(command)")
            expectSafeForTerminal(outcome.text)
        }
        for key in HostileKeys.all {
            let history = try await tool.succeed(
                "history", store, "fruits", Base64.encode(key), "--base64-key")
            expectSafeForTerminal(history.text)
        }
    }

    @Test func readingChangesNothing() async throws {
        try await fill()
        let before = try Files.contents(store)
        for command in Self.readingCommands {
            let text = try await read(command)
            #expect(text.status == 0, "\(command): \(text.errors)")
            if command[0] != "export" {
                let json = try await read(command, "--json")
                #expect(json.status == 0, "\(command): \(json.errors)")
                #expect(try !json.objects().isEmpty, "\(command)")
            }
            #expect(try Files.contents(store) == before, "\(command)")
        }
    }

    @Test func thereMustBeAStore() async throws {
        for command in Self.readingCommands {
            expectFailure(try await read(command), .noInput)
            #expect(!Files.exists(store), "\(command) made a store")
        }
        expectFailure(try await tool.run("compact", store), .noInput)
        expectFailure(try await tool.run("delete", store, "d", "k"), .noInput)
        #expect(!Files.exists(store))
        // A directory with something else in it is left as it is.
        try Files.createDirectory(store)
        try Files.write([1], to: "\(store)/photo.jpg")
        for command in Self.readingCommands {
            expectFailure(try await read(command), .noInput)
        }
        expectFailure(try await tool.run("put", store, "d", "k", "v"), .noInput)
        #expect(try Files.list(store) == ["photo.jpg"])
    }
}
