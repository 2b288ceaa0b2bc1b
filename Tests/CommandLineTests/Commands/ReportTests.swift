import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import tidemark

/// `report`: a page with plots.
@Suite struct ReportTests {
    let tool: CommandLineTool

    init() throws {
        tool = try CommandLineTool()
    }

    private func page(_ path: String) throws -> String {
        String(decoding: try Files.read(path), as: UTF8.self)
    }

    /// The page is well-formed as far as its own elements go: each is closed, in its order.
    private func expectWellFormed(_ page: String) throws {
        var open: [Substring] = []
        let void: Set<Substring> = ["meta", "!DOCTYPE"]
        for match in page.matches(of: #/<(/?)([!A-Za-z0-9]+)([^<>]*)>/#) {
            let (_, slash, name, rest) = match.output
            if void.contains(name) || rest.hasSuffix("/") { continue }
            if slash.isEmpty {
                open.append(name)
            } else {
                #expect(open.popLast() == name)
            }
        }
        #expect(open.isEmpty, "\(open)")
    }

    @Test func ofTheFixture() async throws {
        let names = try FixtureStore.make(in: tool.directory.path)
        let file = tool.path("report.html")
        try await expectUnchanged(names.store) {
            let outcome = try await tool.succeed("report", names.store, "-o", file)
            expectSafeForTerminal(outcome.text)
            #expect(outcome.lines.count == 1)
        }
        let page = try page(file)
        try expectWellFormed(page)
        for title in [
            "Space by file", "Space by dataset", "Space by segment and dataset",
            "Writes over time", "Changes exchanged", "Who has seen whose writes", "Key sizes",
            "Value sizes", "Conflicts over time",
        ] {
            #expect(page.contains("<h2>\(title)</h2>"), "\(title)")
        }
        for dataset in ["stock", "recipes", "prices", "photos"] {
            #expect(page.contains(">\(dataset)<"), "\(dataset)")
        }
        for column in ["stock", "photos", "others"] {
            #expect(page.contains("<title>\(column)</title>"), "\(column)")
        }
        #expect(page.contains(FixtureNames.shop.description))
        #expect(page.contains("\(FixtureNames.shop.shortDescription) (own)"))
        #expect(page.contains(">\(FixtureNames.kiosk.shortDescription)<"))
        #expect(page.contains("Sizes and times are of all"))
        #expect(page.contains("prefers-color-scheme: dark"))
        #expect(try Files.list(tool.directory.path).filter { $0.contains(".tmp-") }.isEmpty)
    }

    /// Nothing is fetched, nothing runs.
    @Test func thePageStandsAlone() async throws {
        let names = try FixtureStore.make(in: tool.directory.path)
        let file = tool.path("report.html")
        let json = try await tool.succeed("report", names.store, "-o", file, "--json")
        #expect(try json.objects().first?["isWhole"] as? Bool == true)
        let page = try page(file).lowercased()
        for word in [
            "<script", "javascript:", "http://", "https://", "src=", "href=", "url(", "@import",
        ] {
            #expect(!page.contains(word), "\(word)")
        }
        #expect(page.contains("default-src 'none'"))
    }

    @Test func hostileNamesAreText() async throws {
        let name = "<b onclick=x>&\"'\u{202E}"
        let store = tool.path(name)
        try await tool.succeed("put", store, "d", "<script>", "</svg><script>")
        let file = tool.path("report.html")
        try await tool.succeed("report", store, "-o", file)
        let page = try page(file)
        try expectWellFormed(page)
        #expect(!page.contains("<b ") && !page.contains("<script") && !page.contains("\u{202E}"))
        #expect(page.contains("&lt;b onclick=x&gt;&amp;&quot;&#39;\\u{202E}"))
    }

    @Test func anEmptyStore() async throws {
        let store = tool.path("empty")
        try Store.open(at: store, options: StoreOptions()).close()
        let file = tool.path("report.html")
        try await tool.succeed("report", store, "-o", file)
        try expectWellFormed(try page(file))
    }

