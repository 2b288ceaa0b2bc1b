import TestSupport
import Testing
import Tidemark

/// The calls that borrow keys and values do what those with arrays do: both are used on the same
/// records here, so that one is checked by the other.
@Suite("Borrowed keys and values")
struct SpanTests {
    @Test("put, withValue, contains and delete by span")
    func basics() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        let (array, value) = (bytes("a"), bytes("one"))
        let key = unsafe array.span.bytes
        let first = try unsafe dataset.put(value.span.bytes, for: key)
        #expect(first.counter == 1)
        #expect(try dataset.get(array) == value)
        let isThere = try dataset.contains(key)
        let count = try dataset.withValue(for: key) { $0?.byteCount }
        let last = try dataset.withValue(for: key) { value in
            unsafe value?.unsafeLoad(fromByteOffset: 2, as: UInt8.self)
        }
        #expect(isThere && count == 3 && last == UInt8(ascii: "e"))
        let second = try dataset.delete(key)
        #expect(second.counter == 2)
        let isStillThere = try dataset.contains(key)
        let isMissing = try dataset.withValue(for: key) { $0 == nil }
        #expect(try !isStillThere && isMissing && dataset.get(array) == nil)
    }

    @Test("An empty value is a value, and a part of a span is a key")
    func parts() throws {
        let fixture = try StoreFixture()
        let whole = bytes("key/value")
        let key = unsafe whole.span.bytes.extracting(0..<3)
        try fixture.dataset.put(RawSpan(), for: key)
        #expect(try fixture.dataset.get("key") == [])
        let count = try fixture.dataset.withValue(for: key) { $0?.byteCount }
        #expect(count == 0)
        try unsafe fixture.dataset.put(whole.span.bytes.extracting(4..<9), for: key)
        #expect(try fixture.dataset.text("key") == "value")
    }

    @Test("Bounds of keys hold for spans, too")
    func bounds() throws {
        let fixture = try StoreFixture()
        let value = bytes("value")
        let long = [UInt8](repeating: 1, count: Limits.keyBytesMax + 1)
        expectError(.invalidArgument) {
            try unsafe fixture.dataset.put(value.span.bytes, for: RawSpan())
        }
        expectError(.invalidArgument) {
            try unsafe fixture.dataset.put(value.span.bytes, for: long.span.bytes)
        }
        expectError(.invalidArgument) { try fixture.dataset.delete(RawSpan()) }
        #expect(try !fixture.dataset.contains(RawSpan()))
        #expect(try fixture.dataset.count() == 0)
    }

    @Test("A batch that is emptied and filled again holds only what it was filled with")
    func reusedBatch() throws {
        let fixture = try StoreFixture()
        let other = try fixture.store.dataset("other")
        var batch = WriteBatch()
        for round in 0..<3 {
            batch.removeAll(keepingCapacity: round < 2)
            #expect(batch.isEmpty)
            for index in 0..<50 {
                let key = bytes("\(round)-\(index)")
                let value = bytes("value \(index)")
                let dataset = index.isMultiple(of: 3) ? other : fixture.dataset
                unsafe batch.put(value.span.bytes, for: key.span.bytes, in: dataset)
            }
            if round > 0 {
                let key = bytes("\(round - 1)-0")
                unsafe batch.delete(key.span.bytes, in: other)
                batch.delete("\(round - 1)-1", in: fixture.dataset)
            }
            try fixture.store.write(batch)
        }
        #expect(try other.count() == 3 * 17 - 2 && fixture.dataset.count() == 3 * 33 - 2)
        #expect(try other.text("2-48") == "value 48" && fixture.dataset.text("0-1") == nil)
        let (store, reopened) = try fixture.reopened()
        #expect(try reopened.count() == 3 * 33 - 2 && reopened.text("1-49") == "value 49")
        try store.close()
    }

    @Test("withNext gives what next gives", arguments: [ScanOrder.forward, .backward])
    func steps(order: ScanOrder) throws {
        let fixture = try StoreFixture()
        for index in 0..<300 { try fixture.dataset.put("v\(index)", for: "k\(index)") }
        try fixture.store.compact()
        for index in 200..<400 { try fixture.dataset.put("w\(index)", for: "k\(index)") }
        for index in 100..<250 { try fixture.dataset.delete("k\(index)") }
        try fixture.dataset.put("", for: "k5")
        for includesDeleted in [false, true] {
            let cursor = try fixture.dataset.records(
                order: order, includingDeleted: includesDeleted)
            let expected = try fixture.dataset.records(
                order: order, includingDeleted: includesDeleted
            ).collect()
            for record in expected {
                let isEqual = try cursor.withNext { key, value in
                    guard let value else { return areEqual(key, record.key) && record.isDeleted }
                    guard let expected = record.value else { return false }
                    return areEqual(key, record.key) && areEqual(value, expected)
                }
                #expect(isEqual == true, "at \(record.keyText ?? "?")")
            }
            #expect(try cursor.withNext { _, _ in true } == nil, "the end is the end")
            #expect(try cursor.withNext { _, _ in true } == nil)
        }
    }

    @Test("Both ways of stepping may be mixed, in scans and in changes")
    func mixedSteps() throws {
        let fixture = try StoreFixture()
        for index in 10..<50 { try fixture.dataset.put("v\(index)", for: "k\(index)") }
        for cursor in [
            try fixture.dataset.records(), try fixture.dataset.changes(since: .zero),
        ] {
            for index in stride(from: 10, to: 50, by: 2) {
                #expect(try cursor.next()?.keyText == "k\(index)")
                let expected = bytes("k\(index + 1)")
                #expect(try cursor.withNext { key, _ in areEqual(key, expected) } == true)
            }
            #expect(try cursor.next() == nil)
        }
    }

    @Test("Ranges from spans are those from arrays")
    func ranges() {
        let prefixes: [[UInt8]] = [
            [], [0x61], [0x61, 0xFF], [0xFF], [0xFF, 0xFF], [0, 0xFF, 0xFF, 1],
        ]
        let end: [UInt8] = [9]
        for bytes in prefixes {
            let prefix = unsafe KeyRange.prefix(bytes.span.bytes)
            let from = unsafe KeyRange(from: bytes.span.bytes)
            let both = unsafe KeyRange(from: bytes.span.bytes, upTo: end.span.bytes)
            #expect(prefix == KeyRange.prefix(bytes) && from == KeyRange(from: bytes))
            #expect(both == KeyRange(from: bytes, upTo: end))
        }
    }

    private func areEqual(_ span: RawSpan, _ array: [UInt8]) -> Bool {
        span.byteCount == array.count
            && array.indices.allSatisfy {
                unsafe span.unsafeLoad(fromByteOffset: $0, as: UInt8.self) == array[$0]
            }
    }
}
