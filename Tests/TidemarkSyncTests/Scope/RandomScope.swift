import Tidemark

@testable import TidemarkSync

/// Scopes over a few keys and small documents, each with a second opinion on what it means.
struct RandomScope {
    /// A condition and what it says of a key and a document; nil for a value that is no JSON.
    struct Condition {
        let scope: SyncScope
        let holds: (_ key: [UInt8], _ document: JSONValue?) -> Bool
    }

    static let keys = ["a", "a/", "a/b", "a/b/c", "b", "b/\u{7f}", "c", "é", "\u{0}"].map {
        Array($0.utf8)
    }
    static let names = ["n", "t", "é"]

    var json: RandomJSON

    init(seed: UInt64) {
        json = RandomJSON(seed: seed)
    }

    mutating func below(_ bound: Int) -> Int { json.below(bound) }

    mutating func key() -> [UInt8] { Self.keys[below(Self.keys.count)] }

    /// Mostly an object with some of the names; at times another value, at times no JSON at all.
    mutating func value() -> [UInt8] {
        guard below(6) > 0 else { return Array("{not json".utf8) }
        guard below(6) > 0 else { return json.value().encoded }
        var members: [(String, JSONValue)] = []
        for name in Self.names where below(3) > 0 { members.append((name, json.value(depth: 2))) }
        return JSONValue.object(JSONObject(members)).encoded
    }

    mutating func condition(depth: Int = 3) -> Condition {
        switch below(depth > 0 ? 9 : 5) {
        case 0: return prefix()
        case 1: return range()
        case 2, 3, 4: return field()
        case 5:
            let part = condition(depth: depth - 1)
            return Condition(scope: !part.scope) { !part.holds($0, $1) }
        case 6, 7:
            let (one, two) = (condition(depth: depth - 1), condition(depth: depth - 1))
            return Condition(scope: one.scope && two.scope) { key, document in
                one.holds(key, document) && two.holds(key, document)
            }
        default:
            let (one, two) = (condition(depth: depth - 1), condition(depth: depth - 1))
            return Condition(scope: one.scope || two.scope) { key, document in
                one.holds(key, document) || two.holds(key, document)
            }
        }
    }

    private mutating func prefix() -> Condition {
        let prefix = Array(key().prefix(1 + below(3)))
        return Condition(scope: .prefix(prefix)) { key, _ in key.starts(with: prefix) }
    }

    private mutating func range() -> Condition {
        let (lower, upper) = (below(3) > 0 ? key() : nil, below(3) > 0 ? key() : nil)
        let range = KeyRange(from: lower, upTo: upper)
        return Condition(scope: .keys(in: range)) { key, _ in
            let isAfter = lower.map { !key.lexicographicallyPrecedes($0) } ?? true
            return isAfter && upper.map { key.lexicographicallyPrecedes($0) } ?? true
        }
    }

    private mutating func operand() -> SyncScope.Operand {
        switch json.value(depth: 0) {
        case .bool(let value): .bool(value)
        case .number(let number): .number(number)
        case .string(let text): .text(text)
        default: .null
        }
    }

    private mutating func field() -> Condition {
        let name = Self.names[below(Self.names.count)]
        let operand = operand()
        let test: SyncScope.Test =
            switch below(8) {
            case 0: .exists
            case 1: .isLess(than: operand)
            case 2: .isAtMost(operand)
            case 3: .isGreater(than: operand)
            case 4: .isAtLeast(operand)
            case 5: .contains(operand)
            case 6: .hasPrefix(json.text())
            default: .equals(operand)
            }
        return Condition(scope: .field([name], test)) { _, document in
            guard case .object(let object)? = document,
                let value = object.members.first(where: { Self.isSame($0.name, name) })?.value
            else { return false }
            return Self.passes(value, test)
        }
    }

    // MARK: - The second opinion

    private static func isSame(_ one: String, _ other: String) -> Bool {
        Array(one.utf8) == Array(other.utf8)
    }

    /// The few numbers of the generator are all different as doubles, if they differ at all.
    private static func worth(_ number: JSONNumber) -> Double { Double(number.digits) ?? .nan }

    private static func isEqual(_ value: JSONValue, _ operand: SyncScope.Operand) -> Bool {
        switch (value, operand) {
        case (.null, .null): true
        case (.bool(let one), .bool(let other)): one == other
        case (.number(let one), .number(let other)): worth(one) == worth(other)
        case (.string(let one), .text(let other)): isSame(one, other)
        default: false
        }
    }

    private static func isLess(_ value: JSONValue, _ operand: SyncScope.Operand) -> Bool {
        switch (value, operand) {
        case (.number(let one), .number(let other)): worth(one) < worth(other)
        case (.string(let one), .text(let other)):
            Array(one.utf8).lexicographicallyPrecedes(Array(other.utf8))
        default: false
        }
    }

    private static func isGreater(_ value: JSONValue, _ operand: SyncScope.Operand) -> Bool {
        switch (value, operand) {
        case (.number(let one), .number(let other)): worth(one) > worth(other)
        case (.string(let one), .text(let other)):
            Array(other.utf8).lexicographicallyPrecedes(Array(one.utf8))
        default: false
        }
    }

    private static func contains(_ value: JSONValue, _ operand: SyncScope.Operand) -> Bool {
        switch (value, operand) {
        case (.array(let elements), _): return elements.contains { isEqual($0, operand) }
        case (.string(let text), .text(let part)):
            let (text, part) = (Array(text.utf8), Array(part.utf8))
            return (0...text.count).contains { text[$0...].starts(with: part) }
        default: return false
        }
    }

    private static func passes(_ value: JSONValue, _ test: SyncScope.Test) -> Bool {
        switch test {
        case .exists: true
        case .equals(let operand): isEqual(value, operand)
        case .isLess(let operand): isLess(value, operand)
        case .isAtMost(let operand): isLess(value, operand) || isEqual(value, operand)
        case .isGreater(let operand): isGreater(value, operand)
        case .isAtLeast(let operand): isGreater(value, operand) || isEqual(value, operand)
        case .contains(let operand): contains(value, operand)
        case .hasPrefix(let prefix):
            value.text.map { Array($0.utf8).starts(with: Array(prefix.utf8)) } ?? false
        }
    }
}
