import Testing
import Tidemark

@testable import TidemarkSync

/// The rules by which two documents become one.
struct AutoMergeTests {
    static let a = ReplicaID(high: 0, low: 1)
    static let b = ReplicaID(high: 0, low: 2)

    static func record(
        _ value: String?, _ replica: ReplicaID, at time: UInt64, expiresAt: UInt64? = nil
    ) -> Record {
        Record(
            key: [1], value: value.map { Array($0.utf8) },
            version: Version(
                dot: Dot(replica: replica, counter: time), vector: VersionVector(),
                time: HybridTime(rawValue: time)),
            syncCount: 1, isDirty: false, expiresAt: expiresAt)
    }

    /// The earlier one is local.
    static func conflict(_ ancestor: String?, _ earlier: String?, _ later: String?) -> Conflict {
        Conflict(
            dataset: "notes", key: [1],
            ancestry: ancestor.map { .known(record($0, a, at: 1)) } ?? .nonexistent,
            local: record(earlier, a, at: 2), remote: record(later, b, at: 3))
    }

    static func swapped(_ conflict: Conflict) -> Conflict {
        Conflict(
            dataset: conflict.dataset, key: conflict.key, ancestry: conflict.ancestry,
            local: conflict.remote, remote: conflict.local)
    }

    /// The value that a conflict comes to, whoever asks.
    static func merged(_ rules: AutoMerge, _ conflict: Conflict) -> [UInt8]? {
        let values = [conflict, swapped(conflict)].map { conflict in
            conflict.value(after: rules.resolution(of: conflict))
        }
        #expect(values[0] == values[1])
        return values[0]
    }

    static func text(_ rules: AutoMerge, _ conflict: Conflict) -> String? {
        merged(rules, conflict).map { String(decoding: $0, as: UTF8.self) }
    }

    static func lost(_ rules: AutoMerge, _ conflict: Conflict) -> [String] {
        rules.settle(conflict).notes.lost.map {
            "\($0.side) \($0.path) \($0.value?.description ?? "removed")"
        }
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var ancestor: String?
        let earlier: String
        let later: String
        let expected: String
        var lost: [String] = []

        init(
            _ testDescription: String, from ancestor: String? = nil, _ earlier: String,
            _ later: String, _ expected: String, lost: [String] = []
        ) {
            self.testDescription = testDescription
            self.ancestor = ancestor
            self.earlier = earlier
            self.later = later
            self.expected = expected
            self.lost = lost
        }
    }

