import Foundation
import Testing

@testable import TidemarkHub

/// What articles say of tests and settings is so.
@Suite struct ArticleTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    private static let repository = folder.deletingLastPathComponent().deletingLastPathComponent()

    private static func article(_ name: String) throws -> String {
        try String(
            contentsOf: repository.appendingPathComponent(
                "Sources/TidemarkHub/TidemarkHub.docc/\(name).md"), encoding: .utf8)
    }

    /// The cells of all rows of its tables, each as the texts in it that stand between backticks.
    private static func rows(of article: String) -> [[[String]]] {
        article.split(separator: "\n").filter { $0.hasPrefix("|") }.map { row in
            row.split(separator: "|").map { cell in
                let parts = cell.split(separator: "`", omittingEmptySubsequences: false)
                return parts.indices.filter { $0 % 2 == 1 }.map { String(parts[$0]) }
            }
        }
    }

    // MARK: - Tests

    private struct NamedTest: Hashable {
        let suite: String
        /// nil for all of a suite.
        var name: String?
    }

    /// `SuiteTests`, `SuiteTests.name`, and `name` behind one of those for the same suite.
    private static func namedTests(in article: String) -> Set<NamedTest> {
        var found: Set<NamedTest> = []
        for cell in rows(of: article).compactMap(\.last) {
            var suite: String?
            for text in cell {
                let parts = text.split(separator: ".").map(String.init)
                if let first = parts.first, first.hasSuffix("Tests"), parts.count <= 2 {
                    suite = first
                    found.insert(NamedTest(suite: first, name: parts.count == 2 ? parts[1] : nil))
                } else if let suite, parts.count == 1, !text.contains("/") {
                    found.insert(NamedTest(suite: suite, name: text))
                }
            }
        }
        return found
    }

    /// The functions of each suite that are tests, by the suite's name.
    private static func tests() throws -> [String: Set<String>] {
        let tests = repository.appendingPathComponent("Tests")
        let paths = try #require(FileManager.default.enumerator(atPath: tests.path))
        var found: [String: Set<String>] = [:]
        for case let path as String in paths where path.hasSuffix("Tests.swift") {
            let text = try String(
                contentsOf: tests.appendingPathComponent(path), encoding: .utf8)
            let suite = String(path.split(separator: "/").last?.dropLast(".swift".count) ?? "")
            var isTest = false
            for line in text.split(separator: "\n") {
                let words = line.drop { $0 == " " }
                if words.hasPrefix("@Test") { isTest = true }
                guard isTest, let place = words.firstRange(of: "func ") else { continue }
                let name = words[place.upperBound...].prefix { $0 != "(" }
                found[suite, default: []].insert(String(name))
                isTest = false
            }
        }
        return found
    }

    @Test("each test that an article names is there", arguments: ["Security", "SecurityLimits"])
    func named(_ name: String) throws {
        let named = Self.namedTests(in: try Self.article(name))
        let tests = try Self.tests()
        #expect(named.count > 5)
        for test in named {
            let suite = tests[test.suite]
            #expect(suite != nil, "\(test.suite)")
            if let name = test.name { #expect(suite?.contains(name) == true, "\(test)") }
        }
    }

    @Test("the article of limits names each test of its suites")
    func complete() throws {
        let named = Self.namedTests(in: try Self.article("SecurityLimits"))
        let tests = try Self.tests()
        for suite in ["HostileInputTests", "ProtectionTests", "ServedLimitsTests"] {
            let all = try #require(tests[suite])
            let missing = all.filter { !named.contains(NamedTest(suite: suite, name: $0)) }
            #expect(missing.isEmpty, "\(suite): \(missing.sorted())")
        }
    }

    @Test("each file that an article names as a proof is there")
    func files() throws {
        for name in ["Security", "SecurityLimits"] {
            let article = try Self.article(name)
            for cell in Self.rows(of: article).compactMap(\.last) {
                for text in cell where text.hasPrefix("tools/") {
                    let path = Self.repository.appendingPathComponent(text).path
                    #expect(FileManager.default.fileExists(atPath: path), "\(text)")
                }
            }
        }
    }

    // MARK: - Settings

    /// All that a hub can be told, whatever of it excludes other settings.
    private static func settingNames() throws -> Set<String> {
        var reader = try SettingsReader(
            file: nil,
            environment: [
                "TIDEMARK_POOLS": "NAME", "TIDEMARK_POOL_NAME_ID": "r:1",
                "TIDEMARK_ISSUERS": "NAME", "TIDEMARK_ISSUER_NAME_ISSUER": "i",
                "TIDEMARK_ISSUER_NAME_KEYS_FILE": "k", "TIDEMARK_ACCESS_KEYS": "NAME",
                "TIDEMARK_ACCESS_KEY_NAME_ID": "AKIA", "TIDEMARK_ACCESS_KEY_NAME_SECRET": "s",
                "TIDEMARK_BEARERS": "NAME", "TIDEMARK_BEARER_NAME_TOKEN": "t",
                "TIDEMARK_TLS_CERTIFICATE_FILE": "c", "TIDEMARK_TLS_KEY_FILE": "k",
                "TIDEMARK_POOL_NAME_TRIGGER_URL": "http://a",
                "TIDEMARK_POOL_NAME_TRIGGER_SECRET": "s",
                "TIDEMARK_POOL_NAME_RESOLVER_URL": "http://a",
                "TIDEMARK_POOL_NAME_RESOLVER_SECRET": "s",
                "TIDEMARK_POOL_NAME_STREAM_URL": "http://a",
                "TIDEMARK_POOL_NAME_STREAM_SECRET": "s", "TIDEMARK_POOL_NAME_PUSH_URL": "http://a",
                "TIDEMARK_POOL_NAME_PUSH_SECRET": "s",
            ], flags: [:])
        _ = try HubSettings(&reader)
        return reader.askedKeys
    }

    /// The settings that the tables of an article name in their first cells: in full, or by what
    /// differs from the one before in the same cell (`.secretFile`).
    private static func listedSettings(in article: String) -> Set<String> {
        var listed: Set<String> = []
        for cell in rows(of: article).compactMap(\.first) {
            var above = ""
            for text in cell {
                let name = text.hasPrefix(".") ? above + text : text
                above = name.split(separator: ".").dropLast().joined(separator: ".")
                listed.insert(name)
            }
        }
        return listed
    }

    @Test("the articles list each setting, and no other")
    func settings() throws {
        let names = try Self.settingNames()
        let hub = Self.listedSettings(in: try Self.article("Hub-article"))
        let limits = try Self.article("SecurityLimits")
        for name in names {
            let isBound = name.hasPrefix("limits.") || name.hasPrefix("protection.")
            guard isBound else {
                #expect(hub.contains(name), "\(name) is not listed")
                continue
            }
            let last = name.split(separator: ".").last ?? ""
            let isListed = limits.contains("`\(name)`") || limits.contains("`\(last)`")
            #expect(isListed, "\(name) is not listed")
        }
        // What looks like a setting of the table is one.
        let groups = Set(names.map { $0.split(separator: ".").first.map(String.init) ?? "" })
        for name in hub where groups.contains(String(name.prefix { $0 != "." })) {
            #expect(names.contains(name) || name.hasSuffix(".…"), "\(name) is none")
        }
    }
}
