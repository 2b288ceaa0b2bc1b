import TestSupport
import Testing
import Tidemark

private typealias Triple = KeyPair<String, KeyPair<Int16, [UInt8]>>

private struct OrderKey: OrderedKey, Hashable, Comparable {
    var customer: String
    var number: UInt32

    init(_ customer: String, _ number: UInt32) {
        self.customer = customer
        self.number = number
    }

    func append(to bytes: inout KeyBytes) {
        bytes.append(customer)
        bytes.append(number)
    }

    init(from reader: inout KeyBytesReader) throws(StoreError) {
        customer = try reader.next()
        number = try reader.next()
    }

    static func < (left: OrderKey, right: OrderKey) -> Bool {
        left.customer != right.customer
            ? Bytes.precedes(Array(left.customer.utf8), Array(right.customer.utf8))
            : left.number < right.number
    }
}

/// For any two values of a key type: the order of their bytes is their own, equal ones have equal
/// bytes, and each comes back as it was.
@Suite("Keys with an order")
struct KeyCodingTests {
    private func check<Key: OrderedKey & Equatable>(
        _ draw: (inout SeededGenerator) -> Key, precedes: @escaping (Key, Key) -> Bool
    ) {
        withSeed { seed in
            var generator = SeededGenerator(seed)
            for _ in 0..<3_000 {
                let (one, two) = (draw(&generator), draw(&generator))
                let (first, second) = (one.keyBytes, two.keyBytes)
                try require(try Key(keyBytes: first) == one, "\(one) came back otherwise")
                try require((first == second) == (one == two), "\(one) and \(two)")
                try require(
                    Bytes.precedes(first, second) == precedes(one, two), "\(one) and \(two)")
                // Within a larger key, whatever follows.
                let tails = (UInt8.random(in: 0...255, using: &generator), UInt8(255))
                let (left, right) = (KeyPair(one, tails.0), KeyPair(two, tails.1))
                try require(try KeyPair(keyBytes: left.keyBytes) == left, "\(left) in a pair")
                if one != two {
                    try require(
                        Bytes.precedes(left.keyBytes, right.keyBytes) == precedes(one, two),
                        "\(one) and \(two) in pairs")
                }
            }
        }
    }

    private func text(_ generator: inout SeededGenerator) -> String {
        String(
            (0..<generator.below(4)).map { _ in
                generator.element(of: ["\0", "\u{1}", "a", "b", "é", "\u{FFFF}", "😀"])
            }.joined())
    }

    private func octets(_ generator: inout SeededGenerator) -> [UInt8] {
        (0..<generator.below(4)).map { _ in generator.element(of: [0, 1, 0x7F, 0xFE, 0xFF]) }
    }

    private func textPrecedes(_ one: String, _ two: String) -> Bool {
        Bytes.precedes(Array(one.utf8), Array(two.utf8))
    }

    private func integers<Number: FixedWidthInteger & OrderedKey>(_ type: Number.Type) {
        let edges: [Number] = [.min, .min + 1, 0, 1, .max - 1, .max]
        check(
            { generator in
                generator.oneIn(2)
                    ? generator.element(of: edges) : Number(truncatingIfNeeded: generator.next())
            }, precedes: <)
    }

    @Test("Integers of every width")
    func numbers() {
        integers(Int.self)
        integers(Int8.self)
        integers(Int16.self)
        integers(Int32.self)
        integers(Int64.self)
        integers(UInt8.self)
        integers(UInt16.self)
        integers(UInt32.self)
        integers(UInt64.self)
        #expect(UInt32(0x0102_0304).keyBytes == [1, 2, 3, 4])
        #expect(Int16(-1).keyBytes == [0x7F, 0xFF])
    }

    @Test("Texts, bytes, arrays, pairs, and a type of one's own")
    func compounds() {
        check(text, precedes: textPrecedes)
        check(octets, precedes: Bytes.precedes)
        check(
            { generator in
                (0..<generator.below(4)).map { _ in Int8(truncatingIfNeeded: generator.next()) }
            }, precedes: { $0.lexicographicallyPrecedes($1) })
        check(
            { generator in (0..<generator.below(3)).map { _ in text(&generator) } },
            precedes: { $0.lexicographicallyPrecedes($1, by: textPrecedes) })
        check(
            { generator in OrderKey(text(&generator), UInt32(generator.below(3))) }, precedes: <)
        check(
            { generator in
                Triple(
                    text(&generator), KeyPair(Int16(generator.below(3) - 1), octets(&generator)))
            }, precedes: triplePrecedes)
    }

    private func triplePrecedes(_ one: Triple, _ two: Triple) -> Bool {
        if one.first != two.first { return textPrecedes(one.first, two.first) }
        let (left, right) = (one.second, two.second)
        if left.first != right.first { return left.first < right.first }
        return Bytes.precedes(left.second, right.second)
    }

    @Test("A text or bytes alone are their own key")
    func plain() throws {
        #expect("order-17".keyBytes == bytes("order-17"))
        #expect([UInt8]([0, 1]).keyBytes == [0, 1])
    }

    @Test("Bytes of no such value are an error, and never a trap")
    func hostile() {
        expectError(.invalidArgument) { try UInt32(keyBytes: [1, 2, 3]) }
        expectError(.invalidArgument) { try UInt32(keyBytes: [1, 2, 3, 4, 5]) }
        expectError(.invalidArgument) { try String(keyBytes: [0xFF]) }
        expectError(.invalidArgument) { try KeyPair<String, String>(keyBytes: bytes("a")) }
        expectError(.invalidArgument) { try KeyPair<String, UInt8>(keyBytes: [0x61, 0, 7, 1]) }
        expectError(.invalidArgument) { try [UInt16](keyBytes: [2, 0, 0]) }
        withSeed { seed in
            var generator = SeededGenerator(seed)
            for _ in 0..<5_000 {
                let raw = octets(&generator) + octets(&generator)
                guard let key = try? Triple(keyBytes: raw) else { continue }
                try require(key.keyBytes == raw, "\(raw) is a second form of \(key)")
            }
        }
    }
}