    static let appSyncCases = [
        Case(
            "a scalar keeps the server's", #"{"a":1}"#, #"{"a":2}"#, #"{"a":1}"#,
            lost: ["remote /a 2"]),
        Case("equal scalars", #"{"a":1}"#, #"{"a":1}"#, #"{"a":1}"#),
        Case("lists append, doubles kept", "[1,2]", "[2,3]", "[1,2,2,3]"),
        Case("a set unites", #"{"set":[1,2]}"#, #"{"set":[2,3]}"#, #"{"set":[1,2,3]}"#),
        Case(
            "maps recurse", #"{"m":{"a":1,"l":[1]}}"#, #"{"m":{"a":2,"l":[2],"b":3}}"#,
            #"{"m":{"a":1,"l":[1,2],"b":3}}"#, lost: ["remote /m/a 2"]),
        Case("absent takes the incoming", #"{"a":1}"#, #"{"b":2}"#, #"{"a":1,"b":2}"#),
        Case("null takes the incoming", #"{"a":null}"#, #"{"a":2}"#, #"{"a":2}"#),
        Case(
            "an incoming null is dropped", #"{"a":1}"#, #"{"a":null}"#, #"{"a":1}"#,
            lost: ["remote /a null"]),
        Case(
            "of two types the server's", #"{"a":[1]}"#, #"{"a":{"b":1}}"#, #"{"a":[1]}"#,
            lost: [#"remote /a {"b":1}"#]),
        Case("a whole scalar", "1", "2", "1", lost: ["remote  2"]),
    ]

    @Test(arguments: appSyncCases)
    func appSync(_ row: Case) {
        let rules = AutoMerge(rules: .appSync(server: .earlier), sets: [["set"]])
        let conflict = Self.conflict(row.ancestor, row.earlier, row.later)
        #expect(Self.text(rules, conflict) == row.expected)
        #expect(Self.lost(rules, conflict) == row.lost)
        // With the later one as the server it is the same the other way round.
        let other = AutoMerge(rules: .appSync(server: .later), sets: [["set"]])
        let turned = Self.conflict(row.ancestor, row.later, row.earlier)
        #expect(Self.text(other, turned) == row.expected)
    }

    @Test func theOtherSideCanBeTheServer() {
        let rules = AutoMerge(rules: .appSync(server: .remote))
        let conflict = Self.conflict(nil, #"{"a":1}"#, #"{"a":2}"#)
        #expect(rules.resolution(of: conflict) == .keepRemote)
        #expect(rules.resolution(of: Self.swapped(conflict)) == .value(Array(#"{"a":1}"#.utf8)))
    }

    static let threeWayCases = [
        Case(
            "one side changed", from: #"{"a":1,"b":1}"#, #"{"a":2,"b":1}"#, #"{"a":1,"b":1}"#,
            #"{"a":2,"b":1}"#),
        Case(
            "each changed another field", from: #"{"a":1,"b":1}"#, #"{"a":2,"b":1}"#,
            #"{"a":1,"b":2}"#, #"{"a":2,"b":2}"#),
        Case(
            "both changed a scalar: the later", from: #"{"a":1}"#, #"{"a":2}"#, #"{"a":3}"#,
            #"{"a":3}"#, lost: ["local /a 2"]),
        Case("both the same", from: #"{"a":1}"#, #"{"a":2}"#, #"{"a":2}"#, #"{"a":2}"#),
        Case("one removed, one added", from: #"{"a":1}"#, #"{}"#, #"{"a":1,"b":2}"#, #"{"b":2}"#),
        Case(
            "removed by the later, changed by the earlier", from: #"{"a":1}"#, #"{"a":2}"#, "{}",
            #"{"a":2}"#, lost: ["remote /a removed"]),
        Case(
            "removed by the earlier, changed by the later", from: #"{"a":1}"#, "{}", #"{"a":2}"#,
            #"{"a":2}"#, lost: ["local /a removed"]),
        Case(
            "maps recurse", from: #"{"m":{"a":1,"b":1}}"#, #"{"m":{"a":2,"b":1}}"#,
            #"{"m":{"a":1,"b":2}}"#, #"{"m":{"a":2,"b":2}}"#),
        Case("both appended", from: "[1,2]", "[1,2,3]", "[1,2,4]", "[1,2,3,4]"),
        Case("both appended the same", from: "[1]", "[1,2,2]", "[1,2,3]", "[1,2,2,3]"),
        Case("one appended, one removed", from: "[1,2]", "[1,2,3]", "[2]", "[2,3]"),
        Case("both removed", from: "[1,2,3]", "[1,3]", "[1,3]", "[1,3]"),
        Case("each removed another", from: "[1,2,3]", "[1,2]", "[2,3]", "[2]"),
        Case("one put in front, one behind", from: "[1,2]", "[0,1,2]", "[1,2,3]", "[0,1,2,3]"),
        Case("put between", from: "[1,2]", "[1,2,3]", "[1,9,2]", "[1,9,2,3]"),
        Case("the later one moved", from: "[1,2,3]", "[1,2,3,4]", "[3,2,1]", "[3,4,2,1]"),
        Case("the earlier one moved", from: "[1,2,3]", "[3,2,1]", "[1,2,3,4]", "[3,4,2,1]"),
        Case(
            "both moved", from: "[1,2,3]", "[3,2,1]", "[2,1,3]", "[3,2,1]",
            lost: ["remote  [2,1,3]"]),
        Case("doubles are counted", from: "[1,1]", "[1,1,1]", "[1]", "[1,1]"),
        Case(
            "an element is changed in its place", from: #"[{"n":1},{"n":2},{"n":3}]"#,
            #"[{"n":1},{"n":2,"done":true},{"n":3}]"#, #"[{"n":1},{"n":2},{"n":3},{"n":4}]"#,
            #"[{"n":1},{"n":2,"done":true},{"n":3},{"n":4}]"#),
        Case(
            "a set has each once", from: #"{"set":[1]}"#, #"{"set":[2,1,2]}"#, #"{"set":[1,2,3]}"#,
            #"{"set":[2,1,3]}"#),
        Case(
            "without an ancestor all is added", from: nil, #"{"a":1,"l":[1,2]}"#,
            #"{"b":2,"l":[2,3]}"#, #"{"a":1,"l":[1,2,3],"b":2}"#),
        Case(
            "an ancestor that is no JSON is none", from: "x", "[1]", "[2]", "[1,2]"),
        Case(
            "of two types the later", from: "1", "[1]", #"{"a":1}"#, #"{"a":1}"#,
            lost: ["local  [1]"]),
    ]

    @Test(arguments: threeWayCases)
    func threeWay(_ row: Case) {
        let rules = AutoMerge(sets: [["set"]])
        let conflict = Self.conflict(row.ancestor, row.earlier, row.later)
        #expect(Self.text(rules, conflict) == row.expected)
        #expect(Self.lost(rules, conflict) == row.lost)
    }

    @Test func whatASideHasWrittenStaysAsItWasWritten() {
        let rules = AutoMerge()
        let pretty = "{ \"a\": 1,\n  \"b\": 2 }"
        #expect(Self.text(rules, Self.conflict(#"{"a":1}"#, #"{"a":1}"#, pretty)) == pretty)
        #expect(Self.text(rules, Self.conflict(#"{"a":1}"#, pretty, #"{"a":1}"#)) == pretty)
        // Then no new write is needed if that was the later one.
        let later = rules.settle(Self.conflict(#"{"a":1}"#, #"{"a":1}"#, pretty))
        #expect(later.decision == .later)
        let earlier = rules.settle(Self.conflict(#"{"a":1}"#, pretty, #"{"a":1}"#))
        #expect(earlier.decision == .value(Array(pretty.utf8)))
    }

    @Test func aDeletionYieldsToAChangeOnly() {
        for rules in [AutoMerge(), AutoMerge(rules: .appSync(server: .earlier))] {
            let changed = Self.conflict("[1]", "[2]", nil)
            #expect(Self.text(rules, changed) == "[2]")
            #expect(Self.lost(rules, changed) == ["remote  removed"])
            #expect(Self.text(rules, Self.conflict(nil, nil, "[2]")) == "[2]")
        }
        // Three-way, what was not changed goes, whoever came first, and nothing is lost by it.
        for conflict in [Self.conflict("[1]", "[1]", nil), Self.conflict("[1]", nil, " [1]")] {
            #expect(Self.merged(AutoMerge(), conflict) == nil)
            #expect(Self.lost(AutoMerge(), conflict).isEmpty)
        }
        // The one that stays keeps its expiry; a merged one has the later.
        var conflict = Conflict(
            dataset: "notes", key: [1], ancestry: .nonexistent,
            local: Self.record("[1]", Self.a, at: 2, expiresAt: 50),
            remote: Self.record(nil, Self.b, at: 3))
        #expect(AutoMerge().settle(conflict).decision == .keep(.local))
        conflict = Conflict(
            dataset: "notes", key: [1], ancestry: .nonexistent,
            local: Self.record("[1]", Self.a, at: 2, expiresAt: 50),
            remote: Self.record("[1,2]", Self.b, at: 3, expiresAt: 40))
        #expect(AutoMerge().settle(conflict).decision == .value(Array("[1,2]".utf8)))
    }

    @Test(arguments: ["not JSON", #"{"a":1,"a":2}"#, "\u{f7}"])
    func whatIsNoJSONIsLeftToTheLastWriter(_ value: String) throws {
        for conflict in [Self.conflict("[1]", "[2]", value), Self.conflict("[1]", value, "[2]")] {
            let (decision, notes) = AutoMerge().settle(conflict)
            #expect(decision == .later)
            let report = try #require(notes.report(on: conflict))
            #expect(report.obstacle != nil)
            #expect(report.lost.map(\.side) == [.local])
            #expect(report.lost.map(\.isLeftOut) == [true])
        }
    }

    @Test func reportsAreBounded() throws {
        func document(_ value: Int) -> String {
            "{" + (0..<300).map { "\"\($0)\":\(value)" }.joined(separator: ",") + "}"
        }
        let many = Self.conflict(document(0), document(1), document(2))
        let report = try #require(AutoMerge().settle(many).notes.report(on: many))
        #expect(report.lostCount == 300)
        #expect(report.lost.count == SyncLimits.lostFieldsMax)
        #expect(report.obstacle == nil)
        let long = String(repeating: "x", count: SyncLimits.lostValueBytesMax)
        let large = Self.conflict("1", "\"\(long)\"", "2")
        let shown = try #require(AutoMerge().settle(large).notes.report(on: large))
        #expect(shown.lost.map(\.isLeftOut) == [true])
        #expect(shown.lost.map(\.value) == [nil])
        var result = SyncResult(dataset: "notes", remoteReplica: Self.b)
        for _ in 0..<12 { result.note(report) }
        #expect(result.reports.count == SyncLimits.reportedFieldsMax / SyncLimits.lostFieldsMax)
        #expect(result.reportsLeftOut == 2)
    }
}
