import TestSupport
import Testing
import Tidemark

@testable import tidemark

/// `inspect`: the store at a glance.
struct InspectTests {
    let tool: CommandLineTool
    let names: FixtureNames

    init() throws {
        tool = try CommandLineTool()
        names = try FixtureStore.make(in: tool.directory.path)
    }

    @Test func ofTheFixture() async throws {
        try await expectUnchanged(names.store) {
            let text = try await tool.succeed("inspect", names.store).text
            expectSafeForTerminal(text)
            try Golden.expect(text, is: "inspect", replacing: names.replacements)
            let lines = try await tool.succeed("inspect", names.store, "--json")
            try Golden.expect(lines.text, is: "inspect-json", replacing: names.replacements)
            #expect(Set(try lines.objects().compactMap { $0["kind"] as? String }).count == 5)
        }
    }

    /// Of a store small enough to be looked at as a whole every figure is that of a full count.
    @Test func smallStoresAreCountedExactly() async throws {
        let counted = try await tool.succeed("datasets", names.store, "--json").objects()
        let seen = try await tool.succeed("inspect", names.store, "--json").objects()
        #expect(seen[0]["isExact"] as? Bool == true)
        for dataset in counted {
            let name = try #require(dataset["dataset"] as? String)
            let row = try #require(seen.first { $0["dataset"] as? String == name })
            #expect(row["live"] as? Int == dataset["records"] as? Int, "\(name)")
            #expect(row["syncCount"] as? Int == dataset["syncCount"] as? Int, "\(name)")
        }
    }

    @Test func besideAWriter() async throws {
        let writer = try Store.open(at: names.store, options: StoreOptions())
        defer { try? writer.close() }
        try writer.dataset("stock").put("31 sacks", for: "flour")
        #expect(try await tool.succeed("inspect", names.store).text.contains("stock"))
    }

    @Test func largeStoresShowTheirLargestDatasets() async throws {
        let path = tool.path("many")
        let store = try Store.open(at: path, options: StoreOptions(durability: .memory))
        for number in 100..<130 {
            try store.dataset("d\(number)").put("value", for: "key \(number)")
        }
        try store.close()
        let text = try await tool.succeed("inspect", path).text
        #expect(text.contains("and 10 smaller datasets; --all shows them\n"))
        #expect(text.contains("no peers"))
        let all = try await tool.succeed("inspect", path, "--all").text
        #expect(all.contains("\nd129 ") && !all.contains("smaller"))
    }

    @Test func anEmptyStore() async throws {
        let path = tool.path("empty")
        try Store.open(at: path, options: StoreOptions()).close()
        let text = try await tool.succeed("inspect", path).text
        expectSafeForTerminal(text)
        #expect(text.contains("no peers"))
    }

    @Test func mapsTellHowMuchIsLive() {
        let cells = [(10, 0), (6, 4), (2, 8), (0, 10), (0, 0)].map { live, superseded in
            var cell = SpaceSurvey.Counts()
            cell.live = live
            cell.superseded = superseded
            return cell
        }
        #expect(InspectTables.map(of: cells) == "[#+-. ]")
    }
}
