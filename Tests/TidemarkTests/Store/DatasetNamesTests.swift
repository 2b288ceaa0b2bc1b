import TestSupport
import Testing
import Tidemark

/// Names of datasets by what they begin with, in memory, sealed, and both.
@Suite("Names of datasets by prefix")
struct DatasetNamesTests {
    /// Keeps no state in memory that nobody holds.
    private func options() -> StoreOptions {
        var options = quickOptions()
        options.keptDatasetStatesMax = 0
        return options
    }

    @Test("Names are those of a model, for any prefix, start and limit")
    func model() {
        withSeed { seed in
            var random = SeededGenerator(seed)
            let fixture = try StoreFixture(options())
            let store = fixture.store
            let parts = ["a", "a:", "ab", "a:b", "b", "b:", ".", "-", "Z", "_", "a:b:"]
            var visible: Set<String> = ["main"]
            var known = visible
            for step in 0..<400 {
                let name = random.element(of: parts) + random.element(of: parts)
                if random.oneIn(4) {
                    let wasThere = visible.remove(name) != nil
                    #expect(try store.deleteDataset(name) == wasThere)
                } else {
                    try store.dataset(name).put("\(step)", for: "key")
                    visible.insert(name)
                    known.insert(name)
                }
                if random.oneIn(40) { try store.compact() }
                guard step.isMultiple(of: 5) else { continue }
                let prefix = random.oneIn(5) ? "" : random.element(of: parts)
                let after = random.oneIn(2) ? nil : random.element(of: parts)
                let limit = random.oneIn(3) ? Int.max : random.below(4)
                let isWanted = { (name: String) in
                    name.hasPrefix(prefix) && (after.map { $0 < name } ?? true)
                }
                #expect(
                    try store.datasetNames(prefix: prefix, after: after, limit: limit)
                        == Array(visible.filter(isWanted).sorted().prefix(limit)), "step \(step)")
                #expect(
                    try store.datasetNamesForSync(prefix: prefix, after: after, limit: limit)
                        == Array(known.filter(isWanted).sorted().prefix(limit)), "step \(step)")
            }
            #expect(try store.datasetNames(prefix: "") == store.datasetNames())
            try store.close()
        }
    }

    @Test("What no name can hold leads nowhere")
    func strangePrefixes() throws {
        let fixture = try StoreFixture(options())
        try fixture.store.dataset("a").put("1", for: "key")
        // Sealed, so that there are records of numbers before those of names.
        try fixture.store.compact()
        let strange = [
            "\u{0}", "~", "~batons", "\u{E9}", "a/b", " ", String(repeating: "a", count: 256),
        ]
        for prefix in strange {
            #expect(try fixture.store.datasetNames(prefix: prefix).isEmpty)
        }
        for after in ["", "\u{0}", "\u{0}\u{0}\u{0}", "\u{1}"] {
            #expect(try fixture.store.datasetNames(prefix: "", after: after) == ["a", "main"])
        }
        for after in ["n", "~", "\u{E9}", "e\u{301}"] {
            let names = try fixture.store.datasetNames(prefix: "", after: after)
            #expect(names == (after.utf8.first == UInt8(ascii: "e") ? ["main"] : []))
        }
        #expect(try fixture.store.datasetNames(prefix: "a", limit: 0).isEmpty)
        #expect(try fixture.store.datasetNames(prefix: "a", limit: -1).isEmpty)
        try fixture.store.close()
        expectError(.closed) { try fixture.store.datasetNames(prefix: "a") }
    }

    @Test("Where there are many datasets no state comes into memory for it")
    func memory() throws {
        let fixture = try StoreFixture(options())
        for number in 0..<2_000 {
            try fixture.store.dataset("user-\(number):notes").put("1", for: "key")
        }
        try fixture.store.compact()
        let (store, _) = try fixture.reopened(options())
        #expect(
            try store.datasetNames(prefix: "user-77")
                == (770...779).map { "user-\($0):notes" } + ["user-77:notes"])
        #expect(store.datasetStatesInMemory <= 1)
        try store.close()
    }
}
