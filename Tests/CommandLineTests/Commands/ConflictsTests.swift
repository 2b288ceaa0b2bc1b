import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import tidemark

/// `conflicts`: what met, what came of it, and what another policy would have made of it.
@Suite struct ConflictsTests {
    let tool: CommandLineTool
    let north: String

    init() throws {
        tool = try CommandLineTool()
        north = tool.path("north")
    }

    /// Both sides knew apple as green; north made it red, south brown; pear was made on both.
    private func fill(_ policy: MergePolicy) async throws {
        let pair = try StorePair(in: tool)
        let (ours, theirs) = (
            try pair.north.dataset("fruits"), try pair.south.dataset("fruits")
        )
        try ours.put("green", for: "apple")
        await pair.exchange()
        try ours.put("red", for: "apple")
        try theirs.put("brown", for: "apple")
        try ours.put("yellow", for: "pear")
        try theirs.put("pale", for: "pear")
        await pair.exchange(SyncOptions(policy: policy))
        try pair.close()
    }

    @Test func thoseThatWait() async throws {
        try await fill(.leavePending)
        let before = try Files.contents(north)
        let text = try await tool.succeed("conflicts", north)
        expectSafeForTerminal(text.text)
        #expect(text.lines.count == 4)
        #expect(text.lines[0].hasPrefix("STATE    WHEN "))
        #expect(text.lines[1...2].allSatisfy { $0.hasPrefix("waiting  ") })
        let objects = try await tool.succeed("conflicts", "list", north, "--json").objects()
        let apple = try #require(objects.first { $0["key"] as? String == "apple" })
        #expect(apple["state"] as? String == "waiting")
        let values = ["ancestor", "local", "remote"].map { side in
            (apple[side] as? [String: Any])?["value"] as? String
        }
        #expect(values == ["green", "red", "brown"])
        let limited = try await tool.succeed("conflicts", "list", north, "--limit", "1", "--json")
        #expect(limited.lines.count == 1)
        #expect(
            try await tool.succeed("conflicts", "list", north, "--settled").text
                == "the journal has no conflict\n")
        #expect(try Files.contents(north) == before)
    }

    @Test func sideBySide() async throws {
        try await fill(.leavePending)
        let text = try await tool.succeed("conflicts", "show", north, "fruits", "apple")
        expectSafeForTerminal(text.text)
        let titles = try #require(text.lines.first { $0.contains("ANCESTOR") })
        let values = try #require(text.lines.first { $0.hasPrefix("value  ") })
        for (title, value) in [("ANCESTOR", "green"), ("LOCAL", "red"), ("REMOTE", "brown")] {
            #expect(
                titles.firstRange(of: title)?.lowerBound.utf16Offset(in: titles)
                    == values.firstRange(of: value)?.lowerBound.utf16Offset(in: values),
                "\(text.text)")
        }
        let pear = try await tool.succeed("conflicts", "show", north, "fruits", "pear")
        #expect(pear.text.contains("(there was none)"))
        expectFailure(
            try await tool.run("conflicts", "show", north, "fruits", "fig"), .negative, "fig")
    }

    @Test func oneIsResolved() async throws {
        try await fill(.leavePending)
        let resolve = ["conflicts", "resolve", north, "fruits"]
        let kept = try await run(resolve + ["apple", "--keep", "remote"])
        #expect(kept.status == 0 && kept.text.contains(":"), "\(kept.errors)")
        #expect(try await tool.succeed("get", north, "fruits", "apple").text == "brown")
        let merged = try await run(resolve + ["pear", "--value", "pale yellow"])
        #expect(merged.status == 0, "\(merged.errors)")
        #expect(try await tool.succeed("get", north, "fruits", "pear").text == "pale yellow")
        #expect(
            try await tool.succeed("conflicts", "list", north, "--waiting").text
                == "no conflict waits\n")
        let settled = try await tool.succeed("conflicts", "list", north, "--settled", "--json")
        #expect(
            Set(try settled.objects().map { $0["policy"] as? String }) == ["application"])
        expectFailure(try await run(resolve + ["apple", "--delete"]), .negative, "waits")
        expectFailure(try await run(resolve + ["apple"]), .usage, "--keep")
        expectFailure(
            try await run(resolve + ["apple", "--keep", "local", "--delete"]), .usage, "--keep")
    }

    @Test func anotherPolicyIsTried() async throws {
        try await fill(.keepLocal)
        let before = try Files.contents(north)
        let replay = ["conflicts", "replay", north, "fruits"]
        let same = try await run(replay + ["--policy", "local"])
        #expect(same.lines.last == "0 of 2 conflicts would be different", "\(same.errors)")
        let other = try await run(replay + ["--policy", "remote", "--json"])
        let objects = try other.objects()
        #expect(objects.dropLast().allSatisfy { $0["verdict"] as? String == "different" })
        #expect(
            Set(objects.dropLast().map { $0["newValue"] as? String }) == ["brown", "pale"])
        #expect(objects.dropLast().allSatisfy { $0["isCurrent"] as? Bool == true })
        #expect(objects.last?["different"] as? Int == 2)
        let one = try await run(replay + ["--policy", "remote", "--key", "pear"])
        expectSafeForTerminal(one.text)
        #expect(one.lines.count == 3 && one.lines[1].contains("pale"))
        expectFailure(try await run(replay), .usage, "--policy")
        #expect(try Files.contents(north) == before)
        #expect(try await tool.succeed("get", north, "fruits", "apple").text == "red")
    }

    /// A sync may leave them to wait, too.
    @Test func hostileKeysAndValues() async throws {
        let pair = try StorePair(in: tool)
        for key in HostileKeys.all {
            try pair.north.dataset("d").put(key, for: key)
            try pair.south.dataset("d").put([0x1B] + key, for: key)
        }
        await pair.exchange(SyncOptions(policy: .leavePending))
        try pair.close()
        let list = try await tool.succeed("conflicts", north)
        expectSafeForTerminal(list.text)
        #expect(list.lines.count == HostileKeys.all.count + 2)
        for key in HostileKeys.all {
            let shown = try await tool.succeed(
                "conflicts", "show", north, "d", Base64.encode(key), "--base64-key")
            expectSafeForTerminal(shown.text)
        }
    }

    private func run(_ arguments: [String]) async throws -> Outcome {
        try await RunningCommand(try CommandLineTool.binary(), arguments, in: tool.directory)
            .outcome()
    }

    @Test func columnsBesideEachOther() {
        let layout = SideBySide(3, columnsMax: 80)
        let lines = layout.lines("value", ["a", String(repeating: "b", count: 50), ""])
        #expect(
            lines == [
                "value  a" + String(repeating: " ", count: 23) + String(repeating: "b", count: 23),
                String(repeating: " ", count: 31) + String(repeating: "b", count: 23),
                String(repeating: " ", count: 31) + "bbbb",
            ])
        let long = layout.lines("", [String(repeating: "漢", count: 1_000)])
        #expect(long.count == 12 && long.allSatisfy { TerminalText.width(of: $0) <= 80 })
    }

    @Test func ofTheFixture() async throws {
        let names = try FixtureStore.make(in: tool.directory.path)
        try await expectUnchanged(names.store) {
            let list = try await tool.succeed("conflicts", names.store).text
            expectSafeForTerminal(list)
            try Golden.expect(list, is: "conflicts", replacing: names.replacements)
            let flour = try await tool.succeed(
                "conflicts", "show", names.store, "stock", "flour"
            ).text
            expectSafeForTerminal(flour)
            try Golden.expect(flour, is: "conflicts-show", replacing: names.replacements)
            let waiting = try await tool.succeed(
                "conflicts", "show", names.store, "prices", "bun", "--json")
            try Golden.expect(
                waiting.text, is: "conflicts-show-json", replacing: names.replacements)
            let replayed = try await tool.succeed(
                "conflicts", "replay", names.store, "recipes", "--policy", "auto"
            ).text
            expectSafeForTerminal(replayed)
            try Golden.expect(replayed, is: "conflicts-replay", replacing: names.replacements)
        }
    }
}
