import Foundation
import Testing

/// The article *Coming from Cognito Sync and DataStore* is complete, and nothing in it is claimed
/// without proof: each name has its row, each row a test that exists, and each name of ours is one.
struct MappingArticleTests {
    /// Every name that needs a row, by the heading of its table.
    static let names: [String: [String]] = [
        "AWSCognitoDataset": [
            "name", "lastSyncCount", "creationDate", "dataStorage", "lastModifiedBy",
            "lastModifiedDate", "numRecords", "isDeleted", "conflictHandler",
            "datasetDeletedHandler", "datasetMergedHandler", "synchronizeRetries",
            "synchronizeOnWiFiOnly", "setString:forKey:", "stringForKey:", "synchronize",
            "synchronizeOnConnectivity", "subscribe", "unsubscribe", "getAllRecords", "getAll",
            "removeObjectForKey:", "recordForKey:", "clear", "size", "sizeForKey:",
        ],
        "AWSCognito": [
            "defaultCognito", "openOrCreateDataset:", "listDatasets", "refreshDatasetMetadata",
            "wipe", "conflictHandler", "datasetDeletedHandler", "datasetMergedHandler",
            "defaultConflictHandler", "synchronizeRetries", "synchronizeOnWiFiOnly", "deviceId",
            "registerDevice:", "cognitoDeviceId", "setPushPlatform:", "pushPlatform", "subscribe:",
            "subscribeAll", "unsubscribe:", "unsubscribeAll",
        ],
        "AWSCognitoRecord": [
            "recordId", "data", "lastModified", "lastModifiedBy", "dirty", "dirtyCount",
            "syncCount", "isDeleted",
        ],
        "AWSCognitoConflict": [
            "localRecord", "remoteRecord", "resolveWithLocalRecord", "resolveWithRemoteRecord",
            "resolveWithValue:",
        ],
        "Callbacks of iOS, in Objective-C and Swift": [
            "AWSCognitoRecordConflictHandler", "AWSCognitoDatasetDeletedHandler",
            "AWSCognitoDatasetMergedHandler", "AWSCognitoDidStartSynchronizeNotification",
            "AWSCognitoDidEndSynchronizeNotification",
            "AWSCognitoDidFailToSynchronizeNotification",
            "AWSCognitoDidChangeLocalValueFromRemoteNotification",
            "AWSCognitoDidChangeRemoteValueNotification", "AWSCognitoErrorUnknown",
            "AWSCognitoErrorRemoteDataStorageFailed", "AWSCognitoErrorInvalidDataValue",
            "AWSCognitoErrorUserDataSizeLimitExceeded", "AWSCognitoErrorLocalDataStorageFailed",
            "AWSCognitoErrorIllegalArgument", "AWSCognitoAuthenticationFailed",
            "AWSCognitoErrorTaskCanceled", "AWSCognitoErrorConflictRetriesExhausted",
            "AWSCognitoErrorWiFiNotAvailable", "AWSCognitoErrorDeviceNotRegistered",
        ],
        "Callbacks of Android": [
            "onSuccess", "onFailure", "onConflict", "onDatasetDeleted", "onDatasetsMerged",
            "DefaultSyncCallback",
        ],
        "Callbacks of JavaScript": [
            "onSuccess", "onFailure", "onConflict", "onDatasetDeleted", "onDatasetsMerged",
            "onDatasetMerged",
        ],
        "Callbacks of Unity": [
            "OnSyncSuccess", "OnSyncFailure", "OnSyncConflict", "OnDatasetDeleted",
            "OnDatasetMerged",
        ],
        "Callbacks of Xamarin": [
            "OnSyncSuccess", "OnSyncFailure", "OnSyncConflict", "OnDatasetDeleted",
            "OnDatasetMerged",
        ],
        "Conflicts of Android, JavaScript, Unity and Xamarin": [
            "getKey", "getLocalRecord", "getRemoteRecord", "resolveWithLocalRecord",
            "resolveWithRemoteRecord", "resolveWithValue", "resolve",
        ],
        "Configuration of DataStore for Swift": [
            "errorHandler", "conflictHandler", "applyRemote", "retryLocal", "retry",
            "syncInterval", "syncMaxRecords", "syncPageSize", "syncExpressions",
            "authModeStrategy", "disableSubscriptions",
        ],
        "Configuration of DataStore for JavaScript": [
            "errorHandler", "conflictHandler", "DISCARD", "maxRecordsToSync", "syncPageSize",
            "fullSyncInterval", "syncExpressions", "authModeStrategyType", "authProviders",
            "storageAdapter",
        ],
        "Events and calls of DataStore": [
            "networkStatus", "subscriptionsEstablished", "syncQueriesStarted", "modelSynced",
            "syncQueriesReady", "ready", "outboxStatus", "outboxMutationEnqueued",
            "outboxMutationProcessed", "syncReceived", "conditionalSaveFailed", "observe",
            "observeQuery", "start", "stop", "clear",
        ],
    ]

