import Glibc
import TestSupport
import Testing

@testable import tidemark

/// Where `backup`, `restore`, `repair --to` and `salvage --to` put what they make.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct TargetDirectoryTests {
    let tool: CommandLineTool
    let names: FixtureNames
    let empty: String

    static let kinds = ["backup", "restore", "restore --at", "repair", "salvage"]

    init() throws {
        tool = try CommandLineTool()
        names = try FixtureStore.make(in: tool.directory.path)
        empty = tool.path("empty")
        try Files.createDirectory(empty)
    }

    private func words(_ kind: String, _ target: String) throws -> [String] {
        switch kind {
        case "backup": return ["backup", names.store, target]
        case "restore": return ["restore", names.store, "--to", target]
        case "restore --at":
            return ["restore", names.store, "--to", target, "--at", "2026-03-02T06:20:00Z"]
        case "repair": return ["repair", names.store, "--to", target]
        default:
            let segment = try #require(Files.list(names.store).first { $0.hasSuffix(".seg") })
            return ["salvage", "\(names.store)/\(segment)", "--to", target]
        }
    }

    private func run(_ kind: String, _ target: String) async throws -> Outcome {
        let running = try RunningCommand(
            try CommandLineTool.binary(), try words(kind, target), in: tool.directory)
        return try await running.outcome()
    }

    private func inode(_ path: String) throws -> ino_t {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else {
            throw UnexpectedOutput(description: "nothing at \(path)")
        }
        return status.st_ino
    }

    private func leftovers() throws -> [String] {
        try (Files.list(tool.directory.path) + Files.list(empty)).filter { $0.contains(".partial") }
    }

    /// It may be a mount point, or lie where nothing can be renamed.
    @Test(arguments: kinds) func anEmptyDirectoryStaysTheSameOne(kind: String) async throws {
        let before = try inode(empty)
        let outcome = try await run(kind, empty)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(try inode(empty) == before)
        #expect(try leftovers().isEmpty)
        try await tool.succeed("verify", empty)
        let missing = tool.path("missing")
        #expect(try await run(kind, missing).status == 0)
        #expect(try Files.list(missing).sorted() == Files.list(empty).sorted())
        expectFailure(
            try await run(kind == "backup" ? "restore" : kind, empty), .usage, "not empty")
        // An earlier backup is renewed.
        if kind == "backup" { #expect(try await run(kind, empty).status == 0) }
    }

    @Test(arguments: kinds) func aDirectoryByOtherNames(kind: String) async throws {
        let here = try words(kind, ".").joined(separator: " ")
        let link = try words(kind, "link").joined(separator: " ")
        let slash = try words(kind, "empty/").joined(separator: " ")
        for script in [
            "cd empty; $tidemark \(here)", "ln -s empty link; $tidemark \(link)",
            "$tidemark \(slash)", "rmdir empty; $tidemark \(slash)",
        ] {
            let outcome = try await tool.shell(script)
            #expect(outcome.status == 0, "\(script): \(outcome.errors)")
            try await tool.succeed("verify", empty)
            #expect(try leftovers().isEmpty, "\(script)")
            Files.removeTree(empty)
            try Files.createDirectory(empty)
        }
    }

    @Test(arguments: kinds) func whatIsNoDirectoryIsNoTarget(kind: String) async throws {
        let file = try tool.file("file", "dear diary")
        expectFailure(try await run(kind, file), .usage, "no directory")
        _ = try await tool.shell("ln -s nothing link")
        expectFailure(try await run(kind, tool.path("link")), .usage, "leads nowhere")
        expectFailure(try await run(kind, ""), .usage)
        expectFailure(try await run(kind, tool.path("none/at/all")), .noInput)
        #expect(try leftovers().isEmpty)
    }

    @Test func aFailureLeavesAnEmptyDirectoryEmpty() async throws {
        let file = try #require(Files.list(names.store).first { $0.hasSuffix(".val") })
        let outcome = try await tool.run("salvage", "\(names.store)/\(file)", "--to", empty)
        expectFailure(outcome, .noInput, "no records")
        #expect(try Files.list(empty).isEmpty)
    }

    /// A file that never gives a byte keeps the command waiting for as long as the test likes.
    @Test func aSignalLeavesAnEmptyDirectoryEmpty() async throws {
        _ = try await tool.shell("mkfifo waits.seg")
        let running = try RunningCommand(
            try CommandLineTool.binary(), ["salvage", tool.path("waits.seg"), "--to", empty],
            in: tool.directory)
        try await eventually("under way") { try Files.list(empty) == [".partial"] }
        running.terminate()
        let outcome = try await running.outcome()
        #expect(outcome.status == 128 + 15)
        #expect(try Files.list(empty).isEmpty)
    }

    /// As a kill leaves it that no program can answer, in the midst of the work or of moving files
    /// out of the directory in which they were made.
    @Test(arguments: [false, true]) func whatAKillLeft(isMoving: Bool) async throws {
        try Files.createDirectory("\(empty)/.partial")
        try Files.write([1], to: "\(empty)/.partial/MANIFEST")
        if isMoving { try Files.write([1], to: "\(empty)/000001.seg") }
        for kind in Self.kinds {
            expectFailure(try await run(kind, empty), .usage, ".partial")
        }
        expectFailure(
            try await tool.run("put", empty, "stock", "flour", "1"), .noInput, ".partial")
        expectFailure(try await tool.run("scan", empty, "stock"), .noInput)
        #expect(try Files.list(empty).count == (isMoving ? 2 : 1))
    }

    @Test(arguments: ["damaged", "partial-1"]) func whatStandsBeside(ending: String) async throws {
        let path = tool.path("s")
        try Files.createDirectory("\(path).\(ending)")
        expectFailure(
            try await tool.run("put", path, "stock", "flour", "1"), .noInput, "s.\(ending)")
        #expect(!Files.exists(path))
        // Who restores a backup there means it.
        #expect(try await run("restore --at", path).status == 0)
        try await tool.succeed("put", path, "stock", "flour", "1")
    }
}
