import Foundation
import Testing

/// The article *Coming from Cognito Sync and DataStore* is complete, and nothing in it is claimed
/// without proof: each name has its row, each row a test that exists, and each name of ours is
/// public.
struct MappingArticleTests {
    private static let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    private static func article() throws -> MappingArticle {
        let path = "Sources/TidemarkSync/TidemarkSync.docc/ComingFromCognitoAndDataStore.md"
        return MappingArticle(
            try String(contentsOf: repository.appendingPathComponent(path), encoding: .utf8))
    }

    /// Every Swift file below a folder of the repository.
    static func sources(in folder: String) throws -> [String] {
        let root = repository.appendingPathComponent(folder)
        let files = FileManager.default.enumerator(atPath: root.path)
        var texts: [String] = []
        while let path = files?.nextObject() as? String {
            guard path.hasSuffix(".swift") else { continue }
            texts.append(
                try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8))
        }
        return texts
    }

    // MARK: - The article

    @Test func everyNameHasItsRowAndNoRowIsOfAnother() throws {
        #expect(MappingNames.missing(in: MappingNames.byHeading).isEmpty)
        #expect(try Self.article().faults(of: MappingNames.byHeading).isEmpty)
    }

    @Test func everyRowIsWholeAndNamesATestThatExists() throws {
        let tests = testNames(in: try Self.sources(in: "Tests"))
        // The search itself finds what there is, and nothing else.
        #expect(tests.contains("MappingArticleTests.everyRowIsWholeAndNamesATestThatExists"))
        #expect(!tests.contains("MappingArticleTests.article"))
        #expect(tests.count > 500)
        #expect(try Self.article().faults(of: tests).isEmpty)
    }

    @Test func everyNameOfOursIsPublicAndHasTheseLabels() throws {
        let declarations = PublicNames(try Self.sources(in: "Sources"))
        #expect(declarations.contains("Dataset.put(_:for:durability:)"))
        #expect(declarations.contains("SyncError.Code.tooLarge"))
        #expect(!declarations.contains("Dataset.put(_:durability:)"))
        #expect(!declarations.contains("SyncOptions.observer"))
        #expect(try Self.article().faults(of: declarations).isEmpty)
    }

    // MARK: - The checks

    private static let table = """
        ## Table

        | theirs | ours | what differs | test |
        | --- | --- | --- | --- |
        | `get` | `Thing.read(_:for:)` | see `Thing.Kind.large` | `ThingTests.reads` |
        | `set` | none | nothing is set | `ThingTests.sets`, `ThingTests.reads` |
        """

    private static let tests = testNames(in: [
        """
        struct ThingTests {
            @Test("reads") func reads() {}
            @Test(arguments: [1])
            func sets(_ number: Int) {}
            func helps() {}
            // @Test func isOut() {}
        }
        """
    ])

    private static let declarations = PublicNames([
        """
        public struct Thing {
            public enum Kind {
                case small, large
            }
            public func read(
                _ name: String, for key: [UInt8] = []
            ) -> Bool { true }
            func write(_ name: String) {}
        }
        extension Thing {
            public var count: Int { 0 }
        }
        struct Hidden {}
        """
    ])

    /// What the checks find in the table after a change of its text.
    private static func faults(
        _ old: String = "", _ new: String = "", names: [String] = ["get", "set"]
    ) -> [String] {
        let article = MappingArticle(old.isEmpty ? table : table.replacing(old, with: new))
        return article.faults(of: ["Table": names]) + article.faults(of: tests)
            + article.faults(of: declarations)
    }

    @Test func aTableWithoutFaultsPasses() {
        #expect(Self.faults().isEmpty)
        #expect(Self.tests == ["ThingTests.reads", "ThingTests.sets"])
    }

    @Test(
        "each fault is found",
        arguments: [
            ("`get`", "`got`", "no row for get"), ("`get`", "`got`", "a row for got"),
            ("`get`", "`set`", "several rows for set"),
            ("## Table", "## Another", "no row for get"),
            ("| `ThingTests.reads` |\n", "| |\n", "the row is not whole"),
            ("| `ThingTests.reads` |\n", "|\n", "the row is not whole"),
            ("| `ThingTests.reads` |\n", "| see there |\n", "the row has no test"),
            ("`ThingTests.sets`", "`ThingTests.helps`", "no test ThingTests.helps"),
            ("`ThingTests.sets`", "`ThingTests.isOut`", "no test ThingTests.isOut"),
            ("`ThingTests.sets`", "`OtherTests.sets`", "no test OtherTests.sets"),
            ("| none |", "| nothing |", "neither a name of ours nor none"),
            ("read(_:for:)", "read(_:)", "Thing.read(_:) is not public"),
            ("read(_:for:)", "write(_:)", "Thing.write(_:) is not public"),
            ("Thing.read(_:for:)", "Hidden", "Hidden is not public"),
            ("Thing.read(_:for:)", "Thing.Sort.large", "Thing.Sort.large is not public"),
            ("Thing.Kind.large", "Thing.Kind.huge", "Thing.Kind.huge is not public"),
        ])
    func findsEachFault(_ old: String, _ new: String, _ fault: String) {
        let faults = Self.faults(old, new)
        #expect(faults.contains { $0.contains(fault) }, "\(faults)")
    }

    @Test func aNameOfTheReferenceThatNoTableHasIsFound() {
        var names = MappingNames.byHeading
        names["AWSCognito"]?.removeAll { $0 == "openOrCreateDataset:" }
        names["AWSCognitoDataset"]?.removeAll { $0 == "syncPull:" }
        #expect(
            MappingNames.missing(in: names) == ["syncPull:", "AWSCognito.openOrCreateDataset"])
    }
}