    struct Row {
        let heading: String
        /// Theirs, ours, what differs, the test.
        let cells: [String]

        /// What stands between backticks in a cell.
        func names(in cell: Int) -> [String] {
            cells[cell].split(separator: "`", omittingEmptySubsequences: false).enumerated()
                .filter { $0.offset % 2 == 1 }.map { String($0.element) }
        }
    }

    static let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    static func rows() throws -> [Row] {
        let path = "Sources/TidemarkSync/TidemarkSync.docc/ComingFromCognitoAndDataStore.md"
        let text = try String(
            contentsOf: repository.appendingPathComponent(path), encoding: .utf8)
        var heading = ""
        var rows: [Row] = []
        for line in text.split(separator: "\n") {
            if line.hasPrefix("## ") { heading = String(line.dropFirst(3)) }
            guard line.hasPrefix("| "), !line.hasPrefix("| theirs "), !line.hasPrefix("| --- ")
            else { continue }
            let cells = line.dropFirst(2).split(separator: "|").map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            rows.append(Row(heading: heading, cells: cells))
        }
        return rows
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

    private static func isWordPart(_ character: Character) -> Bool {
        character.isLetter || character.isNumber || character == "_"
    }

    /// "Suite.function" of every test: a function behind `@Test`, in a type or an extension that
    /// begins at the margin.
    static func tests() throws -> Set<String> {
        var tests: Set<String> = []
        for text in try sources(in: "Tests") {
            var suite = ""
            var isTest = false
            for line in text.split(separator: "\n") {
                let code = line.drop(while: \.isWhitespace)
                guard !code.hasPrefix("//") else { continue }
                let words = line.split { !isWordPart($0) }
                if let first = line.first, !first.isWhitespace,
                    let place = words.firstIndex(where: { suiteKinds.contains($0) }),
                    place + 1 < words.count
                {
                    suite = String(words[place + 1])
                }
                if code.hasPrefix("@Test") { isTest = true }
                guard isTest, let place = words.firstIndex(of: "func"), place + 1 < words.count
                else { continue }
                tests.insert("\(suite).\(words[place + 1])")
                isTest = false
            }
        }
        return tests
    }

    private static let suiteKinds: Set<Substring> = ["struct", "class", "extension", "actor"]

    @Test func everyNameHasItsRowAndNoRowIsOfAnother() throws {
        let rows = try Self.rows()
        for (heading, names) in Self.names {
            let found = rows.filter { $0.heading == heading }.flatMap { $0.names(in: 0) }
            #expect(found.sorted() == names.sorted(), "in \(heading)")
        }
        let headings = Set(rows.map(\.heading))
        #expect(headings == Set(Self.names.keys))
    }

    @Test func everyRowIsWholeAndNamesATestThatExists() throws {
        let tests = try Self.tests()
        // The search itself finds what there is, and nothing else.
        #expect(tests.contains("MappingArticleTests.everyRowIsWholeAndNamesATestThatExists"))
        #expect(!tests.contains("MappingArticleTests.rows"))
        #expect(tests.count > 500)
        for row in try Self.rows() {
            let place: Comment = "\(row.heading): \(row.cells)"
            #expect(row.cells.count == 4, place)
            guard row.cells.count == 4 else { continue }
            #expect(row.cells.allSatisfy { !$0.isEmpty }, place)
            #expect(row.names(in: 0).count == 1, place)
            #expect(!row.names(in: 3).isEmpty, place)
            for name in row.names(in: 3) {
                #expect(tests.contains(name), "\(name) in \(row.heading)")
            }
        }
    }

    /// Ours are names that the sources have, word by word, or it is said that there is none.
    @Test func everyNameOfOursIsOne() throws {
        var words: Set<Substring> = []
        for text in try Self.sources(in: "Sources") {
            words.formUnion(text.split { !Self.isWordPart($0) })
        }
        for row in try Self.rows() where row.cells.count == 4 {
            let isNone = row.cells[1].hasPrefix("none")
            #expect(isNone == row.names(in: 1).isEmpty, "\(row.heading): \(row.cells)")
            for name in row.names(in: 1) + row.names(in: 2) {
                for word in name.split(whereSeparator: { !Self.isWordPart($0) }) where word != "_" {
                    #expect(words.contains(word), "\(name) in \(row.heading)")
                }
            }
        }
    }
}
