import Glibc
import TestSupport
import Testing
import Tidemark
import TidemarkHub

@testable import tidemark

/// `backup` and `restore`.
struct BackupRestoreTests {
    let tool: CommandLineTool
    let names: FixtureNames
    private static let datasets = ["stock", "recipes", "prices", "photos", "odd"]

    init() throws {
        tool = try CommandLineTool()
        names = try FixtureStore.make(in: tool.directory.path)
    }

    private func exported(_ store: String) async throws -> [String] {
        var texts: [String] = []
        for dataset in Self.datasets {
            texts.append(try await tool.succeed("export", store, dataset).text)
        }
        return texts
    }

    private var replacements: [String: String] {
        names.replacements.merging([
            tool.path("backup"): "BACKUP", tool.path("restored"): "RESTORED",
        ]) { first, _ in first }
    }

    @Test func thereAndBack() async throws {
        let (backup, restored) = (tool.path("backup"), tool.path("restored"))
        let wanted = try await exported(names.store)
        try await expectUnchanged(names.store) {
            let made = try await tool.succeed("backup", names.store, backup, "--copy").text
            expectSafeForTerminal(made)
            try Golden.expect(made, is: "backup", replacing: replacements)
        }
        try await tool.succeed("verify", backup)
        let text = try await tool.succeed("restore", backup, "--to", restored).text
        try Golden.expect(text, is: "restore", replacing: replacements)
        #expect(try await exported(restored) == wanted)
        try await tool.succeed("put", restored, "stock", "flour", "19 sacks")
        let replicas = try await [names.store, restored].asyncMap { store in
            try await tool.succeed("stats", store, "--json").objects().first?["replica"] as? String
        }
        #expect(replicas[0] != replicas[1])
        expectFailure(
            try await tool.run("restore", backup, "--to", restored), .usage, "not empty")
        let left = try Files.list(tool.directory.path).filter { $0.contains(".partial") }
        #expect(left.isEmpty)
    }

    /// The second one takes what is new, and is made while another process writes.
    @Test func renewedBesideAWriter() async throws {
        let backup = tool.path("backup")
        let writer = try Store.open(at: names.store)
        defer { try? writer.close() }
        let first = try await tool.succeed("backup", names.store, backup, "--json").objects()
        #expect(first[0]["filesKept"] as? Int == 0)
        try writer.dataset("stock").put("18 sacks", for: "flour")
        let second = try await tool.succeed("backup", names.store, backup, "--json").objects()
        let kept = try #require(second[0]["filesKept"] as? Int)
        #expect(kept > 0 && second[0]["filesLinked"] as? Int == 0)
        #expect(try await tool.succeed("get", backup, "stock", "flour").text == "18 sacks")
        try await tool.succeed("verify", backup)
    }

    /// The audit file of a hub's console, which is no part of the store, goes there and back.
    @Test func withTheAuditFile() async throws {
        let (backup, restored, past) = (
            tool.path("backup"), tool.path("restored"), tool.path("past")
        )
        let name = "console-audit.jsonl"
        #expect(HubFiles.consoleAudit == name)
        let first = Array("{\"id\":\"1\"}\n".utf8)
        try Files.write(first, to: "\(names.store)/\(name)")
        try await expectUnchanged(names.store) {
            let made = try await tool.succeed("backup", names.store, backup).lines
            #expect(made.contains("audit   \(first.count) B of \(name)"))
        }
        #expect(try Files.read("\(backup)/\(name)") == first)
        #expect(try mode("\(backup)/\(name)") == 0o600)
        // Longer than what is copied at once.
        let second = first + [UInt8](repeating: UInt8(ascii: "x"), count: 200_000)
        try Files.write(second, to: "\(names.store)/\(name)")
        let renewed = try await tool.succeed("backup", names.store, backup, "--json").objects()
        #expect(renewed[0]["auditBytes"] as? Int == second.count)
        #expect(try Files.read("\(backup)/\(name)") == second)
        try await tool.succeed("verify", backup)
        let made = try await tool.succeed("restore", backup, "--to", restored, "--json").objects()
        #expect(made[0]["auditBytes"] as? Int == second.count)
        try await tool.succeed(
            "restore", backup, "--to", past, "--at", "2026-03-02T06:20:00Z")
        for store in [restored, past] {
            #expect(try Files.read("\(store)/\(name)") == second)
            #expect(try mode("\(store)/\(name)") == 0o600)
            #expect(try Files.list(store).filter { $0.hasSuffix(".new") }.isEmpty)
        }
        // One that was moved away is not missed, and not taken from the backup.
        try Files.remove("\(names.store)/\(name)")
        let last = try await tool.succeed("backup", names.store, backup, "--json").objects()
        #expect(last[0]["auditBytes"] == nil)
        #expect(try Files.read("\(backup)/\(name)") == second)
    }

    private func mode(_ path: String) throws -> mode_t {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else {
            throw UnexpectedOutput(description: "no file at \(path)")
        }
        return status.st_mode & 0o777
    }

    @Test func aPastMoment() async throws {
        let restored = tool.path("restored")
        try await expectUnchanged(names.store) {
            let text = try await tool.succeed(
                "restore", names.store, "--to", restored, "--at", "2026-03-02T06:20:00Z"
            ).text
            expectSafeForTerminal(text)
            try Golden.expect(text, is: "restore-at", replacing: replacements)
        }
        #expect(try await tool.succeed("get", restored, "stock", "flour").text == "25 sacks")
        #expect(try await tool.succeed("get", restored, "stock", "salt").text == "8 kg")
        let datasets = try await tool.succeed("datasets", restored, "--json").objects()
        let found = datasets.compactMap { $0["dataset"] as? String }
        #expect(!found.contains("photos") && found.contains("stock"))
        try await tool.succeed("verify", restored)
        try await tool.succeed("put", restored, "stock", "flour", "24 sacks")
        let lines = try await tool.succeed(
            "restore", names.store, "--to", tool.path("other"), "--at", "2026-03-02T06:20:00Z",
            "--json")
        #expect(try lines.objects().last?["kind"] as? String == "summary")
    }

    @Test func wrongCommandLines() async throws {
        let target = tool.path("restored")
        for (time, status) in [
            ("yesterday", CommandStatus.usage), ("2026-03-02", .usage),
            ("9999-01-01T00:00:00Z", .usage),
        ] {
            let outcome = try await tool.run("restore", names.store, "--to", target, "--at", time)
            expectFailure(outcome, status)
        }
        expectFailure(try await tool.run("restore", names.store), .usage, "--to")
        let none = tool.path("none")
        expectFailure(try await tool.run("restore", none, "--to", target), .noInput, "no store")
        expectFailure(try await tool.run("backup", none, target), .noInput, "no store")
        #expect(!Files.exists(target))
        let full = tool.path("full")
        try Files.createDirectory(full)
        try Files.write([1], to: "\(full)/mine")
        expectFailure(try await tool.run("backup", names.store, full), .usage, "no backup")
        #expect(try Files.list(full) == ["mine"])
        for command in ["backup", "restore"] {
            let help = try await tool.succeed(command, "--help").text
            #expect(help.contains("EXAMPLES:"))
            expectSafeForTerminal(help)
        }
    }
}

extension Array {
    fileprivate func asyncMap<Result>(
        _ body: (Element) async throws -> Result
    ) async rethrows -> [Result] {
        var results: [Result] = []
        for element in self { results.append(try await body(element)) }
        return results
    }
}
