import ServiceLifecycle
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// What a hub takes at most, met by a client of its own over real connections, each with the answer
/// that the article Security: limits has for it. Bounds of connections, heads and addresses, and
/// what comes too slowly, are in `HostileInputTests`.
///
/// No test waits for a refusal to come some time: each asks so often, and then says that none came.
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes)))
struct ServedLimitsTests {
    let directory: TemporaryDirectory
    let store: Store

    init() throws {
        directory = try TemporaryDirectory()
        store = try directory.store("hub")
    }

    /// How often something is asked for that is to be refused at last, or granted again.
    private static let roundsMax = 2_000

    private typealias Values = [(key: String, value: String?)]

    private static func expectRefused(
        _ answer: ServedClient.Answer, _ status: Int, _ error: String,
        location: SourceLocation = #_sourceLocation
    ) {
        #expect(answer.status == status, "\(answer.body)", sourceLocation: location)
        #expect(answer.error == error, "\(answer.body)", sourceLocation: location)
    }

    private static let tooMuch = (status: 400, error: "LimitExceededException")
    private static let wrong = (status: 400, error: "InvalidParameterException")

    @Test("records, bytes, keys, values and patches of a dataset")
    func datasets() async throws {
        var settings = ServedClient.settings
        settings.limits.recordsPerDatasetMax = 3
        settings.limits.datasetBytesMax = 100
        settings.limits.recordKeyMax = 8
        settings.limits.recordValueMax = 40
        settings.limits.patchesMax = 4
        try await withServedHub(store, settings) { port, _ in
            let client = try await ServedClient(port)
            let full: Values = [("a", "1"), ("b", "2"), ("c", "3")]
            #expect(try await client.write("d", full).status == 200)
            let long = String(repeating: "x", count: 40)
            let large: Values = [("a", long), ("b", long), ("c", long)]
            let five: Values = ["1", "2", "3", "4", "5"].map { (key: $0, value: nil) }
            let cases: [(values: Values, expected: (status: Int, error: String))] = [
                ([("d", "4")], Self.tooMuch), (large, Self.tooMuch), (five, Self.tooMuch),
                ([("123456789", "1")], Self.wrong), ([("a", long + "x")], Self.wrong),
            ]
            for (values, expected) in cases {
                let answer = try await client.write("d", values)
                Self.expectRefused(answer, expected.status, expected.error)
            }
            // Nothing of what was refused is there, and what fits goes through.
            let listing = try await client.sync("GET", "/datasets/d/records")
            let found = listing.json?["Records"]?.elements?.compactMap { $0["Value"]?.text }
            #expect(found == ["1", "2", "3"])
            #expect(try await client.write("d", [("a", long)]).status == 200)
        }
    }

    @Test("datasets of an identity, removals that are remembered, and names")
    func identities() async throws {
        var settings = ServedClient.settings
        settings.limits.datasetsPerIdentityMax = 2
        settings.limits.recordsPerDatasetMax = 3
        settings.limits.tombstonesPerRecordMax = 1
        try await withServedHub(store, settings) { port, _ in
            let client = try await ServedClient(port)
            for name in ["one", "two"] {
                #expect(try await client.write(name, [("a", "1")]).status == 200)
            }
            let third = try await client.write("three", [("a", "1")])
            Self.expectRefused(third, Self.tooMuch.status, Self.tooMuch.error)
            let another = try await ServedClient(port)
            #expect(try await another.write("three", [("a", "1")]).status == 200)
            let removals: Values = [("a", nil), ("b", nil), ("c", nil)]
            #expect(try await client.write("one", removals).status == 200)
            let fourth = try await client.write("one", [("d", nil)])
            Self.expectRefused(fourth, Self.tooMuch.status, Self.tooMuch.error)
            for name in [String(repeating: "n", count: 129), "..", "a%20b", "a%2Fb"] {
                let answer = try await client.sync("GET", "/datasets/\(name)/records")
                Self.expectRefused(answer, Self.wrong.status, Self.wrong.error)
            }
        }
    }

