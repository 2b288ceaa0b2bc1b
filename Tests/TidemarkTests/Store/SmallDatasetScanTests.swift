import TestSupport
import Testing

@testable import Tidemark

/// A walk over a dataset of few entries, in a memtable that is full of another's, looks at these
/// few alone, and sees just what it would see otherwise.
@Suite("Scans of small datasets beside large ones")
struct SmallDatasetScanTests {
    @Test("Few and many entries, of users' datasets and of the store's own, against a model")
    func againstAModel() throws {
        var random = SeededGenerator(Seed.drawn())
        for _ in 0..<6 {
            let fixture = try StoreFixture()
            let small = try fixture.store.dataset("small")
            let notes = try fixture.store.systemDataset(.exchanges)
            var models: [[String: String]] = [[:], [:]]
            let stepCount = [10, 40, 700, 1_500].randomElement(using: &random) ?? 10
            for step in 0..<stepCount {
                try fixture.dataset.put("\(step)", for: "large \(step)")
                for (index, dataset) in [small, notes].enumerated() {
                    let key = "key \(Int.random(in: 0..<400, using: &random))"
                    if Int.random(in: 0..<4, using: &random) == 0 {
                        try dataset.delete(key)
                        models[index][key] = nil
                    } else {
                        try dataset.put("\(step)", for: key)
                        models[index][key] = "\(step)"
                    }
                }
                if Int.random(in: 0..<800, using: &random) == 0 { try fixture.store.compact() }
                guard Int.random(in: 0..<40, using: &random) == 0 || step == stepCount - 1 else {
                    continue
                }
                for (model, dataset) in zip(models, [small, notes]) {
                    try expect(dataset, holds: model)
                }
            }
            try fixture.store.close()
        }
    }

    private func expect(_ dataset: Dataset, holds model: [String: String]) throws {
        let keys = model.keys.sorted().map(bytes)
        let records = try dataset.records().collect()
        #expect(records.map(\.key) == keys)
        #expect(records.map { $0.valueText ?? "" } == model.sorted { $0.key < $1.key }.map(\.value))
        #expect(try dataset.keys(order: .backward).collect() == keys.reversed())
        let part = KeyRange(from: bytes("key 1"), upTo: bytes("key 3"))
        #expect(try dataset.keys(in: part).collect() == keys.filter { part.contains($0) })
    }

    @Test("A walk goes on over what was there when it began, whatever comes later")
    func stays() throws {
        let fixture = try StoreFixture()
        let small = try fixture.store.dataset("small")
        for number in 0..<20 { try small.put("old", for: "key \(number)") }
        let cursor = try small.records()
        for number in 0..<40 { try small.put("new", for: "key \(number)") }
        let records = try cursor.collect()
        #expect(records.count == 20)
        #expect(records.allSatisfy { $0.valueText == "old" })
        #expect(try small.count() == 40)
        try fixture.store.close()
    }

    @Test("A walk over a part of one of the store's own datasets after each write")
    func afterEachWrite() throws {
        var random = SeededGenerator(Seed.drawn())
        let fixture = try StoreFixture()
        let notes = try fixture.store.systemDataset(.batons)
        func prefix(_ random: inout SeededGenerator) -> [UInt8] {
            SystemDataset.prefix(of: "\(Int.random(in: 0..<40, using: &random))")
        }
        var model: [[UInt8]: [UInt8]] = [:]
        for step in 0..<2_500 {
            let key = prefix(&random) + [UInt8.random(in: 0..<8, using: &random)]
            if Int.random(in: 0..<5, using: &random) == 0 {
                try notes.delete(key)
                model[key] = nil
            } else {
                let value = bytes("\(step)")
                try notes.put(value, for: key)
                model[key] = value
            }
            if Int.random(in: 0..<4, using: &random) == 0 {
                try fixture.dataset.put("\(step)", for: "large \(step)")
            }
            if Int.random(in: 0..<500, using: &random) == 0 { try fixture.store.compact() }
            // Now and then many changes come between two walks.
            guard step % 400 >= 100 else { continue }
            let range = KeyRange.prefix(prefix(&random))
            let keys = model.keys.filter { range.contains($0) }
                .sorted { $0.lexicographicallyPrecedes($1) }
            let records = try notes.records(in: range).collect()
            #expect(records.map(\.key) == keys, "step \(step)")
            #expect(records.map(\.value) == keys.map { model[$0] }, "step \(step)")
            let backward = try notes.keys(in: range, order: .backward).collect()
            #expect(backward == keys.reversed(), "step \(step)")
        }
        #expect(try notes.keys().collect().count == model.count)
        try fixture.store.close()
    }

    /// What was put into order for the one is more than the other may see.
    @Test("A walk of an earlier moment after one of a later moment")
    func earlierMoment() throws {
        let fixture = try StoreFixture()
        let notes = try fixture.store.systemDataset(.batons)
        for number in 0..<20 { try notes.put("old", for: "key \(number)") }
        let (moment, scope) = try fixture.store.engine.momentAndScope(of: notes.state)
        for number in 0..<40 { try notes.put("new", for: "key \(number)") }
        for order in [ScanOrder.forward, .backward] {
            #expect(try notes.keys().collect().count == 40)
            var steps = try ScanSteps(
                moment, dataset: scope.id, range: .all, order: order, includingDeleted: false)
            var counts: [UInt64] = []
            while let count = try steps.next({ entry, _ in entry.syncCount }) {
                counts.append(count)
            }
            #expect(counts.sorted() == Array(1...20))
        }
        for number in 40..<45 { try notes.put("newer", for: "key \(number)") }
        #expect(try notes.keys().collect().count == 45)
        try fixture.store.close()
    }

    /// Each writes under a name of its own, and sees all that it wrote, and that alone.
    @Test("Walks over one of the store's own datasets while others write to it")
    func onThreads() throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        try runOnThreads(
            (0..<4).map { number in
                return { @Sendable () throws -> Void in
                    let notes = try store.systemDataset(.batons)
                    let prefix = SystemDataset.prefix(of: "\(number)")
                    for step in 0..<400 {
                        try notes.put(bytes("\(step)"), for: prefix + [UInt8(step % 7)])
                        let records = try notes.records(in: .prefix(prefix)).collect()
                        let values = records.map { $0.value ?? [] }
                        let first = step - step % 7
                        let expected = (0..<min(7, step + 1)).map { place in
                            bytes("\(place <= step % 7 ? first + place : first - 7 + place)")
                        }
                        try require(values == expected, "thread \(number), step \(step)")
                    }
                }
            })
        try fixture.store.close()
    }
}
