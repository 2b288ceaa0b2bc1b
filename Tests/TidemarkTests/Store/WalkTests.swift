import TestSupport
import Testing
import Tidemark

@Suite("Walks in one vocabulary")
struct WalkTests {
    /// Key and value of every live record, in order.
    private typealias Rows = [(key: [UInt8], value: [UInt8])]

    private func filled(
        _ generator: inout SeededGenerator, compacts: Bool
    ) throws -> (StoreFixture, Rows) {
        let fixture = try StoreFixture()
        var values: [[UInt8]: [UInt8]] = [:]
        for index in 0..<400 {
            let key = bytes("\(generator.below(150))")
            if generator.oneIn(4) {
                try fixture.dataset.delete(key)
                values[key] = nil
            } else {
                values[key] = generator.bytes(generator.below(30))
                try fixture.dataset.put(values[key] ?? [], for: key)
            }
            if compacts, index == 250 { try fixture.store.compact() }
        }
        return (
            fixture,
            values.sorted { Bytes.precedes($0.key, $1.key) }.map { (key: $0.key, value: $0.value) }
        )
    }

    @Test(
        "Records and keys, of datasets, snapshots and transactions, any range, order and limit",
        arguments: [false, true])
    func all(compacts: Bool) {
        withSeed { seed in
            var generator = SeededGenerator(seed)
            let (fixture, rows) = try filled(&generator, compacts: compacts)
            let dataset = fixture.dataset
            let snapshot = try fixture.store.snapshot()
            let transaction = try fixture.store.beginTransaction()
            for _ in 0..<300 {
                let range = KeyRange(
                    from: generator.oneIn(4) ? nil : bytes("\(generator.below(150))"),
                    upTo: generator.oneIn(4) ? nil : bytes("\(generator.below(150))")
                ).intersection(generator.oneIn(2) ? .all : .prefix("\(generator.below(10))"))
                let order: ScanOrder = generator.oneIn(2) ? .forward : .backward
                let limit = generator.oneIn(3) ? nil : generator.below(20)
                var expected = rows.filter { range.contains($0.key) }
                if order == .backward { expected.reverse() }
                if let limit { expected = Array(expected.prefix(limit)) }
                let keys = expected.map(\.key)
                let values = expected.map { Optional($0.value) }
                let what = "\(range), \(order), \(limit ?? -1)"
                let records = [
                    try dataset.records(in: range, order: order, limit: limit),
                    try snapshot.records(of: dataset, in: range, order: order, limit: limit),
                ]
                for cursor in records {
                    let found = try cursor.collect()
                    try require(found.map(\.key) == keys && found.map(\.value) == values, what)
                }
                let own = try transaction.records(
                    of: dataset, in: range, order: order, limit: limit
                ).collect()
                try require(own.map(\.key) == keys && own.map(\.value) == values, what)
                let walks = [
                    try dataset.keys(in: range, order: order, limit: limit),
                    try snapshot.keys(of: dataset, in: range, order: order, limit: limit),
                    try transaction.keys(of: dataset, in: range, order: order, limit: limit),
                ]
                for cursor in walks { try require(try cursor.collect() == keys, what) }
            }
        }
    }

    /// Versions of few keys lie in many runs of segments and of a memtable, so that a step past one
    /// key goes past it in any of them.
    @Test("Over many runs, each with versions of the same keys")
    func manyRuns() {
        withSeed { seed in
            var generator = SeededGenerator(seed)
            var options = quickOptions()
            options.compactsAutomatically = false
            options.historyVersions = 1_000
            let fixture = try StoreFixture(options)
            let dataset = fixture.dataset
            /// Newest first; nil for a deletion.
            var versions: [[UInt8]: [[UInt8]?]] = [:]
            func newest(_ key: [UInt8]) -> [UInt8]? {
                guard let newest = versions[key]?.first else { return nil }
                return newest
            }
            for round in 0..<60 {
                // In order, so that runs follow each other, or in none.
                let inOrder = generator.oneIn(2)
                let first = generator.below(60)
                for place in 0..<(1 + generator.below(30)) {
                    let number = inOrder ? first + place : generator.below(90)
                    let key = bytes("\(1_000 + number)")
                    let value: [UInt8]? = generator.oneIn(2) ? nil : generator.bytes(3)
                    if let value {
                        try dataset.put(value, for: key)
                    } else {
                        try dataset.delete(key)
                    }
                    versions[key, default: []].insert(value, at: 0)
                }
                if round % 5 == 4 { try fixture.store.sealAll() }
                let known = versions.keys.sorted { Bytes.precedes($0, $1) }
                let live = known.filter { newest($0) != nil }
                for order in [ScanOrder.forward, .backward] {
                    func ordered(_ keys: [[UInt8]]) -> [[UInt8]] {
                        order == .forward ? keys : keys.reversed()
                    }
                    let all = try dataset.keys(order: order, includingDeleted: true).collect()
                    try require(all == ordered(known), "all, \(order), round \(round)")
                    let range = KeyRange(from: bytes("\(1_000 + generator.below(90))"))
                    let found = try dataset.records(in: range, order: order).collect()
                    let expected = ordered(live.filter { range.contains($0) })
                    try require(found.map(\.key) == expected, "live, \(order), round \(round)")
                    let values = expected.map { newest($0) }
                    try require(
                        found.map(\.value) == values, "values, \(order), round \(round)")
                }
                let key = generator.element(of: known)
                let history = try dataset.history(of: key).map(\.value)
                try require(history == versions[key], "the history in round \(round)")
            }
        }
    }

    @Test("A limit of zero or less gives nothing; keys may include those deleted")
    func edges() throws {
        let fixture = try StoreFixture()
        try fixture.dataset.put("1", for: "a")
        try fixture.dataset.delete("b")
        #expect(try fixture.dataset.records(limit: 0).next() == nil)
        #expect(try fixture.dataset.keys(limit: -1).next() == nil)
        #expect(try fixture.dataset.keys().collect() == [bytes("a")])
        #expect(try fixture.dataset.keys(includingDeleted: true).collect().count == 2)
        let cursor = try fixture.dataset.keys()
        #expect(try cursor.withNext { $0.byteCount } == 1)
        #expect(try cursor.withNext { $0.byteCount } == nil)
    }

    @Test("Ranges: intersection, single keys, emptiness")
    func ranges() {
        withSeed { seed in
            var generator = SeededGenerator(seed)
            func key() -> [UInt8] {
                (0..<generator.below(4)).map { _ in generator.element(of: [0, 1, 0xFF]) }
            }
            func range() -> KeyRange {
                switch generator.below(4) {
                case 0: .prefix(key())
                case 1: .only(key())
                case 2: KeyRange(from: key(), upTo: generator.oneIn(3) ? nil : key())
                default: KeyRange(from: generator.oneIn(3) ? nil : key(), through: key())
                }
            }
            for _ in 0..<5_000 {
                let (one, two, key) = (range(), range(), key())
                let both = one.intersection(two)
                try require(
                    both.contains(key) == (one.contains(key) && two.contains(key)),
                    "\(one) \(two) \(key)")
                try require(!(both.isEmpty && both.contains(key)), "\(both) is not empty")
                try require(KeyRange.only(key).contains(key), "a key alone")
                try require(!KeyRange.only(key).contains(key + [0]), "and no other")
            }
        }
    }
}
