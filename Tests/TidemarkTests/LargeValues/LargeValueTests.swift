import TestSupport
import Testing
import Tidemark

/// Values that lie apart read like any others, and only whoever asks for a value reads it.
@Suite("Large values")
struct LargeValueTests {
    @Test("Every way of reading gives the same values", arguments: Compression.allCases)
    func reading(compression: Compression) throws {
        var options = apartOptions()
        options.compression = compression
        options.historyVersions = 2
        var fixture = try LargeValueStore(valueBytes: 3_000, options: options)
        try fixture.put(0..<20)
        let past = try fixture.dataset.syncCount
        try fixture.store.compact()
        try fixture.put(0..<10, round: 1)
        try fixture.dataset.put("small", for: "key 3")
        try fixture.store.compact()
        #expect(try fixture.valueFiles.count == 2)
        for _ in 0..<2 {
            try checkPresent(fixture)
            for number in 0..<20 {
                let value = try fixture.dataset.get(fixture.key(number), at: .syncCount(past))
                #expect(value == fixture.value(number))
            }
            let history = try fixture.dataset.history(of: fixture.key(3))
            #expect(
                history.map(\.value) == [
                    bytes("small"), fixture.value(3, round: 1), fixture.value(3),
                ])
            try fixture.requireWhole()
            try fixture.reopen(options)
        }
        try fixture.store.close()
    }

    private func checkPresent(_ fixture: LargeValueStore) throws {
        let dataset = fixture.dataset
        var expected: [[UInt8]: [UInt8]] = [:]
        for number in 0..<20 {
            expected[fixture.key(number)] = fixture.value(number, round: number < 10 ? 1 : 0)
        }
        expected[fixture.key(3)] = bytes("small")
        for (key, value) in expected {
            #expect(try dataset.get(key) == value)
            #expect(try dataset.record(for: key)?.value == value)
            #expect(try dataset.withValue(for: key) { copy($0) } == value)
        }
        for order in [ScanOrder.forward, .backward] {
            let records = try dataset.records(order: order).collect()
            #expect(records.count == 20)
            for record in records { #expect(record.value == expected[record.key]) }
            let cursor = try dataset.records(order: order)
            var seen = 0
            while let pair = try cursor.withNext({ (copy($0), copy($1)) }) {
                #expect(pair.1 == expected[pair.0 ?? []])
                seen += 1
            }
            #expect(seen == 20)
        }
        let changes = try dataset.changes(since: 0).collect()
        #expect(changes.count == 20)
        for change in changes { #expect(change.value == expected[change.key]) }
        let size = try dataset.size()
        #expect(size.valueBytes == expected.values.reduce(0) { $0 + $1.count })
        try dataset.store.transaction { transaction in
            let cursor = try transaction.records(of: dataset)
            while let record = try cursor.next() {
                #expect(record.value == expected[record.key])
            }
            #expect(
                try transaction.get(fixture.key(5), in: dataset) == expected[fixture.key(5)])
            try transaction.put("own", for: "key 4", in: dataset)
            let mixed = try transaction.records(of: dataset).collect()
            #expect(mixed.count == 20)
            for record in mixed where record.keyText != "key 4" {
                #expect(record.value == expected[record.key])
            }
            try transaction.put(expected[fixture.key(4)] ?? [], for: fixture.key(4), in: dataset)
        }
    }

    private func copy(_ span: RawSpan?) -> [UInt8]? {
        guard let span else { return nil }
        return unsafe span.withUnsafeBytes { unsafe Array($0) }
    }

    @Test("What does not ask for values reads none of them")
    func untouched() throws {
        let fixture = try LargeValueStore(valueBytes: 1_000)
        try fixture.put(0..<12)
        try fixture.store.compact()
        let dot = try #require(try fixture.dataset.record(for: fixture.key(2))).version.dot
        try fixture.store.close()
        let name = try #require(try fixture.valueFiles.first)
        let path = "\(fixture.path)/\(name)"
        let whole = try Files.read(path)
        try Files.write(Array(whole[..<80]) + whole[80...].map { ~$0 }, to: path)
        let store = try Store.open(at: fixture.path, options: apartOptions())
        let dataset = try store.dataset("main")
        #expect(try dataset.keys().collect().count == 12)
        #expect(try dataset.keys(order: .backward, limit: 3).collect().count == 3)
        #expect(try dataset.count() == 12)
        #expect(try dataset.size().valueBytes == 12_000)
        #expect(try dataset.contains(fixture.key(1)))
        #expect(try store.statistics().datasets.first?.valueBytes == 12_000)
        let operations = try store.operations()
        var counted = 0
        while let operation = try operations.next() { counted += operation.valueBytes }
        #expect(counted == 12_000)
        try store.transaction { transaction in
            #expect(try transaction.contains(fixture.key(1), in: dataset))
            #expect(try transaction.keys(of: dataset).collect().count == 12)
            try transaction.put("own", for: "own", in: dataset)
            #expect(try transaction.keys(of: dataset).collect().count == 13)
        }
        try dataset.put(bytes("new"), for: fixture.key(2), ifAt: dot)
        try dataset.delete(fixture.key(3))
        // Merging does not read them either.
        try store.compact()
        let error = expectError(.corruption) { try dataset.get(fixture.key(1)) }
        #expect(error?.location?.path == path && (error?.location?.offset ?? 0) >= 80)
        expectError(.corruption) { try dataset.record(for: fixture.key(1)) }
        expectError(.corruption) { try dataset.withValue(for: fixture.key(1)) { $0?.byteCount } }
        expectError(.corruption) { try dataset.records().collect() }
        expectError(.corruption) { try dataset.changes(since: 0).collect() }
        expectError(.corruption) { try dataset.digest() }
        #expect(try dataset.get(fixture.key(2)) == bytes("new"))
        #expect(try !store.verify().damages.isEmpty)
        try store.close()
    }

    @Test("The bound decides what lies apart, and holds for what is merged later")
    func bound() throws {
        var options = apartOptions(1_000)
        options.compression = .none
        var fixture = try LargeValueStore(valueBytes: 0, options: options)
        for length in [0, 1, 998, 999] {
            try fixture.dataset.put([UInt8](repeating: 1, count: length), for: bytes("\(length)"))
        }
        try fixture.store.compact()
        #expect(try fixture.valueFiles.isEmpty)
        try fixture.dataset.put([UInt8](repeating: 2, count: 1_000), for: bytes("1000"))
        try fixture.store.compact()
        #expect(try fixture.store.usage().valueFiles.map(\.valueCount) == [1])
        options.largeValueBytes = 999
        try fixture.reopen(options)
        try fixture.dataset.put("1", for: "another")
        try fixture.store.compact()
        #expect(try fixture.store.usage().valueFiles.map(\.valueCount) == [1, 1])
        #expect(try fixture.dataset.get("999")?.count == 999)
        #expect(try fixture.dataset.get("1000")?.count == 1_000)
        try fixture.requireWhole()
        try fixture.store.close()
    }

    @Test("Records that expire, and versions of other replicas, lie apart like others")
    func expiring() throws {
        var fixture = try LargeValueStore(valueBytes: 700)
        let later = UInt64(1) << 46
        for number in 0..<6 {
            try fixture.dataset.put(
                fixture.value(number), for: fixture.key(number), expiresAt: later + UInt64(number))
        }
        try fixture.store.compact()
        try fixture.reopen()
        for number in 0..<6 {
            let record = try #require(try fixture.dataset.record(for: fixture.key(number)))
            #expect(record.value == fixture.value(number))
            #expect(record.expiresAt == later + UInt64(number))
        }
        try fixture.requireWhole()
        try fixture.store.close()
    }

    @Test("Two stores that exchange large values end equal")
    func replication() throws {
        let first = try LargeValueStore(valueBytes: 5_000)
        let second = try LargeValueStore(valueBytes: 5_000, options: apartOptions(6_000))
        try first.put(0..<10)
        try first.store.compact()
        let page = try first.dataset.changesPage(
            since: 0, recordsMax: 100, bytesMax: 1 << 20, excluding: VersionVector())
        var batch = ReplicationBatch()
        batch.writes = page.records.map { record in
            ReplicatedWrite(
                key: record.key,
                content: .adopt(
                    value: record.value, version: record.version, expiresAt: record.expiresAt),
                expected: nil)
        }
        batch.lifecycle = page.knowledge.lifecycle
        #expect(try second.dataset.replicate(batch).isEmpty)
        try second.store.compact()
        #expect(try second.valueFiles.isEmpty)
        #expect(try second.dataset.digest() == first.dataset.digest())
        try first.store.close()
        try second.store.close()
    }
}
