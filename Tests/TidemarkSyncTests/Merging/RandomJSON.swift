import TidemarkSync

/// Small documents from a small alphabet, so that equal things meet.
struct RandomJSON {
    var random: SeededGenerator

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    mutating func value(depth: Int = 3) -> JSONValue {
        switch below(depth > 0 ? 8 : 5) {
        case 0: return .null
        case 1: return .bool(below(2) == 0)
        case 2: return number()
        case 3, 4: return .string(text())
        case 5: return .array(list(depth: depth - 1))
        default: return object(depth: depth - 1)
        }
    }

    mutating func number() -> JSONValue {
        let digits = ["0", "-1", "1", "1.0", "12e-3", "123456789012345678901234567890", "-0"]
        return JSONNumber(digits[below(digits.count)]).map { .number($0) } ?? .null
    }

    mutating func text() -> String {
        let texts = [
            "", "a", "b", "é", "e\u{301}", "\"\\/\u{8}\u{1}\n", "日本", "🐟", "\u{7f}\u{2028}",
        ]
        return texts[below(texts.count)]
    }

    mutating func list(depth: Int) -> [JSONValue] {
        (0..<below(5)).map { _ in value(depth: depth) }
    }

    mutating func object(depth: Int) -> JSONValue {
        .object(JSONObject((0..<below(5)).map { _ in (text(), value(depth: depth)) }))
    }
}
