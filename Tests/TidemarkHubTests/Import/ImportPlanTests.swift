import TestSupport
import Testing
import Tidemark

@testable import TidemarkHub

/// What an import writes is followed by a model of the store's count: it goes up by one with each
/// write, and a record has the count of the last write to it.
@Suite struct ImportPlanTests {
    private struct Outcome {
        var values: [[UInt8]: String?] = [:]
        var positions: [[UInt8]: UInt64] = [:]
    }

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    private func applied(_ plan: ImportPlan, after start: UInt64 = 0) -> Outcome {
        var outcome = Outcome()
        var position = start
        for write in plan.writes {
            position += 1
            outcome.values[write.key] = .some(write.value)
            outcome.positions[write.key] = position
        }
        #expect(position == plan.position)
        return outcome
    }

    /// Each record has its value, its count by the map, and the place that the plan says.
    private func check(
        _ plan: ImportPlan, _ records: [ListedRecord], through count: UInt64,
        after start: UInt64 = 0, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let outcome = applied(plan, after: start)
        for record in records {
            #expect(
                outcome.values[record.key] == .some(record.value), "\(record)",
                sourceLocation: sourceLocation)
            let position = outcome.positions[record.key] ?? 0
            #expect(plan.positions[record.key] == position, sourceLocation: sourceLocation)
            #expect(
                plan.map.count(at: position) == record.count, "\(record)",
                sourceLocation: sourceLocation)
        }
        #expect(plan.map.count(at: plan.position) == count, sourceLocation: sourceLocation)
        let keys = Set(records.map(\.key))
        for (key, value) in outcome.values where !keys.contains(key) {
            #expect(value == nil && key.starts(with: ImportPlan.fillerKey))
        }
    }

    @Test func theExampleOfTheDocument() throws {
        let records = [
            ListedRecord(key: bytes("a"), value: "1", count: 3),
            ListedRecord(key: bytes("b"), value: "2", count: 5),
            ListedRecord(key: bytes("c"), value: nil, count: 5),
        ]
        let plan = try #require(ImportPlan(records, through: 6, after: 0, map: CountMap()))
        let keys = ["a", "a", "a", "b", "b", "c"].map(bytes) + [ImportPlan.fillerKey]
        #expect(plan.writes.map(\.key) == keys)
        check(plan, records, through: 6)
    }

    @Test func anEmptyDatasetThatWasUsedHasItsCount() throws {
        let plan = try #require(ImportPlan([], through: 2, after: 0, map: CountMap()))
        #expect(plan.writes.count == 2)
        check(plan, [], through: 2)
        let unused = try #require(ImportPlan([], through: 0, after: 0, map: CountMap()))
        #expect(unused.writes.isEmpty)
    }

    @Test func aRecordThatIsCalledAsTheFillerStays() throws {
        let records = [ListedRecord(key: ImportPlan.fillerKey, value: "kept", count: 1)]
        let plan = try #require(ImportPlan(records, through: 4, after: 0, map: CountMap()))
        check(plan, records, through: 4)
    }

    @Test func spellingsOfALetterAreKeysOfTheirOwn() throws {
        let records = ["\u{E9}", "e\u{301}"].map { text in
            ListedRecord(key: bytes(text), value: text, count: 1)
        }
        let plan = try #require(ImportPlan(records, through: 1, after: 0, map: CountMap()))
        #expect(plan.positions.count == 2)
        check(plan, records, through: 1)
    }

    @Test func countsOutOfReachAreRefusedWithoutMemory() {
        let far = ImportPlan.fillersMax + 1
        #expect(ImportPlan([], through: far, after: 0, map: CountMap()) == nil)
        #expect(ImportPlan([], through: .max, after: 0, map: CountMap()) == nil)
        let record = ListedRecord(key: bytes("a"), value: "1", count: .max)
        #expect(ImportPlan([record], through: 1, after: 0, map: CountMap()) == nil)
    }

    @Test func anyHistoryKeepsItsCounts() throws {
        var random = SeededGenerator(Seed.drawn())
        for _ in 0..<300 {
            // Calls of some records each, of which the last one of a key is left.
            var counts: [String: UInt64] = [:]
            var values: [String: String?] = [:]
            var call: UInt64 = 0
            var (position, map) = (UInt64(0), CountMap())
            for part in 0..<Int.random(in: 1...3, using: &random) {
                let before = call
                for _ in 0..<Int.random(in: 0...12, using: &random) {
                    call += 1
                    for _ in 0..<Int.random(in: 0...4, using: &random) {
                        let key = "k\(Int.random(in: 0..<9, using: &random))"
                        counts[key] = call
                        values[key] = .some(
                            Bool.random(using: &random) ? "\(part) \(call)" : nil)
                    }
                }
                // All at first, then what is newer.
                let records = counts.filter { $0.value > before }.map { key, count in
                    ListedRecord(key: bytes(key), value: values[key] ?? nil, count: count)
                }
                let plan = try #require(
                    ImportPlan(records, through: call, after: position, map: map))
                check(plan, records, through: call, after: position)
                (position, map) = (plan.position, plan.map)
            }
            let stored = try #require(CountMap(encoded: map.encoded))
            #expect(stored == map)
        }
    }
}
