import Foundation
import TestSupport
import Testing
import Tidemark

/// The coding that the docs of `ValueCoding` show.
private struct JSONCoding<Value: Codable & Sendable>: ValueCoding {
    func encode(_ value: Value) throws -> [UInt8] {
        Array(try JSONEncoder().encode(value))
    }

    func decode(_ bytes: RawSpan) throws -> Value {
        let data = unsafe bytes.withUnsafeBytes { unsafe Data($0) }
        return try JSONDecoder().decode(Value.self, from: data)
    }
}

private struct Order: Codable, Hashable, Sendable {
    var customer: String
    var tins: Int
    var notes: [String]
}

@Suite("Typed datasets")
struct TypedDatasetTests {
    @Test("Codable values through JSON, as records and as plain bytes")
    func json() throws {
        let fixture = try StoreFixture()
        let orders = TypedDataset(fixture.dataset, String.self, JSONCoding<Order>())
        let order = Order(customer: "Ada", tins: 2, notes: ["red", "quick"])
        let dot = try orders.put(order, for: "order-17")
        #expect(try orders.get("order-17") == order && orders.contains("order-17"))
        #expect(try orders.version(of: "order-17") == dot)
        #expect(try orders.get("order-18") == nil)
        #expect(try fixture.dataset.text("order-17")?.contains("\"Ada\"") == true)
        try fixture.dataset.put("no order", for: "order-19")
        #expect(throws: DecodingError.self) { try orders.get("order-19") }
        #expect(throws: DecodingError.self) { try orders.records() }
        #expect(try orders.keys() == ["order-17", "order-19"])
        try orders.delete("order-19")
        let (store, reopened) = try fixture.reopened()
        let again = TypedDataset(reopened, String.self, JSONCoding<Order>())
        #expect(try again.records(in: .prefix("order-")).map(\.value) == [order])
        try store.close()
    }

    @Test("Walks give keys as they sort, in ranges of keys", arguments: [false, true])
    func walks(compacts: Bool) {
        withSeed { seed in
            let fixture = try StoreFixture()
            let dataset = TypedDataset(
                fixture.dataset, KeyPair<String, Int32>.self, IntegerCoding<Int64>())
            var generator = SeededGenerator(seed)
            var model: [KeyPair<String, Int32>: Int64] = [:]
            for _ in 0..<500 {
                let key = KeyPair(
                    generator.element(of: ["a", "b", "b\0", "ba", ""]),
                    Int32(generator.below(100) - 50))
                model[key] = Int64(truncatingIfNeeded: generator.next())
                try dataset.put(model[key] ?? 0, for: key)
            }
            if compacts { try fixture.store.compact() }
            let sorted = model.keys.sorted()
            try require(try dataset.keys() == sorted, "keys")
            try require(try dataset.keys(order: .backward) == sorted.reversed(), "backward")
            let records = try dataset.records()
            try require(records.map(\.value) == sorted.map { model[$0] ?? 0 }, "values")
            for name in ["a", "b", "b\0", "ba", "", "none"] {
                let expected = sorted.filter { $0.first == name }
                try require(try dataset.keys(in: .having(name)) == expected, "having \(name)")
            }
            let (low, high) = (sorted[100], sorted[150])
            try require(
                try dataset.keys(in: TypedKeyRange(from: low, upTo: high))
                    == Array(sorted[100..<150]), "a range")
            try require(
                try dataset.keys(in: TypedKeyRange(from: low, through: high), limit: 7)
                    == Array(sorted[100..<107]), "a limit")
        }
    }

    @Test("Texts, bytes and integers come back, and other bytes are an error")
    func codings() throws {
        let fixture = try StoreFixture()
        let texts = TypedDataset(fixture.dataset, Int.self, TextCoding())
        let raw = TypedDataset(fixture.dataset, Int.self, BytesCoding())
        let numbers = TypedDataset(fixture.dataset, Int.self, IntegerCoding<Int32>())
        for text in ["", "é", "two\nlines"] {
            try texts.put(text, for: -1)
            #expect(try texts.get(-1) == text && raw.get(-1) == bytes(text))
        }
        for number: Int32 in [.min, -1, 0, 1, 0x0102_0304, .max] {
            try numbers.put(number, for: 1)
            #expect(try numbers.get(1) == number)
        }
        try raw.put([4, 3, 2, 1], for: 1)
        #expect(try numbers.get(1) == 0x0102_0304)
        try raw.put([0xFF, 0, 0], for: 1)
        expectError(.invalidArgument) { try numbers.get(1) }
        expectError(.invalidArgument) { try texts.get(1) }
        try fixture.dataset.put("not 8 bytes", for: "no number")
        expectError(.invalidArgument) { try raw.keys() }
    }

    @Test("In batches, in transactions, and with conditions")
    func together() throws {
        let fixture = try StoreFixture()
        let counts = TypedDataset(fixture.dataset, String.self, IntegerCoding<Int>())
        var batch = WriteBatch()
        try counts.put(1, for: "a", in: &batch)
        try counts.put(2, for: "b", in: &batch)
        try fixture.store.write(batch)
        let sum = try fixture.store.transaction { transaction in
            let sum =
                (try counts.get("a", in: transaction) ?? 0)
                + (try counts.get("b", in: transaction) ?? 0)
            try counts.put(sum, for: "sum", in: transaction)
            try counts.delete("a", in: transaction)
            return sum
        }
        #expect(try sum == 3 && counts.get("sum") == 3 && counts.get("a") == nil)
        let dot = try counts.version(of: "b")
        try counts.put(5, for: "b", ifAt: dot)
        expectError(.versionMismatch) { try counts.put(6, for: "b", ifAt: dot) }
        #expect(try counts.get("b") == 5)
    }
}
