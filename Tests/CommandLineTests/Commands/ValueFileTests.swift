import TestSupport
import Testing
import Tidemark

@testable import tidemark

/// What the commands tell of values that lie apart.
@Suite struct ValueFileTests {
    let tool: CommandLineTool
    let path: String

    /// Ten values of 10,000 bytes in a file, of which three are needless since the last compaction.
    init() throws {
        tool = try CommandLineTool()
        path = tool.path("store")
        let store = try Store.open(
            at: path, options: StoreOptions(compactsAutomatically: false, compression: .none))
        let photos = try store.dataset("photos")
        for number in 0..<10 {
            try photos.put([UInt8](repeating: 7, count: 10_000), for: [UInt8(0x30 + number)])
        }
        try store.compact()
        for number in 0..<3 { try photos.put([1], for: [UInt8(0x30 + number)]) }
        try store.compact()
        try store.close()
    }

    @Test func statsTellHowMuchOfEachIsUsed() async throws {
        let objects = try await tool.succeed("stats", path, "--json").objects()
        #expect(objects[0]["valueFiles"] as? Int == 1)
        let segments = objects.filter { $0["kind"] as? String == "segment" }
        let files = objects.filter { $0["kind"] as? String == "valueFile" }
        #expect(files.count == 1)
        let file = try #require(files.first)
        let name = try #require(file["valueFile"] as? String)
        // A header of 80 bytes, and one of 24 for each value, which fills up to 8.
        #expect(file["fileBytes"] as? Int == 80 + 10 * 10_024)
        #expect(try Files.read("\(path)/\(name)").count == 80 + 10 * 10_024)
        #expect(file["values"] as? Int == 7)
        #expect(file["usedBytes"] as? Int == 7 * 10_024)
        let bytes = (segments + files).compactMap { $0["fileBytes"] as? Int }.reduce(0, +)
        #expect(objects[0]["fileBytes"] as? Int == bytes)

        let text = try await tool.succeed("stats", path).text
        let row = try Regex(#"VALUE FILE +FILE +VALUES +USED\n\#(name) +97.9 KiB +7 +68.5 KiB\n$"#)
        #expect(text.contains(row), "\(text)")
        #expect(text.contains(" segments and 1 value file\n"))
        expectSafeForTerminal(text)
    }

    @Test func compactCountsThem() async throws {
        let lines = try await tool.succeed("compact", path).lines
        let form = #/(?:before|after)\s+([0-9,]+) bytes in .* and 1 value file, .* on disk/#
        for line in lines.prefix(2) {
            let match = try #require(line.wholeMatch(of: form), "\(line)")
            let stored = try #require(Int(match.output.1.filter(\.isNumber)))
            #expect(stored > 7 * 10_024 && stored < 8 * 10_024)
        }
    }

    @Test func aStoreWithoutThemSaysNothing() async throws {
        let other = tool.path("other")
        try await tool.succeed("put", other, "d", "k", "v")
        let text = try await tool.succeed("stats", other).text
        #expect(!text.contains("VALUE FILE") && !text.contains("value file"))
        let objects = try await tool.succeed("stats", other, "--json").objects()
        #expect(objects[0]["valueFiles"] as? Int == 0)
        #expect(objects.allSatisfy { $0["kind"] as? String != "valueFile" })
    }
}
