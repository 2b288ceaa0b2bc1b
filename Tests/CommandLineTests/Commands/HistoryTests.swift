import Foundation
import TestSupport
import Testing
import Tidemark

@testable import tidemark

/// `history`: the graph of a key's versions, and the verdicts behind it.
struct HistoryTests {
    let tool: CommandLineTool
    let names: FixtureNames

    init() throws {
        tool = try CommandLineTool()
        names = try FixtureStore.make(in: tool.directory.path)
    }

    @Test(arguments: [
        ("stock", "flour"), ("stock", "yeast"), ("recipes", "bread"), ("prices", "bun"),
        ("photos", "shelf 2"), ("stock", "salt"),
    ])
    func ofTheFixture(dataset: String, key: String) async throws {
        try await expectUnchanged(names.store) {
            let text = try await tool.succeed("history", names.store, dataset, key).text
            expectSafeForTerminal(text)
            let name = "history-\(dataset)-\(key.replacing(" ", with: "-"))"
            try Golden.expect(text, is: name, replacing: names.replacements)
        }
    }

    @Test func inOtherForms() async throws {
        for form in ["--full", "--dot", "--svg", "--json"] {
            let text = try await tool.succeed("history", names.store, "stock", "flour", form).text
            try Golden.expect(text, is: "history-flour\(form.dropFirst())")
        }
    }

    /// Whoever had not seen the other's write shows as two lines that part and meet again.
    @Test func aLostUpdateShows() async throws {
        let objects = try await tool.succeed(
            "history", names.store, "stock", "flour", "--json"
        ).objects()
        let lost = try #require(objects.first { $0["value"] as? String == "40 sacks" })
        let won = try #require(objects.first { $0["value"] as? String == "22 sacks" })
        let phone = FixtureNames.phone.description
        #expect((won["dot"] as? [String: Any])?["replica"] as? String == phone)
        let loser = (lost["dot"] as? [String: Any])?["counter"] as? Int
        let overcome = won["wonOver"] as? [String: Int]
        #expect(overcome?[FixtureNames.shop.description] == loser)
        let text = try await tool.succeed("history", names.store, "stock", "flour").text
        #expect(text.contains(" won over ") && text.contains("last writer wins, by 4:00"))
    }

    /// What won over another write is stored again, joined with that, beside what was sealed.
    @Test func aVersionShowsOnceAndItsCopiesIfAskedFor() async throws {
        let pair = try StorePair(in: tool)
        for (name, store) in [("north", pair.north), ("south", pair.south)] {
            try store.dataset("notes").put("by \(name)", for: "key")
            try store.sealAll()
        }
        await pair.exchange()
        let value = try #require(try pair.north.dataset("notes").get("key"))
        let won = String(decoding: value, as: UTF8.self)
        try pair.close()
        let store = tool.path(String(won.dropFirst(3)))
        for form in ["--limit=9", "--full", "--json"] {
            for copies in [[], ["--all-copies"]] {
                let outcome = try await RunningCommand(
                    try CommandLineTool.binary(),
                    ["history", store, "notes", "key", form] + copies, in: tool.directory
                ).outcome()
                try #require(outcome.status == 0, "\(outcome.errors)")
                let shown = outcome.text.components(separatedBy: won).count - 1
                #expect(shown == 1, "\(outcome.text)")
                let files = [".seg", ".log"].map(outcome.text.contains)
                #expect(files == [!copies.isEmpty, !copies.isEmpty], "\(outcome.text)")
            }
        }
    }

    @Test func wrongQuestions() async throws {
        let history = ["history", names.store, "stock"]
        func run(_ more: String...) async throws -> Outcome {
            try await RunningCommand(
                try CommandLineTool.binary(), history + more, in: tool.directory
            ).outcome()
        }
        expectFailure(try await run("oats"), .negative, "oats")
        expectFailure(try await run("flour", "--dot", "--svg"), .usage, "--svg")
        expectFailure(try await run("flour", "--limit", "0"), .usage, "--limit")
    }
}

/// The drawing of ancestries, of made-up versions.
struct HistoryGraphTests {
    private static let replicas = (1...4).map { ReplicaID(high: UInt64($0) << 56, low: 0) }

