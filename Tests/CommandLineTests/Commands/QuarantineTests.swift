import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import tidemark

/// What an operator does about a clock that was ahead.
@Suite struct QuarantineTests {
    let tool: CommandLineTool
    let store: String
    private let peer = ReplicaID(high: 0xABCD_EF01_2345_6789, low: 7)

    init() throws {
        tool = try CommandLineTool()
        store = tool.path("store")
    }

    /// Has the store hold writes of a replica whose clock is a day ahead.
    private func holdWrites(_ count: UInt64) async throws {
        let path = tool.path("ahead")
        let ahead = try Store.open(
            at: path, options: StoreOptions(clockAheadMax: .seconds(1_000_000)))
        let dataset = try ahead.dataset("notes")
        let tomorrow = SystemStorage().wallClockMilliseconds() + 86_400_000
        var batch = ReplicationBatch()
        for counter in 1...count {
            let version = Version(
                dot: Dot(replica: peer, counter: counter), vector: VersionVector(),
                time: HybridTime(milliseconds: tomorrow, counter: UInt16(counter)),
                author: "kiosk\u{1B}[2J")
            batch.writes.append(
                ReplicatedWrite(
                    key: Array("key \(counter)".utf8),
                    content: .adopt(
                        value: counter == 3 ? nil : Array("value".utf8), version: version),
                    expected: nil))
        }
        batch.seen = VersionVector([Dot(replica: peer, counter: count)])
        let moved = try dataset.replicate(batch)
        try #require(moved.isEmpty)
        try ahead.close()
        let file = tool.path("notes.bundle")
        try await tool.succeed("bundle", "export", path, file, "--dataset", "notes")
        try await tool.succeed("put", store, "notes", "key 1", "mine")
        try await tool.succeed("bundle", "import", store, file)
    }

    @Test func whatIsHeldIsListed() async throws {
        try await holdWrites(3)
        #expect(try await tool.succeed("get", store, "notes", "key 1").text == "mine")
        let list = try await tool.succeed("quarantine", "list", store, "notes")
        expectSafeForTerminal(list.text)
        #expect(list.lines.count == 5)
        #expect(list.lines[4].contains("'tidemark quarantine release'"))
        #expect(list.lines[0].hasPrefix("WRITE"))
        #expect(list.lines[1].hasPrefix("abcdef01:1  "))
        #expect(list.lines[3].contains("deletes"))
        let objects = try await tool.succeed("quarantine", "list", store, "notes", "--json")
            .objects()
        #expect(objects.map { $0["key"] as? String } == ["key 1", "key 2", "key 3"])
        #expect(objects.allSatisfy { $0["dataset"] as? String == "notes" })
        let due = try #require(objects.first?["dueAt"] as? String)
        #expect(Timestamp.milliseconds(Array(due.utf8)) != nil)
    }

    @Test func oneIsReleasedAndOneDiscarded() async throws {
        try await holdWrites(3)
        let released = try await tool.succeed(
            "quarantine", "release", store, "notes", "abcdef01:1")
        #expect(released.text == "1 write released\n")
        #expect(try await tool.succeed("get", store, "notes", "key 1").text == "value")
        let discarded = try await tool.succeed(
            "quarantine", "discard", store, "notes", peer.description + ":2")
        #expect(discarded.text == "1 write discarded\n")
        #expect(try await tool.run("get", store, "notes", "key 2").status == 1)
        let left = try await tool.succeed("quarantine", "list", store, "notes", "--json").objects()
        #expect(left.map { $0["key"] as? String } == ["key 3"])
        let rest = try await tool.succeed("quarantine", "release", store, "notes", "--all")
        #expect(rest.text == "1 write released\n")
        #expect(
            try await tool.succeed("quarantine", "list", store, "notes").text
                == "no write of the dataset is held\n")
    }

    @Test func whatIsNotHeld() async throws {
        try await holdWrites(1)
        let release = ["quarantine", "release", store, "notes"]
        let cases: [(arguments: [String], status: CommandStatus, word: String)] = [
            (release, .usage, "--all"),
            (release + ["abcdef01:1", "--all"], .usage, "--all"),
            (release + ["abc:1"], .usage, "names no write"),
            (release + ["abcdef01:x"], .usage, "names no write"),
            (release + ["abcdef01:2"], .negative, "no write abcdef01:2"),
            (["quarantine", "list", store, "none"], .negative, "none"),
        ]
        for (arguments, status, word) in cases {
            let running = try RunningCommand(
                try CommandLineTool.binary(), arguments, in: tool.directory)
            expectFailure(try await running.outcome(), status, word)
        }
        #expect(try await tool.succeed("get", store, "notes", "key 1").text == "mine")
    }
}
