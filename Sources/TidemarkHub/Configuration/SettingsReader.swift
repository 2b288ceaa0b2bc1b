import Configuration
import Foundation

/// A setting from the command line.
public enum SettingValue: Hashable, Sendable {
    case text(String)
    case number(Int)
    case flag(Bool)
    case list([String])
}

/// Reads single settings: from the command line, else from the environment, else from a file.
///
/// A setting `a.bC` is called `a: {bC: …}` in the file, which is JSON, and `TIDEMARK_A_B_C` in the
/// environment. What was asked for is remembered, so that a name in the file which means nothing,
/// and is most likely spelled wrong, can be told.
///
/// Secrets are in files of their own, whose paths are settings, or in the environment. Never do
/// they stand in the settings' file or on the command line, which others can see.
struct SettingsReader {
    private let layers: [any ConfigSnapshot]
    private let environment: any ConfigSnapshot
    /// Names of the environment that can only be meant for the hub.
    private let variableNames: [String]
    /// What the file has, each key in full.
    private let fileKeys: Set<String>
    private(set) var askedKeys: Set<String> = []
    /// What the environment alone may hold.
    private(set) var askedSecrets: Set<String> = []

    /// Bytes of a file that is read.
    static let fileBytesMax = 1 << 20

    /// - Throws: if the file cannot be read or is no JSON object of texts, numbers, truths and
    ///   lists of them.
    init(
        file: String?, environment variables: [String: String], flags: [String: SettingValue]
    ) throws(HubSettingsError) {
        var values: [AbsoluteConfigKey: ConfigValue] = [:]
        for (key, value) in flags {
            values[Self.key(key)] = ConfigValue(Self.content(of: value), isSecret: false)
        }
        variableNames = variables.keys.filter { $0.hasPrefix(SettingNames.variablePrefix) }
        environment = EnvironmentVariablesProvider(environmentVariables: variables)
            .prefixKeys(with: "tidemark").snapshot()
        var layers: [any ConfigSnapshot] = [
            InMemoryProvider(name: "flags", values: values).snapshot(), environment,
        ]
        if let file {
            let bytes = try Self.contents(of: file, setting: "config")
            let added = try Self.adding(bytes, file, to: layers)
            layers = added.layers
            fileKeys = added.keys
        } else {
            fileKeys = []
        }
        self.layers = layers
    }

    private static func adding(
        _ bytes: [UInt8], _ file: String, to layers: [any ConfigSnapshot]
    ) throws(HubSettingsError) -> (layers: [any ConfigSnapshot], keys: Set<String>) {
        do {
            let data = Data(bytes)
            let snapshot = try JSONSnapshot(
                data: data.bytes, providerName: file, parsingOptions: .default)
            let object = try JSONSerialization.jsonObject(with: data)
            return (layers: layers + [snapshot], keys: keys(of: object, below: ""))
        } catch {
            throw HubSettingsError(
                "config", value: file,
                allowed: "a JSON object of objects, texts, numbers, truths and lists of texts "
                    + "(\(error))")
        }
    }

    // MARK: Single settings

    /// nil if it is nowhere.
    ///
    /// - Throws: if it is no text where it stands first.
    mutating func text(_ key: String) throws(HubSettingsError) -> String? {
        guard case .string(let text)? = try content(key, .string, "a text") else { return nil }
        return text
    }

    mutating func number(_ key: String) throws(HubSettingsError) -> Int? {
        guard case .int(let number)? = try content(key, .int, "a whole number") else { return nil }
        return number
    }

    mutating func truth(_ key: String) throws(HubSettingsError) -> Bool? {
        guard case .bool(let truth)? = try content(key, .bool, "true or false") else { return nil }
        return truth
    }

    /// In the environment with commas between.
    mutating func list(_ key: String) throws(HubSettingsError) -> [String]? {
        let found = try content(key, .stringArray, "a list of texts")
        guard case .stringArray(let list)? = found else { return nil }
        return list.filter { !$0.isEmpty }
    }

    /// One of the cases of an enumeration.
    mutating func choice<Choice: RawRepresentable & CaseIterable>(
        _ key: String, _ type: Choice.Type
    ) throws(HubSettingsError) -> Choice? where Choice.RawValue == String {
        guard let text = try text(key) else { return nil }
        guard let choice = Choice(rawValue: text) else {
            throw HubSettingsError(
                key, value: text,
                allowed: Choice.allCases.map(\.rawValue).joined(separator: ", "))
        }
        return choice
    }

