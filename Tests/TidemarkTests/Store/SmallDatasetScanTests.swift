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
}
