import TidemarkSync

/// Reads the JSON that operations take, member by member. What no operation knows is passed over,
/// as the real service does.
struct ConfigurationBody: Sendable {
    private let object: JSONObject

    /// - Parameter bytes: of the request; none stand for an object without members.
    /// - Throws: `serialization` for what is no object of JSON, or beyond ``JSONLimits``.
    init(_ bytes: [UInt8]) throws(APIFailure) {
        guard !bytes.isEmpty else {
            object = JSONObject()
            return
        }
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONValue(parsing: bytes)
        } catch {
            throw APIFailure(.serialization, "the body is not JSON: \(error)")
        }
        guard case .object(let object) = value else {
            throw APIFailure(.serialization, "the body is not an object of JSON")
        }
        self.object = object
    }

    private init(_ object: JSONObject) {
        self.object = object
    }

    /// nil if it is missing, or null.
    ///
    /// - Throws: `serialization` if it is something else.
    func text(_ member: String) throws(APIFailure) -> String? {
        switch object[member] {
        case nil, .null?: nil
        case .string(let text)?: text
        default: throw Self.wrongType(member, "text")
        }
    }

    /// - Throws: `invalidParameter` if it is missing, else as ``text(_:)``.
    func requiredText(_ member: String) throws(APIFailure) -> String {
        guard let text = try text(member) else {
            throw APIFailure(.invalidParameter, "\(member) is missing")
        }
        return text
    }

    func texts(_ member: String) throws(APIFailure) -> [String]? {
        switch object[member] {
        case nil, .null?:
            return nil
        case .array(let elements)?:
            var texts: [String] = []
            for element in elements {
                guard let text = element.text else { throw Self.wrongType(member, "texts") }
                texts.append(text)
            }
            return texts
        default:
            throw Self.wrongType(member, "an array")
        }
    }

    func structure(_ member: String) throws(APIFailure) -> ConfigurationBody? {
        switch object[member] {
        case nil, .null?: nil
        case .object(let object)?: ConfigurationBody(object)
        default: throw Self.wrongType(member, "an object")
        }
    }

    /// The names of all members.
    var names: [String] { object.members.map(\.name) }

    private static func wrongType(_ member: String, _ type: String) -> APIFailure {
        APIFailure(.serialization, "\(member) is not \(type)")
    }
}

/// The rules of the service model for what configures a pool.
enum PoolRules {
    /// `arn:aws:sns:[-0-9a-z]+:\d+:app/[A-Z_]+/[a-zA-Z0-9_.-]+`
    static func isApplicationARN(_ text: String) -> Bool {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 6, parts[0] == "arn", parts[1] == "aws", parts[2] == "sns",
            isOf(parts[3], { isDigit($0) || isLower($0) || $0 == UInt8(ascii: "-") }),
            isOf(parts[4], isDigit)
        else { return false }
        let names = parts[5].split(separator: "/", omittingEmptySubsequences: false)
        return names.count == 3 && names[0] == "app"
            && isOf(names[1], { isUpper($0) || $0 == UInt8(ascii: "_") })
            && isOf(
                names[2],
                { byte in
                    isDigit(byte) || isLower(byte) || isUpper(byte)
                        || [UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "-")]
                            .contains(byte)
                })
    }

    /// `arn:aws:iam::\d+:role/.*` in 20...2,048 characters.
    static func isRoleARN(_ text: String) -> Bool {
        let prefix = "arn:aws:iam::"
        guard (20...2_048).contains(text.unicodeScalars.count), text.hasPrefix(prefix) else {
            return false
        }
        let parts = text.dropFirst(prefix.count)
            .split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return parts.count == 2 && isOf(parts[0], isDigit) && parts[1].hasPrefix("role/")
    }

    /// 1...128 characters.
    static func isStreamName(_ text: String) -> Bool {
        (1...128).contains(text.unicodeScalars.count)
    }

    /// Of a trigger: any text, since the model has no rule, but bounded.
    static func isTriggerName(_ text: String) -> Bool {
        (1...2_048).contains(text.unicodeScalars.count)
    }

    private static func isOf(_ text: Substring, _ isAllowed: (UInt8) -> Bool) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy(isAllowed)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static func isLower(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
    }

    private static func isUpper(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
    }
}
