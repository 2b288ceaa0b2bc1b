import TestSupport
import Testing
import Tidemark

@Suite("Scans")
struct ScanTests {
    /// Where the records lie should not matter: all new, all sealed, or spread over several
    /// segments with newer versions above older ones.
    enum Placement: CaseIterable {
        case active, sealed, layered
    }

    private func filled(_ placement: Placement) throws -> StoreFixture {
        let fixture = try StoreFixture()
        if placement == .layered {
            for key in OperationGenerator.nastyKeys { try fixture.dataset.put([0], for: key) }
            try fixture.dataset.put("hidden", for: "ghost")
            try fixture.store.compact()
            try fixture.dataset.delete("ghost")
        }
        for key in OperationGenerator.nastyKeys {
            try fixture.dataset.put([1], for: key)
        }
        if placement == .sealed { try fixture.store.compact() }
        return fixture
    }

    private var sortedKeys: [[UInt8]] {
        OperationGenerator.nastyKeys.sorted(by: Bytes.precedes)
    }

    @Test("In the order of bytes, both ways", arguments: Placement.allCases)
    func order(placement: Placement) throws {
        let fixture = try filled(placement)
        let forward = try fixture.dataset.records().collect()
        #expect(forward.map(\.key) == sortedKeys)
        #expect(forward.allSatisfy { $0.value == [1] })
        let backward = try fixture.dataset.records(order: .backward).collect()
        #expect(backward == forward.reversed())
    }

    @Test("Every pair of bounds gives what lies between", arguments: Placement.allCases)
    func ranges(placement: Placement) throws {
        let fixture = try filled(placement)
        let bounds = sortedKeys.filter { $0.count < 300 } + [[0x05], [0x61, 0x61]]
        for lower in bounds {
            for upper in bounds where !lower.isEmpty {
                let expected = sortedKeys.filter {
                    !Bytes.precedes($0, lower) && Bytes.precedes($0, upper)
                }
                let range = KeyRange(from: lower, upTo: upper)
                let forward = try fixture.dataset.records(in: range).collect().map(\.key)
                let backward = try fixture.dataset.records(in: range, order: .backward).collect()
                guard forward == expected, backward.map(\.key) == expected.reversed() else {
                    Issue.record("\(Bytes.summary(lower)) up to \(Bytes.summary(upper))")
                    return
                }
            }
        }
    }

    @Test("Every prefix gives the keys that begin with it", arguments: Placement.allCases)
    func prefixes(placement: Placement) throws {
        let fixture = try filled(placement)
        for key in sortedKeys {
            for length in [0, 1, 2, key.count] where length <= key.count {
                let prefix = Array(key.prefix(length))
                let expected = sortedKeys.filter { $0.starts(with: prefix) }
                let forward = try fixture.dataset.records(in: .prefix(prefix)).collect()
                let backward = try fixture.dataset.records(
                    in: .prefix(prefix), order: .backward
                ).collect()
                #expect(forward.map(\.key) == expected && backward == forward.reversed())
            }
        }
    }

    /// Ten runs that overlap, with up to ten versions of a key: the heads of all take turns.
    @Test("Over many runs that hold the same keys, both ways")
    func manyRuns() throws {
        withSeed { seed in
            var generator = SeededGenerator(seed)
            var options = quickOptions()
            options.segmentBytes = 1 << 20
            options.compactsAutomatically = false
            let fixture = try StoreFixture(options)
            var expected: [[UInt8]: UInt8] = [:]
            for run in 0..<10 {
                for _ in 0..<400 {
                    let key = Array("key \(100 + generator.below(500))".utf8)
                    if generator.oneIn(5) {
                        try fixture.dataset.delete(key)
                        expected[key] = nil
                    } else {
                        let value = UInt8(generator.below(250))
                        try fixture.dataset.put(Array(repeating: value, count: 3_000), for: key)
                        expected[key] = value
                    }
                }
                try fixture.store.waitForBackgroundWork()
                try #require(fixture.store.counters().runCount >= run)
            }
            let keys = expected.keys.sorted(by: Bytes.precedes)
            let forward = try fixture.dataset.records().collect()
            #expect(forward.map(\.key) == keys)
            #expect(forward.allSatisfy { $0.value?.first == expected[$0.key] })
            let backward = try fixture.dataset.records(order: .backward).collect()
            #expect(backward == forward.reversed())
            try fixture.store.compact()
            #expect(try fixture.dataset.records().collect() == forward)
        }
    }

    @Test("A scan stays at the moment of the call", arguments: [ScanOrder.forward, .backward])
    func stillness(order: ScanOrder) throws {
        let fixture = try StoreFixture()
        for index in 100..<200 { try fixture.dataset.put("old", for: "\(index)") }
        let cursor = try fixture.dataset.records(order: order)
        var texts: [String?] = []
        var index = 0
        while let record = try cursor.next() {
            texts.append(record.valueText)
            try fixture.dataset.put("new", for: "\(100 + index)")
            try fixture.dataset.put("new", for: "\(199 - index)")
            try fixture.dataset.put("new", for: "\(index) more")
            if index == 50 { try fixture.store.compact() }
            index += 1
        }
        #expect(texts == Array(repeating: "old", count: 100))
        #expect(try cursor.next() == nil, "the end is the end")
        #expect(try cursor.collect().isEmpty)
    }

    @Test("A scan lives longer than its dataset handle and the next compaction")
    func lifetime() throws {
        let fixture = try StoreFixture()
        func cursor() throws -> RecordCursor {
            let dataset = try fixture.store.dataset("main")
            for index in 0..<500 { try dataset.put("\(index)", for: "\(index)") }
            return try dataset.records()
        }
        let scan = try cursor()
        try fixture.store.compact()
        try fixture.store.deleteDataset("main")
        try fixture.store.compact()
        #expect(try scan.collect().count == 500)
    }

    @Test("Scans of an empty dataset and of empty ranges end at once")
    func nothing() throws {
        let fixture = try StoreFixture()
        #expect(try fixture.dataset.records().next() == nil)
        try fixture.dataset.put("1", for: "m")
        #expect(try fixture.dataset.records(in: KeyRange(from: "n", upTo: "a")).next() == nil)
        #expect(try fixture.dataset.records(in: KeyRange(from: "m", upTo: "m")).next() == nil)
        #expect(try fixture.dataset.records(in: .prefix("mm")).next() == nil)
    }
}
