import TestSupport
import Testing
import Tidemark

@testable import tidemark

/// `repair`: what would be kept, a new store, and one in the place of the damaged one.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct RepairCommandTests {
    let tool: CommandLineTool
    let names: FixtureNames

    init() throws {
        tool = try CommandLineTool()
        names = try FixtureStore.make(in: tool.directory.path)
    }

    private func damageSegment() throws {
        let name = try #require(Files.list(names.store).first { $0.hasSuffix(".seg") })
        let path = "\(names.store)/\(name)"
        try Files.overwrite([try Files.read(path)[80 + 40] ^ 0x10], in: path, at: 80 + 40)
    }

    @Test func aWholeStoreLosesNothing() async throws {
        try await expectUnchanged(names.store) {
            let plan = try await tool.succeed("repair", names.store).text
            expectSafeForTerminal(plan)
            try Golden.expect(plan, is: "repair-whole", replacing: names.replacements)
        }
        let target = tool.path("new")
        try await tool.succeed("repair", names.store, "--to", target)
        for dataset in ["stock", "recipes", "prices", "photos"] {
            let wanted = try await tool.succeed("export", names.store, dataset).text
            let found = try await tool.succeed("export", target, dataset).text
            #expect(found == wanted, "\(dataset)")
        }
        try await tool.succeed("verify", target)
    }

    @Test func thePlanComesFirst() async throws {
        try damageSegment()
        try await expectUnchanged(names.store) {
            let plan = try await tool.run("repair", names.store)
            expectFailure(plan, .damage, "if the store is repaired")
            expectSafeForTerminal(plan.text)
            try Golden.expect(plan.text, is: "repair-plan", replacing: names.replacements)
            let lines = try await tool.run("repair", names.store, "--json")
            try Golden.expect(lines.text, is: "repair-plan-json", replacing: names.replacements)
            #expect(try lines.objects().last?["isDryRun"] as? Bool == true)
        }
        #expect(try Files.list(tool.directory.path).filter { $0.hasPrefix("store") } == ["store"])
    }

    @Test func intoANewStore() async throws {
        try damageSegment()
        let plan = try await tool.run("repair", names.store, "--json").objects()
        let target = tool.path("new")
        let done = try await expectUnchanged(names.store) {
            try await tool.run("repair", names.store, "--to", target, "--json")
        }
        expectFailure(done, .damage, "sync the new store")
        let objects = try done.objects()
        for kind in ["dataset", "loss"] {
            let planned = plan.filter { $0["kind"] as? String == kind }
            let found = objects.filter { $0["kind"] as? String == kind }
            #expect("\(planned.count)" == "\(found.count)", "\(kind)")
        }
        #expect(objects.last?["store"] as? String == target)
        try await tool.succeed("verify", target)
        // What came last lies in a log, which is whole.
        #expect(try await tool.succeed("get", target, "stock", "flour").text == "21 sacks")
        expectFailure(
            try await tool.run("repair", names.store, "--to", target), .usage, "not empty")
    }

    @Test func inTheSamePlace() async throws {
        try damageSegment()
        let before = try Files.contents(names.store)
        let done = try await tool.run("repair", names.store, "--in-place")
        #expect(done.status == CommandStatus.damage.rawValue)
        #expect(done.text.contains("the old one   \(names.store).damaged\n"))
        // Nothing of the damaged store is gone; the lock file is new.
        var kept = try Files.contents("\(names.store).damaged")
        kept["LOCK"] = before["LOCK"]
        #expect(kept == before)
        try await tool.succeed("verify", names.store)
        #expect(try await tool.succeed("get", names.store, "stock", "flour").text == "21 sacks")
        try await tool.succeed("put", names.store, "stock", "flour", "20 sacks")
        // Once more, which loses nothing, and keeps both old ones.
        try await tool.succeed("repair", names.store, "--in-place")
        let left = try Files.list(tool.directory.path).filter { $0.hasPrefix("store") }
        #expect(left == ["store", "store.damaged", "store.damaged-2"])
        #expect(try await tool.succeed("get", names.store, "stock", "flour").text == "20 sacks")
    }

    /// The one that is repaired changes its name, and not a symbolic link to it.
    @Test(arguments: [
        "cd store; $tidemark repair . --in-place", "$tidemark repair store/ --in-place",
        "ln -s store link; $tidemark repair link --in-place; s=$?; test -L link && exit $s",
    ])
    func inTheSamePlaceByAnotherName(script: String) async throws {
        try damageSegment()
        let before = try Files.list(names.store)
        let done = try await tool.shell(script)
        #expect(done.status == CommandStatus.damage.rawValue, "\(done.errors)")
        let left = try Files.list(tool.directory.path).filter { $0.hasPrefix("store") }
        #expect(left == ["store", "store.damaged"])
        #expect(try Set(Files.list("\(names.store).damaged")) == Set(before + ["LOCK"]))
        try await tool.succeed("verify", names.store)
    }

    /// Each record is a block of the log. The first has what all of them refer to; one in the
    /// middle costs itself alone, and what stands behind it keeps its version.
    @Test func aDamagedLog() async throws {
        let path = tool.path("logged")
        let store = try Store.open(at: path)
        for key in ["a", "b", "c", "d"] { try store.dataset("d").put("value \(key)", for: key) }
        try store.close()
        let log = try await tool.succeed("log", path, "--json").objects()
        let hit = try #require(log.first { $0["key"] as? String == "c" })
        let file = "\(path)/\(try #require(hit["segment"] as? String))"
        let offset = try #require(hit["offset"] as? Int) + 26
        try Files.overwrite([try Files.read(file)[offset] ^ 0x10], in: file, at: offset)
        let found = try await tool.run("verify", path, "--json").objects()
        #expect(found.filter { $0["kind"] as? String == "damage" }.count == 1)
        #expect(found.first?["offset"] as? Int == hit["offset"] as? Int)
        #expect(try await tool.run("repair", path, "--in-place").status == 2)
        let records = try await tool.succeed("scan", path, "d", "--json").objects()
        #expect(records.map { $0["key"] as? String } == ["a", "b", "d"])
        func counters(_ objects: [[String: Any]]) -> [Int?] {
            objects.map { ($0["dot"] as? [String: Any])?["counter"] as? Int }
        }
        let kept = log.filter { $0["operation"] as? String == "put" && $0["key"] as? String != "c" }
        #expect(counters(records) == counters(kept))
        #expect(records.map { $0["author"] as? String } == kept.map { $0["author"] as? String })
    }

    @Test func aStoreThatIsWritten() async throws {
        let writer = try Store.open(at: names.store)
        defer { try? writer.close() }
        for more in [[], ["--in-place"], ["--to", tool.path("new")]] {
            let running = try RunningCommand(
                try CommandLineTool.binary(), ["repair", names.store] + more, in: tool.directory)
            expectFailure(try await running.outcome(), .busy)
        }
        #expect(!Files.exists(tool.path("new")))
    }

    /// A file that never gives a byte keeps the command waiting for as long as the test likes.
    @Test func aSignalLeavesNothingBehind() async throws {
        _ = try await tool.shell("mkfifo waits.seg")
        let running = try RunningCommand(
            try CommandLineTool.binary(),
            ["salvage", tool.path("waits.seg"), "--to", tool.path("saved")], in: tool.directory)
        try await eventually("under way") {
            try Files.list(tool.directory.path).contains { $0.hasPrefix("saved.partial-") }
        }
        running.terminate()
        let outcome = try await running.outcome()
        #expect(outcome.status == 128 + 15)
        #expect(outcome.errors == "tidemark: stopped by a signal; nothing was left behind\n")
        let left = try Files.list(tool.directory.path).filter { $0.hasPrefix("saved") }
        #expect(left.isEmpty, "\(left)")
    }

    @Test func wrongCommandLines() async throws {
        let both = try await tool.run("repair", names.store, "--in-place", "--to", "x")
        expectFailure(both, .usage, "exclude")
        let empty = tool.path("empty")
        try Files.createDirectory(empty)
        for more in [[], ["--in-place"], ["--to", tool.path("new")]] {
            let running = try RunningCommand(
                try CommandLineTool.binary(), ["repair", empty] + more, in: tool.directory)
            expectFailure(try await running.outcome(), .noInput, "no file of a store")
        }
        #expect(try Files.list(empty).isEmpty)
        #expect(!Files.exists(tool.path("new")))
        let help = try await tool.succeed("repair", "--help").text
        #expect(help.contains("EXAMPLES:"))
        expectSafeForTerminal(help)
    }
}
