import Foundation
import TestSupport
import Testing

@testable import tidemark

/// Stores on one machine, a hub between them, all through the command.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct SyncServeTests {
    let tool: CommandLineTool
    let token: String

    init() throws {
        tool = try CommandLineTool()
        token = try tool.file("token", "correct-horse\n")
    }

    /// Runs the body while a hub serves a store, and expects the hub to end in order.
    private func withHub(
        _ store: String = "hub", _ body: (_ url: String) async throws -> Void
    ) async throws {
        let hub = try RunningCommand(
            try CommandLineTool.binary(),
            [
                "serve", tool.path(store), "--listen", "127.0.0.1:0", "--token-file", token,
                "--durability", "process",
            ], in: tool.directory)
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await body(try await address(of: hub)))
        } catch {
            outcome = .failure(error)
        }
        hub.terminate()
        let ending = try await hub.outcome()
        try outcome.get()
        #expect(ending.status == 0, "\(ending.errors)")
    }

    private func address(of hub: RunningCommand) async throws -> String {
        while hub.isRunning {
            if let line = try hub.output().split(separator: "\n").first {
                return String(line.dropFirst("listening on ".count))
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw UnexpectedOutput(description: "the hub ended: \(try hub.errors())")
    }

    private func sync(_ store: String, _ url: String, _ more: String...) async throws -> Outcome {
        let running = try RunningCommand(
            try CommandLineTool.binary(),
            ["sync", tool.path(store), url, "--token-file", token] + more, in: tool.directory)
        return try await running.outcome()
    }

    private func export(_ store: String, _ dataset: String) async throws -> String {
        try await tool.succeed("export", tool.path(store), dataset).text
    }

    /// The store north is put back to an earlier state within its files, which no store can see,
    /// and each of two hubs hears of one of its two lines.
    @Test func whatAStoreThatWasPutBackLeftDifferentIsCompared() async throws {
        let north = tool.path("north")
        try await tool.succeed("put", north, "fruits", "apple", "green")
        try FileManager.default.copyItem(atPath: north, toPath: tool.path("saved"))
        try await tool.succeed("put", north, "fruits", "fig", "lost")
        try await withHub { url in
            let outcome = try await sync("north", url)
            #expect(outcome.status == 0)
        }
        for name in try FileManager.default.contentsOfDirectory(atPath: tool.path("saved")) {
            let saved = try Data(contentsOf: URL(filePath: tool.path("saved/\(name)")))
            // Not `atomic`: into the file that is there.
            try saved.write(to: URL(filePath: "\(north)/\(name)"))
        }
        try await withHub("south") { url in
            for key in ["pear", "plum", "quince"] {
                try await tool.succeed("put", north, "fruits", key, "again")
                let outcome = try await sync("north", url)
                #expect(outcome.status == 0)
            }
        }
        try await withHub { url in
            let outcome = try await sync("south", url)
            #expect(outcome.status == 0)
        }
        let one = try await export("south", "fruits")
        let other = try await export("hub", "fruits")
        #expect(one != other)
        try await withHub { url in
            let refused = try await sync("south", url, "--compare", "--dry-run")
            #expect(refused.status == 64)
            let compared = try await sync("south", url, "--compare")
            #expect(compared.text.contains("2 keys differed although both sides"))
            let again = try await sync("south", url, "--compare", "--json")
            #expect(try again.objects().map { $0["overlooked"] as? Int } == [0])
        }
        let fruits = try await export("hub", "fruits")
        #expect(try await export("south", "fruits") == fruits)
        for key in ["apple", "fig", "pear", "plum", "quince"] { #expect(fruits.contains(key)) }
    }

    @Test func twoStoresEndEqual() async throws {
        let (north, south) = (tool.path("north"), tool.path("south"))
        try await tool.succeed("put", north, "fruits", "apple", "green")
        try await tool.succeed("put", north, "herbs", "mint", "fresh")
        try await tool.succeed("put", south, "fruits", "pear", "yellow")
        try await withHub { url in
            let first = try await sync("north", url)
            #expect(first.status == 0, "\(first.errors)")
            expectSafeForTerminal(first.text)
            #expect(first.text.hasPrefix("DATASET  PULLED  PUSHED  CONFLICTS"))
            let second = try await sync("south", url, "--json")
            let objects = try second.objects()
            #expect(objects.map { $0["dataset"] as? String } == ["fruits", "herbs"])
            #expect(objects.map { $0["pulled"] as? Int } == [1, 1])
            #expect(objects.map { $0["pushed"] as? Int } == [1, 0])
            #expect(try await sync("north", url).status == 0)
        }
        for dataset in ["fruits", "herbs"] {
            let wanted = try await export("north", dataset)
            #expect(try await export("south", dataset) == wanted)
            #expect(try await export("hub", dataset) == wanted)
        }
        #expect(try await export("south", "fruits").contains("apple"))
    }

    @Test func onlyTheNamedDatasets() async throws {
        try await tool.succeed("put", tool.path("north"), "a", "k", "v")
        try await tool.succeed("put", tool.path("north"), "b", "k", "v")
        try await tool.succeed("put", tool.path("north"), "c", "k", "v")
        try await withHub { url in
            let outcome = try await sync("north", url, "--dataset", "a", "--dataset", "c", "--json")
            #expect(try outcome.objects().map { $0["dataset"] as? String } == ["a", "c"])
            let datasets = try await tool.succeed("datasets", tool.path("hub"), "--json")
            #expect(try datasets.objects().map { $0["dataset"] as? String } == ["a", "c"])
        }
    }

    @Test(arguments: [("lww", "second"), ("local", "first"), ("remote", "second")])
    func policiesSettleConflicts(policy: String, winner: String) async throws {
        try await tool.succeed("put", tool.path("north"), "d", "k", "first")
        try await tool.succeed("put", tool.path("south"), "d", "k", "second")
        try await withHub { url in
            #expect(try await sync("south", url).status == 0)
            let outcome = try await sync("north", url, "--policy", policy, "--json")
            #expect(try outcome.objects().first?["conflicts"] as? Int == 1)
            #expect(try await sync("south", url).status == 0)
        }
        let north = try await tool.succeed("get", tool.path("north"), "d", "k").text
        #expect(north == winner)
        #expect(try await tool.succeed("get", tool.path("south"), "d", "k").text == winner)
    }

    @Test func commandsThatReadWorkBesideAHub() async throws {
        try await tool.succeed("put", tool.path("north"), "d", "k", "v")
        try await withHub { url in
            #expect(try await sync("north", url).status == 0)
            let hub = tool.path("hub")
            #expect(try await tool.succeed("get", hub, "d", "k").text == "v")
            for command in ["scan", "export"] {
                #expect(try await tool.succeed(command, hub, "d").lines.isEmpty == false)
            }
            for command in ["datasets", "log", "stats", "verify"] {
                #expect(try await tool.succeed(command, hub).lines.isEmpty == false)
            }
            // A second writer is refused, and told who has the store.
            expectFailure(try await tool.run("put", hub, "d", "k", "w"), .busy)
        }
    }

    @Test func aDamagedBlockIsHealedFromTheHub() async throws {
        let north = tool.path("north")
        let content = (0..<5_000).map { #"{"key":"\#($0)","value":"some text \#($0)"}"# }
            .joined(separator: "\n")
        try await tool.succeed("import", north, "d", try tool.file("a.jsonl", content))
        try await tool.succeed("compact", north)
        let before = try await export("north", "d")
        try await withHub { url in
            #expect(try await sync("north", url).status == 0)
            // Of the largest segment, a byte in the middle of its records.
            let segments = try Files.list(north).filter { $0.hasSuffix(".seg") }
                .map { "\(north)/\($0)" }
            let sizes = try segments.map { ($0, try Files.read($0).count) }
            let (path, size) = try #require(sizes.max { $0.1 < $1.1 })
            let byte = try Files.read(path)[size / 4]
            try Files.overwrite([byte ^ 1], in: path, at: size / 4)
            #expect(try await tool.run("verify", north).status == CommandStatus.damage.rawValue)
            let healing = try RunningCommand(
                try CommandLineTool.binary(), ["heal", north, url, "--token-file", token],
                in: tool.directory)
            let outcome = try await healing.outcome()
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(outcome.text.hasPrefix("1 block healed, "), "\(outcome.text)")
            try await tool.succeed("verify", north)
        }
        #expect(try await export("north", "d") == before)
    }

    @Test func aDryRunTellsAndChangesNothing() async throws {
        let north = tool.path("north")
        try await tool.succeed("put", tool.path("south"), "d", "both", "theirs")
        try await tool.succeed("put", tool.path("south"), "d", "south", "theirs")
        try await tool.succeed("put", north, "d", "both", "ours")
        try await tool.succeed("put", north, "d", "north", "ours")
        try await withHub { url in
            #expect(try await sync("south", url).status == 0)
            let before = try Files.contents(north)
            let names = try Files.list(tool.directory.path).filter { $0.hasPrefix("north") }
            let told = try await sync("north", url, "--dry-run", "--json")
            #expect(told.status == 0, "\(told.errors)")
            let objects = try told.objects()
            #expect(objects.first?["conflicts"] as? Int == 1)
            #expect(objects.last?["kind"] as? String == "summary")
            #expect((objects.last?["bytesReceived"] as? Int ?? 0) > 0)
            let text = try await sync("north", url, "--dry-run")
            expectSafeForTerminal(text.text)
            #expect(text.lines.contains { $0.hasPrefix("d/both ") })
            #expect(text.lines.last?.hasSuffix("; nothing was changed") == true)
            #expect(try Files.contents(north) == before)
            let left = try Files.list(tool.directory.path).filter { $0.hasPrefix("north") }
            #expect(left == names, "the fork is gone")
            let done = try await sync("north", url, "--json").objects().first
            #expect(done?["pulled"] as? Int == objects.first?["pulled"] as? Int)
            #expect(done?["pushed"] as? Int == objects.first?["pushed"] as? Int)
        }
        expectFailure(
            try await sync("nowhere", "http://127.0.0.1:1", "--dry-run"), .noInput, "no store")
    }

    @Test func aConflictMayBeLeftToWait() async throws {
        try await tool.succeed("put", tool.path("north"), "d", "k", "first")
        try await tool.succeed("put", tool.path("south"), "d", "k", "second")
        try await withHub { url in
            #expect(try await sync("south", url).status == 0)
            expectFailure(try await sync("north", url, "--policy", "leave"), .negative)
            let waiting = try await tool.succeed("conflicts", tool.path("north"), "--json")
            #expect(try waiting.objects().map { $0["key"] as? String } == ["k"])
            try await tool.succeed(
                "conflicts", "resolve", tool.path("north"), "d", "k", "--keep", "local")
            #expect(try await sync("north", url).status == 0)
            #expect(try await sync("south", url).status == 0)
        }
        #expect(try await tool.succeed("get", tool.path("south"), "d", "k").text == "first")
    }

    @Test func aWrongTokenIsRefused() async throws {
        try await tool.succeed("put", tool.path("north"), "d", "k", "v")
        let wrong = try tool.file("wrong", "incorrect-horse\n")
        try await withHub { url in
            let outcome = try await tool.run(
                "sync", tool.path("north"), url, "--token-file", wrong)
            expectFailure(outcome, .refused)
        }
        #expect(try await tool.succeed("datasets", tool.path("hub")).text == "")
    }

    @Test func aHubThatIsNotThere() async throws {
        try await tool.succeed("put", tool.path("north"), "d", "k", "v")
        // Port 1 is reserved, and nothing listens there.
        expectFailure(try await sync("north", "http://127.0.0.1:1"), .unavailable)
        expectFailure(try await sync("north", "127.0.0.1:1"), .usage, "http://")
        #expect(try await tool.succeed("get", tool.path("north"), "d", "k").text == "v")
    }

    @Test func tokensMustBeTokens() async throws {
        for content in ["", "\n", "two words\n", "naïve\n", String(repeating: "x", count: 5_000)] {
            let file = try tool.file("bad", content)
            let outcome = try await tool.run(
                "serve", tool.path("hub"), "--listen", "127.0.0.1:0", "--token-file", file)
            expectFailure(outcome, .usage)
        }
        expectFailure(
            try await tool.run(
                "sync", tool.path("north"), "http://127.0.0.1:1", "--token-file",
                tool.path("none")), .noInput)
        #expect(!Files.exists(tool.path("hub")))
    }

    @Test func anAddressInUse() async throws {
        try await withHub { url in
            let address = String(url.dropFirst("http://".count))
            let second = try await tool.run(
                "serve", tool.path("second"), "--listen", address, "--token-file", token)
            #expect(second.status == CommandStatus.inputOutput.rawValue)
            #expect(second.errors.contains("choose another address"))
        }
    }
}
