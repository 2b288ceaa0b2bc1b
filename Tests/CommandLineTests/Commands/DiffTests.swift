import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import tidemark

/// `diff`: two stores, two moments, two version vectors.
@Suite struct DiffTests {
    let tool: CommandLineTool
    let north: String
    let south: String

    init() throws {
        tool = try CommandLineTool()
        north = tool.path("north")
        south = tool.path("south")
    }

    private func open(_ path: String) throws -> Store {
        try Store.open(
            at: path, options: StoreOptions(durability: .process, historyVersions: 10))
    }

    /// Two stores that have exchanged apple and fig, and went on by themselves.
    private func fill() async throws {
        let (first, second) = (try open(north), try open(south))
        let fruits = try first.dataset("fruits")
        try fruits.put("green", for: "apple")
        try fruits.put("blue", for: "fig")
        try await first.synchronize(with: InMemoryTransport(SyncResponder(store: second)))
        try fruits.put("red", for: "apple")
        try fruits.put("yellow", for: "pear")
        let others = try second.dataset("fruits")
        try others.put("brown", for: "apple")
        try others.put("violet", for: "fig")
        try others.put("", for: "plum")
        try second.dataset("herbs").put("fresh", for: "mint")
        try first.close()
        try second.close()
    }

    @Test func twoStores() async throws {
        try await fill()
        let before = (try Files.contents(north), try Files.contents(south))
        let text = try await tool.succeed("diff", north, south).text
        #expect(
            text == """
                   DATASET/KEY   FIRST   SECOND  IS
                ~  fruits/apple  red     brown   concurrent
                ~  fruits/fig    blue    violet  newer
                -  fruits/pear   yellow
                +  fruits/plum           ""
                +  herbs/mint            fresh

                """ + "2 added, 1 removed, 2 changed\n", "\(text)")
        let objects = try await tool.succeed("diff", south, north, "--json").objects()
        #expect(
            objects.dropLast().map { "\($0["kind"] ?? "") \($0["key"] ?? "")" } == [
                "changed apple", "changed fig", "added pear", "removed plum", "removed mint",
            ])
        #expect(objects[1]["relation"] as? String == "older")
        #expect((objects[1]["before"] as? [String: Any])?["value"] as? String == "violet")
        #expect(objects.last?["kind"] as? String == "summary")
        #expect(objects.last?["changed"] as? Int == 2)
        #expect((try Files.contents(north), try Files.contents(south)) == before)
    }

    @Test func onlySomeOfIt() async throws {
        try await fill()
        let one = try await tool.succeed("diff", north, south, "--dataset", "herbs", "--json")
        #expect(try one.objects().dropLast().map { $0["key"] as? String } == ["mint"])
        let prefixed = try await tool.succeed("diff", north, south, "--prefix", "p", "--json")
        #expect(try prefixed.objects().dropLast().map { $0["key"] as? String } == ["pear", "plum"])
        let limited = try await tool.succeed("diff", north, south, "--limit", "1", "--json")
        #expect(try limited.objects().count == 2)
    }

    @Test func theSameTwice() async throws {
        try await fill()
        #expect(try await tool.succeed("diff", north, north).text == "no difference\n")
        try await tool.succeed("diff", north, north, "--exit-code")
        expectFailure(
            try await tool.run("diff", north, south, "--exit-code"), .negative, "5 records differ")
    }

    @Test func twoMoments() async throws {
        try await fill()
        let since = try await tool.succeed("diff", north, "--dataset", "fruits", "--since", "2")
        #expect(
            since.text == """
                   KEY    BEFORE  AFTER   IS
                ~  apple  green   red     newer
                +  pear           yellow
                1 added, 1 changed

                """, "\(since.text)")
        let until = try await tool.succeed(
            "diff", north, "--dataset", "fruits", "--since", "2", "--until", "3", "--json")
        #expect(try until.objects().dropLast().map { $0["key"] as? String } == ["apple"])
        let ever = try await tool.succeed(
            "diff", north, "--since", "1970-01-01T00:00:00Z", "--json")
        #expect(
            try ever.objects().dropLast().map { $0["key"] as? String } == ["apple", "fig", "pear"])
    }

    @Test func whatAPeerHasNotSeen() async throws {
        try await fill()
        let second = try open(south)
        let id = second.replicaID
        try second.close()
        for state in ["peer:\(id.shortDescription)", "peer:\(id)"] {
            let unseen = try await tool.succeed(
                "diff", north, "--dataset", "fruits", "--since", state, "--json")
            let objects = try unseen.objects()
            #expect(objects.dropLast().map { $0["key"] as? String } == ["apple", "pear"])
            #expect(objects.first?["isCertain"] as? Bool == true)
        }
        let own = try open(north)
        let vector = "{\(own.replicaID.shortDescription):1}"
        try own.close()
        let first = try await tool.succeed(
            "diff", north, "--dataset", "fruits", "--since", "{}", "--until", vector, "--json")
        #expect(try first.objects().dropLast().map { $0["key"] as? String } == ["apple"])
    }

    @Test func statesThatCannotBeCompared() async throws {
        try await fill()
        let cases: [(arguments: [String], status: CommandStatus, word: String)] = [
            ([], .usage, "--since"),
            ([south, "--since", "1"], .usage, "--since"),
            (["--since", "1"], .usage, "--dataset"),
            (["--until", "1"], .usage, "--since"),
            (["--since", "x", "--dataset", "fruits"], .usage, "--since"),
            (["--since", "1", "--until", "{}", "--dataset", "fruits"], .usage, "one kind"),
            (["--since", "{12345678:1}", "--dataset", "fruits"], .negative, "12345678"),
            (["--since", "1", "--dataset", "none"], .negative, "none"),
            ([south, "--dataset", "none"], .negative, "either store"),
            ([tool.path("nowhere")], .noInput, "no store"),
        ]
        for (arguments, status, word) in cases {
            let running = try RunningCommand(
                try CommandLineTool.binary(), ["diff", north] + arguments, in: tool.directory)
            expectFailure(try await running.outcome(), status, word)
        }
    }

    @Test func hostileKeysAndValues() async throws {
        let (first, second) = (try open(north), try open(south))
        for key in HostileKeys.all {
            try first.dataset("d").put(key, for: key)
            try second.dataset("d").put(key.reversed(), for: key)
        }
        try first.close()
        try second.close()
        let outcome = try await tool.succeed("diff", north, south)
        expectSafeForTerminal(outcome.text)
        #expect(outcome.lines.count == HostileKeys.all.count + 2)
        #expect(
            try await tool.succeed("diff", north, south, "--json").objects().count
                == HostileKeys.all.count + 1)
    }

    /// The walk over two sides against a comparison of two dictionaries.
    @Test func theWalkFindsWhatDiffers() throws {
        var random = SeededGenerator(.drawn())
        let (first, second) = (try open(north), try open(south))
        for round in 0..<20 {
            let name = "d\(round)"
            let sides = [try first.dataset(name), try second.dataset(name)]
            var contents: [[String: String]] = [[:], [:]]
            for _ in 0..<random.below(40) {
                let (side, key) = (random.below(2), "k\(random.below(30))")
                if random.oneIn(4) {
                    try sides[side].delete(key)
                    contents[side][key] = nil
                } else {
                    try sides[side].put("v", for: key)
                    contents[side][key] = "v"
                }
            }
            let walk = try DifferenceWalk(
                name, try sides[0].records(), try sides[1].records(), tell: { _ in })
            var found: [String] = []
            while let difference = try walk.next() {
                found.append(
                    difference.kind.mark + String(decoding: difference.key, as: UTF8.self))
            }
            let wanted = Set(contents[0].keys).union(contents[1].keys).sorted().map { key in
                // Equal values of two writes are two versions.
                (contents[0][key] == nil ? "+" : contents[1][key] == nil ? "-" : "~") + key
            }
            #expect(found == wanted)
        }
        try first.close()
        try second.close()
    }

    @Test func ofTheFixture() async throws {
        let names = try FixtureStore.makeTwo(in: tool.directory.path)
        let peer = try #require(names.peer)
        try await expectUnchanged(names.store) {
            let stores = try await tool.succeed("diff", names.store, peer).text
            expectSafeForTerminal(stores)
            try Golden.expect(stores, is: "diff", replacing: names.replacements)
            let unseen = try await tool.succeed(
                "diff", names.store, "--dataset", "stock", "--since",
                "peer:\(FixtureNames.kiosk.shortDescription)", "--json")
            try Golden.expect(unseen.text, is: "diff-peer-json", replacing: names.replacements)
        }
    }
}
