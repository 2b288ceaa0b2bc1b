import Foundation
import Testing

/// No defect of those clients is without its test: the list of all that were found, by section,
/// held against the names of the tests.
struct CognitoDefectListTests {
    /// What each defect's test is called. A defect that two clients had has one test.
    static let names = [
        "2.3: a refused push always brings its conflict up",
        "2.3: the reason survives the retries",
        "2.4: a first exchange asks about no deletion",
        "2.6.1: discarding a deleted dataset completes",
        "2.6.2: merging a merged dataset completes",
        "2.6.3: an answer without records completes",
        "2.6.4: resolving nothing completes",
        "2.6.5: a write of another key between pull and push arrives",
        "2.6.6: an edit during its own push stays and is pushed",
        "2.6.7: empty is not removed",
        "2.6.8: a name with a dot is just a name",
        "2.6.9: a permanent refusal stops at once with its reason",
        "2.6.10: what is too large stops at once and the limit is told",
        "2.6.11: deleting what the peer never had succeeds",
        "2.6.12: the handle lives after deletion and recreation",
        "2.6: the result says what was pulled",
        "2.6: any bytes are a value",
        "2.6: a dataset that is gone is noticed",
        "2.7 iOS: of what is full a record can be changed and none added",
        "2.7 iOS: a refused put throws",
        "2.7 iOS: counts compare by value",
        "2.7 iOS: each limit is its own",
        "2.7 Android: no conflict with oneself",
        "5.4 and 2.7 Android: an upgrade keeps unsent changes",
        "2.7 Android: identities are linked where both have the same names",
        "2.7 Unity: exhausted attempts end in one failure",
        "2.7 Unity: positions belong to a peer",
        "5.4: any sequence of edits is one change",
        "5.4: a pending edit meets a remote change as a conflict",
        "5.4: the handler is asked when the other side deleted",
        "5.4: an older version is ignored",
        "5.4: a change that is refused is not dropped",
        "5.4: a cap never loses the rest",
        "5.4: frequent exchanges do not put off the full one",
        "5.4: clear is a change that is pushed",
        "5.4: a late comer never revives",
        "5.4: a tombstone for an unknown key is kept",
    ]

    private static let sections = ["2.3", "2.4", "2.6", "2.7", "5.4"]

    @Test func everyDefectHasATestOfItsName() throws {
        var found: [String] = []
        for text in try MappingArticleTests.sources(in: "Tests/TidemarkSyncTests") {
            // What stands in quotation marks right behind the beginning of a test.
            for part in text.components(separatedBy: "@Test(").dropFirst() {
                let words = part.split(
                    separator: "\"", maxSplits: 2, omittingEmptySubsequences: false)
                guard words.count == 3, words[0].allSatisfy(\.isWhitespace) else { continue }
                found.append(String(words[1]))
            }
        }
        found.removeAll { name in !Self.sections.contains { name.hasPrefix($0) } }
        #expect(found.sorted() == Self.names.sorted())
    }
}
