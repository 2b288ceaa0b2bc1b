import TestSupport
import Testing
import Tidemark

@testable import tidemark

/// `get --at` and `scan --at`: what was there once.
@Suite struct PastTests {
    let tool: CommandLineTool
    let store: String

    init() throws {
        tool = try CommandLineTool()
        store = tool.path("store")
    }

    /// Writes apple twice and pear once, and deletes pear: the counts 1...4. Returns the times at
    /// which each change was made.
    private func fill() throws -> [HybridTime] {
        let opened = try Store.open(
            at: store, options: StoreOptions(durability: .process, historyVersions: 10))
        let fruits = try opened.dataset("fruits")
        try fruits.put("green", for: "apple")
        try fruits.put("yellow", for: "pear")
        try fruits.put("red", for: "apple")
        try fruits.delete("pear")
        var times: [SyncCount: HybridTime] = [:]
        for key in ["apple", "pear"] {
            for version in try fruits.history(of: Array(key.utf8)) {
                times[version.syncCount] = version.version.time
            }
        }
        try opened.close()
        return times.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Whether a time as it is printed means just that write: without a counter it stands for the
    /// whole millisecond, in which there may have been more writes.
    private func isExact(_ index: Int, of times: [HybridTime]) -> Bool {
        guard times[index].counter == 0, index + 1 < times.count else { return true }
        return times[index + 1].milliseconds > times[index].milliseconds
    }

    @Test func aValueAtACountAndAtATime() async throws {
        let times = try fill()
        try #require(times.count == 4)
        let before = try Files.contents(store)
        for (index, value) in ["green", "green", "red", "red"].enumerated() {
            let moments = ["\(index + 1)"] + (isExact(index, of: times) ? ["\(times[index])"] : [])
            for moment in moments {
                let got = try await tool.succeed("get", store, "fruits", "apple", "--at", moment)
                #expect(got.text == value, "at \(moment)")
            }
        }
        let pear = try await tool.succeed("get", store, "fruits", "pear", "--at", "3", "--json")
        #expect(try pear.objects().first?["value"] as? String == "yellow")
        expectFailure(
            try await tool.run("get", store, "fruits", "pear", "--at", "4"), .negative, "pear",
            "at that moment")
        #expect(try Files.contents(store) == before)
    }

    @Test func theRecordsOfAMoment() async throws {
        _ = try fill()
        let before = try Files.contents(store)
        let then = try await tool.succeed("scan", store, "fruits", "--at", "2")
        #expect(
            then.text == """
                KEY    BYTES  VALUE
                apple      5  green
                pear       6  yellow

                """)
        let last = try await tool.succeed("scan", store, "fruits", "--at", "4", "--json")
        #expect(try last.objects().map { $0["key"] as? String } == ["apple"])
        let deleted = try await tool.succeed(
            "scan", store, "fruits", "--at", "4", "--deleted", "--reverse", "--json")
        #expect(try deleted.objects().map { $0["key"] as? String } == ["pear", "apple"])
        #expect(try Files.contents(store) == before)
    }

    @Test func momentsThatCannotBeRead() async throws {
        _ = try fill()
        expectFailure(try await tool.run("get", store, "fruits", "apple", "--at", "5"), .usage)
        expectFailure(
            try await tool.run("get", store, "fruits", "apple", "--at", "yesterday"), .usage, "--at"
        )
        expectFailure(
            try await tool.run("scan", store, "fruits", "--at", "9999-01-01T00:00:00Z"), .usage)
        try await tool.succeed("compact", store)
        expectFailure(
            try await tool.run("scan", store, "fruits", "--at", "1"), .negative, "fruits")
    }

    @Test(arguments: [
        ("17", PastMoment.syncCount(17)),
        ("1970-01-01T00:00:01Z", .milliseconds(1_000)),
        ("1970-01-01T00:00:01.002Z+3", .time(HybridTime(milliseconds: 1_002, counter: 3))),
    ])
    func momentsOnTheCommandLine(text: String, moment: PastMoment) {
        #expect(MomentArgument(argument: text)?.moment == moment)
    }

    @Test(arguments: [
        "", "now", "-1", "1970-01-01", "1970-01-01T00:00:01Z+", "1970-01-01T00:00:01Z+65536",
        "99999-01-01T00:00:00Z",
    ])
    func noMoments(text: String) {
        #expect(MomentArgument(argument: text) == nil)
    }

    @Test(
        arguments: [
            (0, "0 s"), (999, "0 s"), (59_999, "59 s"), (60_000, "1 min"), (7_200_000, "2 h"),
            (86_400_000 * 1_234, "1,234 d"),
        ] as [(UInt64, String)])
    func ages(milliseconds: UInt64, text: String) {
        #expect(Age.text(milliseconds: milliseconds) == text)
        #expect(Age.text(since: 5, now: 5 + milliseconds) == text)
    }

    @Test func ofTheFixture() async throws {
        let names = try FixtureStore.make(in: tool.directory.path)
        try await expectUnchanged(names.store) {
            for moment in ["2026-03-02T06:30:00Z", "2026-03-02T07:00:00Z"] {
                let stock = try await tool.succeed("scan", names.store, "stock", "--at", moment)
                let name = "scan-at-\(moment.dropFirst(11).prefix(2))"
                try Golden.expect(stock.text, is: name, replacing: names.replacements)
            }
        }
    }
}
