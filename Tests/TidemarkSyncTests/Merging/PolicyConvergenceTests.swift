import TestSupport
import Testing
import Tidemark
import TidemarkSync

// The property of ConvergenceTests, for every policy of this module: whatever is written where, and
// whatever is lost or repeated on the way, in the end all hold the same, and what the policy
// promises to keep is there.

@Suite(.serialized)
struct PolicyConvergenceTests {
    /// A document of a counter for each replica's writes, a set and a list, so that what must be
    /// in the end is known: nobody ever removes anything.
    private static func document(
        _ record: Record?, adding mark: String, _ random: inout SeededGenerator
    ) -> [UInt8] {
        var object = JSONObject()
        if let value = record?.value, case .object(let old)? = try? JSONValue(parsing: value) {
            object = old
        }
        let name = ["list", "set"].randomElement(using: &random) ?? "list"
        object[name] = .array((object[name]?.elements ?? []) + [.string(mark)])
        object["f \(Int.random(in: 0..<4, using: &random))"] = .string(mark)
        return JSONValue.object(object).encoded
    }

    struct Rules: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let rules: AutoMerge
        /// Whether an element that all have may be there more than once.
        let doubles: Bool
    }

    static let rules = [
        Rules(
            testDescription: "three-way", rules: AutoMerge(sets: [["set"]]), doubles: false),
        Rules(
            testDescription: "AppSync, earlier",
            rules: AutoMerge(rules: .appSync(server: .earlier), sets: [["set"]]), doubles: true),
        Rules(
            testDescription: "AppSync, remote",
            rules: AutoMerge(rules: .appSync(server: .remote), sets: [["set"]]), doubles: true),
    ]

    @Test(arguments: Topology.allCases, rules)
    func autoMergeLosesNothingThatWasAdded(_ topology: Topology, _ rules: Rules) async throws {
        print("autoMerge \(topology) \(rules.testDescription): seeds from \(baseSeed)")
        var conflicts = 0
        let runs = schedules(10)
        for seed in runs.map({ baseSeed + $0 }) {
            var added: Set<String> = []
            let schedule = try Schedule(
                seed: seed, topology: topology, policy: .autoMerge(rules.rules)
            ) { record, random in
                let mark = "\(added.count)"
                added.insert(mark)
                return Self.document(record, adding: mark, &random)
            }
            try await schedule.run(steps: 40)
            conflicts += schedule.conflictCount
            try expectEqual(schedule.replicas, "seed \(seed)")
            var kept: [String] = []
            let cursor = try schedule.replicas[0].dataset().records()
            while let record = try cursor.next() {
                let value = try JSONValue(parsing: try #require(record.value))
                let set = value["set"]?.elements ?? []
                #expect(Set(set).count == set.count, "seed \(seed)")
                kept += (set + (value["list"]?.elements ?? [])).compactMap(\.text)
            }
            #expect(Set(kept) == added, "seed \(seed)")
            #expect(rules.doubles || kept.count == added.count, "seed \(seed)")
            schedule.close()
        }
        #expect(conflicts > runs.count)
    }

    /// Counters at every key: the sum of all is the sum of what was added.
    @Test(arguments: Topology.allCases)
    func mergeableCountersAddUp(_ topology: Topology) async throws {
        print("mergeableCountersAddUp \(topology): seeds from \(baseSeed)")
        for seed in schedules(10).map({ baseSeed + $0 }) {
            var sum = 0
            var turns: UInt64 = 0
            let schedule = try Schedule(seed: seed, topology: topology, policy: .mergeable) {
                record, random in
                // A turn of its own for each write: as if each were an opening of its own.
                turns += 1
                let turn = MergeTurn(opening: turns, time: HybridTime(rawValue: turns))
                var counter = Counter(turn)
                if let value = record?.value, let old = try? Counter(decoding: value) {
                    counter = old
                }
                let amount = Int.random(in: 1..<100, using: &random)
                sum += amount
                counter.add(amount, turn)
                return counter.encoded
            }
            try await schedule.run(steps: 40)
            try expectEqual(schedule.replicas, "seed \(seed)")
            let cursor = try schedule.replicas[0].dataset().records()
            var found = 0
            while let record = try cursor.next() {
                found += try Counter(decoding: try #require(record.value)).value
            }
            #expect(found == sum, "seed \(seed)")
            schedule.close()
        }
    }

    /// Records that are no JSON and no mergeable value, deletions among them: the policies fall
    /// back to the last writer and converge all the same.
    @Test(arguments: Topology.allCases, ["autoMerge", "mergeable"])
    func whatCannotBeMergedConverges(_ topology: Topology, _ name: String) async throws {
        print("whatCannotBeMergedConverges \(topology) \(name): seeds from \(baseSeed)")
        let policy: MergePolicy = name == "mergeable" ? .mergeable : .autoMerge(AutoMerge())
        for seed in schedules(10).map({ baseSeed + $0 }) {
            let schedule = try Schedule(
                seed: seed, topology: topology, policy: policy,
                writesValue: ConvergenceTests.anyValue)
            try await schedule.run(steps: 40)
            try expectEqual(schedule.replicas, "seed \(seed)")
            schedule.close()
        }
    }
}