    /// What a file holds whose path is the setting `keyFile`, else the environment's variable of
    /// `key` itself. Without blanks and ends of lines around it.
    mutating func secret(_ key: String) throws(HubSettingsError) -> HubSecret? {
        askedSecrets.insert(key)
        let text: String
        if let path = try self.text("\(key)File") {
            let bytes = try Self.contents(of: path, setting: "\(key)File")
            guard let decoded = String(validating: bytes, as: UTF8.self) else {
                throw HubSettingsError("\(key)File", value: path, allowed: "a file of UTF-8")
            }
            text = decoded
        } else {
            let found = try? environment.value(forKey: Self.key(key), type: .string)
            guard case .string(let value)? = found?.value?.content else { return nil }
            text = value
        }
        let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard !trimmed.isEmpty else {
            throw HubSettingsError("\(key)File", allowed: "a file that holds a secret")
        }
        return HubSecret(trimmed)
    }

    /// As `secret`, for what cannot go without one.
    mutating func requiredSecret(_ key: String) throws(HubSettingsError) -> HubSecret {
        guard let secret = try secret(key) else {
            throw HubSettingsError(
                "\(key)File",
                allowed: "the path of a file that holds a secret, or the secret itself in the "
                    + "environment")
        }
        return secret
    }

    mutating func required(_ key: String) throws(HubSettingsError) -> String {
        guard let text = try text(key) else {
            throw HubSettingsError(key, allowed: "a text; it must not be missing")
        }
        return text
    }

    /// Names of settings that come more than once, such as `pools`: each has its own below
    /// `pool.NAME`.
    mutating func names(_ key: String) throws(HubSettingsError) -> [String] {
        let names = try list(key) ?? []
        for name in names {
            let isName =
                (1...64).contains(name.utf8.count)
                && name.utf8.allSatisfy(HubSettings.isWordOrDash)
            guard isName, names.filter({ $0 == name }).count == 1 else {
                throw HubSettingsError(
                    key, value: name,
                    allowed: "names of 1...64 of A-Z, a-z, 0-9, _ and -, each once")
            }
        }
        return names
    }

    /// - Throws: for a name in the file that nothing has asked for.
    func checkUnknownKeys() throws(HubSettingsError) {
        guard let unknown = fileKeys.subtracting(askedKeys).min() else { return }
        let alike = SettingNames.alike(unknown, among: askedKeys)
        throw HubSettingsError(
            unknown,
            allowed: "only names that the article Hub lists; secrets stand in files of their own "
                + "or in the environment\(SettingNames.hint(alike))")
    }

    /// A line for each variable of the environment that looks like a setting and is none. No
    /// mistake to fail for, since others may have set it, but most likely one of spelling. Says
    /// nothing of what it holds.
    func unknownVariables() -> [String] {
        let known = Set(askedKeys.union(askedSecrets).map { SettingNames.variable(of: $0) })
        return variableNames.filter { !known.contains($0) }.sorted().map { name in
            let hint = SettingNames.hint(SettingNames.alike(name, among: known))
            return "\(name.prefix(200)) in the environment is no setting\(hint)"
        }
    }

    // MARK: Parts

    private mutating func content(
        _ key: String, _ type: ConfigType, _ allowed: String
    ) throws(HubSettingsError) -> ConfigContent? {
        askedKeys.insert(key)
        for layer in layers {
            do {
                let found = try layer.value(forKey: Self.key(key), type: type)
                if let value = found.value { return value.content }
            } catch {
                throw HubSettingsError(key, allowed: allowed)
            }
        }
        return nil
    }

    private static func key(_ key: String) -> AbsoluteConfigKey {
        AbsoluteConfigKey(key.split(separator: ".").map(String.init))
    }

    private static func content(of value: SettingValue) -> ConfigContent {
        switch value {
        case .text(let text): .string(text)
        case .number(let number): .int(number)
        case .flag(let flag): .bool(flag)
        case .list(let list): .stringArray(list)
        }
    }

    /// Those of the leaves; a list is one.
    private static func keys(of object: Any, below prefix: String) -> Set<String> {
        guard let members = object as? [String: Any] else { return [prefix] }
        var keys: Set<String> = []
        for (name, value) in members {
            keys.formUnion(
                Self.keys(of: value, below: prefix.isEmpty ? name : "\(prefix).\(name)"))
        }
        return keys
    }

    private static func contents(
        of path: String, setting: String
    ) throws(HubSettingsError) -> [UInt8] {
        let problem: String
        do {
            guard let handle = FileHandle(forReadingAtPath: path) else {
                throw CocoaError(.fileReadNoSuchFile)
            }
            defer { try? handle.close() }
            let data = try handle.read(upToCount: fileBytesMax + 1) ?? Data()
            guard data.count > fileBytesMax else { return Array(data) }
            problem = "the file has more than \(fileBytesMax) bytes"
        } catch {
            problem = "the file cannot be read"
        }
        throw HubSettingsError(
            setting, value: path, allowed: "the path of a file that the hub may read; \(problem)")
    }
}