    /// - Parameter seen: for each replica the counter that the writer had seen.
    private func record(
        _ replica: Int, _ counter: UInt64, seen: [UInt64] = [], count: UInt64
    ) -> Record {
        let dots = zip(Self.replicas, seen).filter { $1 > 0 }.map { Dot(replica: $0, counter: $1) }
        let dot = Dot(replica: Self.replicas[replica], counter: counter)
        return Record(
            key: [1], value: Array("\(count)".utf8),
            version: Version(
                dot: dot, vector: VersionVector(dots),
                time: HybridTime(milliseconds: count, counter: 0)),
            syncCount: SyncCount(rawValue: count), isDirty: false, expiresAt: nil)
    }

    private func drawing(_ records: [Record]) -> [String] {
        let graph = HistoryGraph(records)
        return graph.rows.flatMap { row -> [String] in
            let margins = graph.margins(of: row)
            let lines = [margins.above, margins.node, margins.below ?? margins.rest]
            return lines.compactMap { $0 }
        }
    }

    @Test func aLine() {
        let records = [
            record(0, 3, seen: [2], count: 3), record(0, 2, seen: [1], count: 2),
            record(0, 1, count: 1),
        ]
        #expect(drawing(records) == ["* ", "| ", "* ", "| ", "* ", "  "])
        #expect(HistoryGraph(records).victories.isEmpty)
    }

    /// Two write on one base; a third has seen both.
    @Test func aConflictAndItsMerge() {
        let records = [
            record(0, 3, seen: [2, 1], count: 4), record(1, 1, seen: [1], count: 3),
            record(0, 2, seen: [1], count: 2), record(0, 1, count: 1),
        ]
        let graph = HistoryGraph(records)
        #expect(graph.nodes.map(\.parents) == [[1, 2], [3], [3], []])
        #expect(graph.victories.map { [$0.winner, $0.loser] } == [[1, 2]])
        #expect(
            drawing(records) == [
                "*   ", "|-. ", "* | ", "| | ", "| * ", "| | ", "|-' ", "*   ", "    ",
            ])
    }

    @Test func twoThatNeverMet() {
        let records = [record(1, 1, count: 2), record(0, 1, count: 1)]
        #expect(drawing(records) == ["* ", "  ", "* ", "  "])
        #expect(HistoryGraph(records).victories.count == 1)
    }

    /// Whatever the vectors, each version stands before all that it descends from, in a lane that
    /// nothing else runs through.
    @Test func anyHistoryIsDrawn() {
        let seed = Seed.drawn()
        var random = SeededGenerator(seed)
        for _ in 0..<200 {
            var counters: [UInt64] = [0, 0, 0, 0]
            var known = [[UInt64]](repeating: [0, 0, 0, 0], count: 4)
            var records: [Record] = []
            for count in 1...UInt64(1 + random.below(12)) {
                let replica = random.below(4)
                if random.oneIn(2) {
                    let other = random.below(4)
                    for index in 0..<4 {
                        known[replica][index] = max(known[replica][index], known[other][index])
                    }
                }
                counters[replica] += 1
                records.append(
                    record(replica, counters[replica], seen: known[replica], count: count))
                known[replica][replica] = counters[replica]
            }
            let graph = HistoryGraph(records.reversed())
            #expect(graph.nodes.count == records.count, "\(seed)")
            for (number, node) in graph.nodes.enumerated() {
                #expect(node.parents.allSatisfy { $0 > number }, "\(seed)")
                #expect(node.lane < graph.laneCount, "\(seed)")
            }
            for row in graph.rows {
                let margins = graph.margins(of: row)
                #expect(margins.node.filter { $0 == "*" }.count == 1, "\(seed)")
                #expect(margins.node.count == 2 * graph.laneCount, "\(seed)")
            }
        }
    }

    @Test func drawingsEscapeWhatTheyShow() {
        let hostile = "<script>\"&\\"
        #expect(HistoryGraph.escapedForXML(hostile) == "&lt;script&gt;&quot;&amp;\\")
        let graph = HistoryGraph([record(0, 1, count: 1)])
        #expect(graph.dot(title: hostile)[1] == #"  label="<script>\"&\\";"#)
    }
}