    @Test("records and datasets of one answer")
    func pages() async throws {
        var settings = ServedClient.settings
        settings.limits.pageRecordsMax = 2
        settings.limits.pageDatasetsMax = 1
        try await withServedHub(store, settings) { port, _ in
            let client = try await ServedClient(port)
            for name in ["one", "two"] {
                let values: Values = [("a", "1"), ("b", "2"), ("c", "3")]
                #expect(try await client.write(name, values).status == 200)
            }
            let records = try await client.sync(
                "GET", "/datasets/one/records", query: "maxResults=1000")
            #expect(records.json?["Records"]?.elements?.count == 2)
            #expect(records.json?["NextToken"]?.text != nil)
            let datasets = try await client.sync("GET", "/datasets", query: "maxResults=60")
            #expect(datasets.json?["Datasets"]?.elements?.count == 1)
            #expect(datasets.json?["NextToken"]?.text != nil)
        }
    }

    @Test("logins of a call, levels of JSON, and bodies of the API and of replicas")
    func bodies() async throws {
        var settings = ServedClient.settings
        settings.protection.bodyBytesMax = 4_096
        settings.messageBytesMax = 5_000
        try await withServedHub(store, settings) { port, _ in
            let client = try await ServedClient(port)
            let logins = (0..<11).map { #""p\#($0)": "t""# }.joined(separator: ", ")
            let many = try await ServedClient.identity(
                port, "GetId",
                #"{"IdentityPoolId": "\#(ServedClient.pool)", "Logins": {\#(logins)}}"#)
            Self.expectRefused(many, Self.wrong.status, Self.wrong.error)
            let deep = String(repeating: "[", count: 17) + String(repeating: "]", count: 17)
            let nested = try await client.sync("POST", "/datasets/d", body: deep)
            Self.expectRefused(nested, 400, "SerializationException")
            let large = try await client.sync("POST", "/datasets/d", declared: 4_097)
            Self.expectRefused(large, 413, "RequestEntityTooLargeException")
            // Of an identity 8 MiB at least, and of the hub's own token what the settings say.
            let given = try await ServedClient.identity(
                port, "GetOpenIdToken", #"{"IdentityId": "\#(client.identity)"}"#)
            let token = try #require(given.json?["Token"]?.text)
            for (bearer, bytes) in [(testToken, 5_001), (token, (8 << 20) + 1)] {
                let message = try await ServedClient.exchange(
                    port,
                    "POST /v1/sync HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(bearer)\r\n"
                        + "Content-Type: application/x-tidemark-sync\r\n"
                        + "Content-Length: \(bytes)\r\n\r\n")
                #expect(message.status == 413, "\(message.body)")
                #expect(message.body.contains("requestEntityTooLarge"))
            }
        }
    }

    /// Many at once, again and again, until one is refused: on a slow machine two in a row may be
    /// so far apart that both are granted.
    private static func firstRefused(
        _ ask: @escaping @Sendable () async throws -> ServedClient.Answer
    ) async throws -> ServedClient.Answer? {
        for _ in 0..<roundsMax {
            let refused = try await withThrowingTaskGroup(of: ServedClient.Answer.self) { group in
                for _ in 0..<10 { group.addTask { try await ask() } }
                var refused: ServedClient.Answer?
                for try await answer in group where answer.status != 200 { refused = answer }
                return refused
            }
            if let refused { return refused }
        }
        return nil
    }

    @Test("requests a second of an identity, and others go on")
    func rateOfIdentity() async throws {
        var settings = ServedClient.settings
        settings.protection.requestsPerSecondOfIdentity = 1
        settings.protection.requestBurstOfIdentity = 2
        try await withServedHub(store, settings) { port, _ in
            let client = try await ServedClient(port)
            let first = try await Self.firstRefused { try await client.sync("GET", "/datasets") }
            let refused = try #require(first)
            Self.expectRefused(refused, 429, "TooManyRequestsException")
            #expect(refused.retryAfter == 1)
            let another = try await ServedClient(port)
            #expect(try await another.sync("GET", "/datasets").status == 200)
        }
    }

    @Test("new identities a second of an address, and nothing else of it")
    func rateOfNewIdentities() async throws {
        var settings = ServedClient.settings
        settings.protection.newIdentitiesPerSecondOfAddress = 1
        settings.protection.newIdentityBurstOfAddress = 2
        try await withServedHub(store, settings) { port, _ in
            let client = try await ServedClient(port)
            let body = #"{"IdentityPoolId": "\#(ServedClient.pool)"}"#
            let first = try await Self.firstRefused {
                try await ServedClient.identity(port, "GetId", body)
            }
            let refused = try #require(first)
            Self.expectRefused(refused, 429, "TooManyRequestsException")
            #expect(refused.retryAfter == 1)
            #expect(try await client.sync("GET", "/datasets").status == 200)
        }
    }

    /// What is asked, until the status is the expected one; nil if it never is.
    private static func first(
        _ status: Int, _ ask: () async throws -> ServedClient.Answer
    ) async throws -> ServedClient.Answer? {
        for _ in 0..<roundsMax {
            let answer = try await ask()
            if answer.status == status { return answer }
            try await Task.sleep(for: .milliseconds(5))
        }
        return nil
    }

    @Test("bodies that are received at once share a room, which is free again when one has gone")
    func roomOfBodies() async throws {
        var settings = ServedClient.settings
        settings.protection.bodiesBytesMax = 100_000
        try await withServedHub(store, settings) { port, _ in
            // Each has its whole body at once, so that it is answered whether or not there is room.
            let body = "{" + String(repeating: " ", count: 59_998) + "}"
            let head =
                "POST / HTTP/1.1\r\nHost: a\r\n"
                + "X-Amz-Target: AWSCognitoIdentityService.UnlinkIdentity\r\n"
                + "Content-Length: 60000\r\n\r\n"
            var holder: RawConnection?
            // The hub lets go of whoever sends a body too slowly, so each round has one of its own.
            let first = try await Self.first(503) {
                holder = try RawConnection(port: port)
                try await holder?.send(head + "{")
                return try await ServedClient.exchange(port, head + body)
            }
            let refused = try #require(first)
            #expect(refused.error == "ServiceUnavailableException")
            #expect(refused.retryAfter == 1)
            #expect(refused.fields["connection"] == "close")
            holder = nil
            let free = try await Self.first(400) {
                try await ServedClient.exchange(port, head + body)
            }
            #expect(free?.error == "InvalidParameterException")
        }
    }

    @Test("connections in all, whoever has them")
    func connectionsInAll() async throws {
        var settings = ServedClient.settings
        settings.protection.connectionsMax = 3
        try await withServedHub(store, settings) { port, _ in
            var held: [RawConnection] = []
            for _ in 0..<3 {
                let connection = try RawConnection(port: port)
                try await connection.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
                let answer = try await connection.receive(until: "}")
                #expect(answer.hasPrefix("HTTP/1.1 200"))
                held.append(connection)
            }
            for _ in 0..<3 { try await RawConnection(port: port).untilClosed() }
            // One that goes makes room for another one.
            held.removeLast()
            var isFree = false
            for _ in 0..<Self.roundsMax where !isFree {
                let connection = try RawConnection(port: port)
                try await connection.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
                isFree = try await connection.receive(until: "}").hasPrefix("HTTP/1.1 200")
                if !isFree { try await Task.sleep(for: .milliseconds(5)) }
            }
            #expect(isFree)
            withExtendedLifetime(held) {}
        }
    }

    @Test("a full disk: writes are refused with when to come again, and reads go on")
    func fullDisk() async throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let options = StoreOptions(durability: .disk, segmentBytes: 1 << 20)
        let full = try Store.open(at: "/store", options: options, storage: storage)
        try await withServedHub(full, ServedClient.settings) { port, _ in
            let client = try await ServedClient(port)
            #expect(try await client.write("d", [("a", "1")]).status == 200)
            storage.faults = [
                StorageFault(
                    .diskFull, of: [.write, .sync, .truncate, .syncMapping, .syncDirectory],
                    isLasting: true)
            ]
            for _ in 0..<2 {
                let refused = try await client.write("d", [("a", "2")])
                Self.expectRefused(refused, 503, "ServiceUnavailableException")
                #expect(refused.retryAfter == 30)
                let listing = try await client.sync("GET", "/datasets/d/records")
                #expect(listing.status == 200)
                // What was refused because it did not become durable may be there or not.
                let value = listing.json?["Records"]?.elements?.first?["Value"]?.text
                #expect(["1", "2"].contains(value))
            }
            let notReady = try await Self.first(503) {
                try await ServedClient.exchange(port, "GET /ready HTTP/1.1\r\nHost: a\r\n\r\n")
            }
            #expect(notReady?.body.contains("notWriting") == true)
        }
        try? full.close()
    }
}
