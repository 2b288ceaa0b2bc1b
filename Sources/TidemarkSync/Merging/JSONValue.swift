// Why not Foundation's JSON: a merge must come to the same bytes on every replica, whatever the
// platform and its version. Foundation turns numbers into doubles, forgets the order of names,
// keeps one of two equal names without a word, and its output has changed between releases.

/// A JSON value (RFC 8259) that keeps what was written: numbers by their digits, names in their
/// order.
///
/// Two values are equal if they say the same: members of an object in any order, texts by their
/// Unicode scalars, numbers by their digits (`1.0` is not `1`, because a program may tell them
/// apart).
///
/// ```swift
/// let note = try JSONValue(parsing: bytes)
/// let title = note["title"]?.text
/// ```
public enum JSONValue: Sendable {
    case null
    case bool(Bool)
    case number(JSONNumber)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)
}

extension JSONValue {
    /// The member of an object; nil if there is none or this is no object, and then setting one
    /// changes nothing. O(members).
    public subscript(name: String) -> JSONValue? {
        get {
            guard case .object(let object) = self else { return nil }
            return object[name]
        }
        set {
            guard case .object(var object) = self else { return }
            object[name] = newValue
            self = .object(object)
        }
    }

    /// The text of a string.
    public var text: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }

    /// The elements of an array.
    public var elements: [JSONValue]? {
        guard case .array(let elements) = self else { return nil }
        return elements
    }

    /// A number that is written as an integer and fits.
    public var integer: Int? {
        guard case .number(let number) = self else { return nil }
        return Int(number.digits)
    }
}

extension JSONValue: Hashable {
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.bool(let left), .bool(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.string(let left), .string(let right)): ExactText(left) == ExactText(right)
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0)
        case .bool(let value): hasher.combine(value)
        case .number(let number): hasher.combine(number)
        case .string(let text): hasher.combine(ExactText(text))
        case .array(let elements): hasher.combine(elements)
        case .object(let object): hasher.combine(object)
        }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral text: String) {
        self = .string(text)
    }

    public init(integerLiteral value: Int) {
        self = .number(JSONNumber(value))
    }

    public init(booleanLiteral value: Bool) {
        self = .bool(value)
    }

    public init(arrayLiteral elements: JSONValue...) {
        self = .array(elements)
    }

    public init(dictionaryLiteral members: (String, JSONValue)...) {
        self = .object(JSONObject(members))
    }
}

extension JSONValue: CustomStringConvertible {
    /// The JSON text.
    public var description: String { String(decoding: encoded, as: UTF8.self) }
}

/// A number by its digits, of any length.
public struct JSONNumber: Hashable, Sendable, CustomStringConvertible {
    /// As JSON writes it: `-12.50e3`.
    public let digits: String

    /// nil if the text is no JSON number.
    public init?(_ digits: String) {
        var parser = JSONParser(Array(digits.utf8))
        guard let number = try? parser.takeNumber(), parser.isAtEnd else { return nil }
        self = number
    }

    public init(_ value: Int) {
        digits = String(value)
    }

    init(checked digits: String) {
        self.digits = digits
    }

    public var description: String { digits }
}

/// The members of a JSON object in their order, no name twice.
public struct JSONObject: Sendable {
    public struct Member: Sendable {
        public let name: String
        public internal(set) var value: JSONValue
    }

    public private(set) var members: [Member]

    public init() {
        members = []
    }

    /// Of members with one name the last counts, at the place of the first. O(members).
    public init(_ members: some Sequence<(String, JSONValue)>) {
        self.members = []
        var indexes: [ExactText: Int] = [:]
        for (name, value) in members {
            if let index = indexes[ExactText(name)] {
                self.members[index].value = value
            } else {
                indexes[ExactText(name)] = self.members.count
                self.members.append(Member(name: name, value: value))
            }
        }
    }

    init(checked members: [Member]) {
        self.members = members
    }

    /// O(members). A new name goes to the end; nil removes the member.
    public subscript(name: String) -> JSONValue? {
        get {
            members.first { ExactText($0.name) == ExactText(name) }?.value
        }
        set {
            let index = members.firstIndex { ExactText($0.name) == ExactText(name) }
            switch (index, newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
            case (nil, let value?): members.append(Member(name: name, value: value))
            case (nil, nil): break
            }
        }
    }

    /// For many look-ups.
    var valuesByName: [ExactText: JSONValue] {
        Dictionary(
            members.map { (ExactText($0.name), $0.value) }, uniquingKeysWith: { first, _ in first })
    }
}

extension JSONObject: Hashable {
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        guard left.members.count == right.members.count else { return false }
        // Mostly they have one order.
        let isOrderEqual = zip(left.members, right.members).allSatisfy { left, right in
            ExactText(left.name) == ExactText(right.name)
        }
        if isOrderEqual {
            return zip(left.members, right.members).allSatisfy { $0.value == $1.value }
        }
        let values = right.valuesByName
        return left.members.allSatisfy { values[ExactText($0.name)] == $0.value }
    }

    public func hash(into hasher: inout Hasher) {
        // A sum, because the order must not count.
        var sum = 0
        for member in members {
            var own = Hasher()
            own.combine(ExactText(member.name))
            own.combine(member.value)
            sum &+= own.finalize()
        }
        hasher.combine(members.count)
        hasher.combine(sum)
    }
}

/// A text that is compared by its bytes. `String` takes an é in one scalar and in two for equal;
/// to JSON they are two texts.
struct ExactText: Hashable {
    let text: String

    init(_ text: String) {
        self.text = text
    }

    static func == (left: ExactText, right: ExactText) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8)
    }

    func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { unsafe hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