    @Test func anEarlierPageIsReplacedOrKept() async throws {
        let store = tool.path("store")
        let file = try tool.file("report.html", "what was there")
        expectFailure(try await tool.run("report", store, "-o", file), .noInput, "no store")
        #expect(try page(file) == "what was there")
        try await tool.succeed("put", store, "d", "k", "v")
        try await tool.succeed("report", store, "-o", file)
        #expect(try page(file).hasPrefix("<!DOCTYPE html>\n"))
        expectFailure(
            try await tool.run("report", store, "-o", tool.path("none/report.html")), .noInput,
            "check the directory")
        try Files.createDirectory(tool.path("directory"))
        expectFailure(
            try await tool.run("report", store, "-o", tool.path("directory")), .inputOutput)
        #expect(try Files.list(tool.directory.path).filter { $0.contains(".tmp-") }.isEmpty)
    }

    @Test func besideAWriter() async throws {
        let path = tool.path("store")
        let store = try Store.open(at: path, options: StoreOptions(durability: .process))
        try store.dataset("fruits").put("green", for: "apple")
        let file = tool.path("report.html")
        try await tool.succeed("report", path, "-o", file)
        #expect(try page(file).contains(">fruits<"))
        try store.close()
    }
}

/// What plots are made of.
@Suite struct ReportPartsTests {
    @Test func sizesFallIntoClasses() {
        var histogram = SizeHistogram()
        for size in [4, 5, 7, 8, 1_000, 1_024] { histogram.add(size, weight: 2) }
        #expect(histogram.classes.first?.least == 4)
        #expect(histogram.classes.first?.weight == 6)
        #expect(histogram.classes.map(\.least) == (2...10).map { 1 << $0 })
        #expect(histogram.classes.last?.weight == 2)
        #expect(histogram.total == 12)
        histogram.add(0, weight: 1)
        #expect(histogram.classes.first?.least == 0)
    }

    @Test func momentsFallIntoStretches() {
        let now: UInt64 = 1_000_000
        let timeline = Timeline(
            [
                (name: "a", moments: [(at: 0, weight: 1), (at: 600_000, weight: 2)]),
                (name: "b", moments: [(at: 599_999, weight: 3), (at: now + 1, weight: 5)]),
            ], now: now)
        #expect(timeline.start == 0 && timeline.end > 600_000)
        #expect(timeline.series[0].bins.first == 1 && timeline.series[0].bins.last == 2)
        #expect(timeline.series[1].bins.reduce(0, +) == 3)
        #expect(timeline.futureWeight == 5)
        #expect(Timeline([], now: now).isEmpty)
        let one = Timeline([(name: "a", moments: [(at: 7, weight: 1)])], now: now)
        #expect(one.series[0].bins.first == 1 && one.stepMilliseconds == 1)
    }

    /// What has no row or no column of its own is in that of the others: all bytes, each once.
    @Test func segmentsAndDatasetsCross() throws {
        let directory = try TemporaryDirectory()
        let store = try Store.open(at: directory["store"], options: StoreOptions())
        let names = ["small", "large", "least"]
        for (name, count) in zip(names, [20, 200, 1]) {
            let dataset = try store.dataset(name)
            for number in 0..<count { try dataset.put("some value", for: "key \(number)") }
        }
        try store.compact()
        try store.dataset("small").put("new", for: "key 0")
        let survey = try store.spaceSurvey(heaviestMax: 2)
        let crossing = SpaceCrossing(survey, rowsMax: 1)
        #expect(crossing.columns == ["large", "small", "others"])
        #expect(crossing.rows.count == 2 && crossing.rows.last?.label == "others (1)")
        #expect(!crossing.hasUnknown)
        let all = crossing.rows.flatMap(\.cells).reduce(0) { $0 + $1.all }
        #expect(all == survey.segments.reduce(0) { $0 + $1.contentBytes })
        let sealed = try #require(crossing.rows.first)
        #expect(sealed.cells[0].dead == 0 && sealed.cells[0].live > 200 * 10)
        // Its first key was overwritten.
        #expect(sealed.cells[1].dead == UInt64("key 0".utf8.count + "some value".utf8.count))
        #expect(SpaceCrossing(try store.spaceSurvey(), rowsMax: 1).rows.isEmpty)
        try store.close()
    }

    @Test func textIsEscaped() {
        #expect(
            HTMLText.escaped("<a href='x'>&\"\n\u{202E}")
                == #"&lt;a href=&#39;x&#39;&gt;&amp;&quot;\n\u{202E}"#)
        let long = String(repeating: "<", count: 100)
        #expect(HTMLText.escaped(long, charactersMax: 3) == "&lt;&lt;…")
    }
}
