import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// What the article *Coming from Cognito Sync and DataStore* says of push sync and of conflict
/// strategies at a hub: each test does what its row says.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct PushMappingTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    // MARK: - Push sync

    /// A registration has no state on the device that could be lost or be another identity's.
    @Test("whoever registers again gets the same id, and another identity another one")
    func registration() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnPush()
        let device = try await world.device("token", of: world.alice)
        #expect(try await world.device("token", of: world.alice) == device)
        #expect(try await world.device("token", of: world.bob) != device)
        #expect(try DeviceBook.device(device, of: world.alice, in: world.store) != nil)
        #expect(try DeviceBook.device(device, of: world.bob, in: world.store) == nil)
        try await world.end()
    }

    @Test("a registration that is refused says why, and nothing is registered")
    func refusedRegistration() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let path = "\(world.poolPath)/identity/\(world.alice)/device"
        let body = #"{"Platform": "GCM", "Token": "t"}"#
        #expect(try await world.refusal("POST", path, body) == .invalidConfiguration)
        try await world.turnOnPush()
        let other = #"{"Platform": "APNS", "Token": "t"}"#
        #expect(try await world.refusal("POST", path, other) == .invalidConfiguration)
        let empty = #"{"Platform": "GCM", "Token": ""}"#
        #expect(try await world.refusal("POST", path, empty) == .invalidParameter)
        #expect(try DeviceBook.devices(of: world.alice, in: world.store).isEmpty)
        try await world.end()
    }

    @Test("a subscription that is refused says why, and is one once its reason is gone")
    func refusedSubscription() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnPush()
        let device = try await world.device("t", of: world.alice)
        let path = world.subscriptionPath(device, "notes", of: world.alice)
        #expect(try await world.refusal("POST", path) == .resourceNotFound)
        try await world.update("notes", of: world.alice, ["a": "1"])
        let unknown = try #require(DeviceID("unknown"))
        let other = world.subscriptionPath(unknown, "notes", of: world.alice)
        #expect(try await world.refusal("POST", other) == .resourceNotFound)
        let storeName = "\(world.alice):notes"
        #expect(try DeviceBook.subscribers(of: storeName, in: world.store).isEmpty)
        #expect(try await world.refusal("POST", path) == nil)
        #expect(try DeviceBook.subscribers(of: storeName, in: world.store) == [device])
        try await world.end()
    }

    /// The five members, through a gateway and through a connection alike. The count is that of the
    /// Cognito API, by which the device decides whether it is behind.
    @Test("a notice has the five members of Cognito's payload")
    func payload() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnPush()
        try await world.update("notes", of: world.alice, ["a": "1"])
        let device = try await world.device("t", of: world.alice)
        try await world.subscribe(device, to: "notes", of: world.alice)
        let count = try await world.update("notes", of: world.alice, ["a": "2", "b": "3"])
        #expect(count == 2)
        try await world.whileDelivering {
            try await eventually("told") { world.gateway.notices.count == 1 }
        }
        let notice = try #require(world.gateway.notices.first)
        #expect(notice.identityPoolID == world.pool.text)
        #expect(notice.identityID == world.alice.text)
        #expect(notice.datasetName == "notes")
        #expect(notice.syncCount == count)
        let payload = PushPayload.object(
            pool: notice.identityPoolID, identity: notice.identityID, dataset: notice.datasetName,
            count: notice.syncCount)
        let expected: JSONValue = [
            "source": "cognito-sync", "identityPoolId": .string(world.pool.text),
            "identityId": .string(world.alice.text), "datasetName": "notes", "syncCount": 2,
        ]
        #expect(payload == expected)
        let connection = DeviceConnection(
            device: device, identity: world.alice, pool: world.pool, endsAt: .max)
        connection.begin(["notes": count])
        let lines = EventStream.text(connection.take(), connection).split(separator: "\n")
        let data = try #require(lines.first { $0.hasPrefix("data: ") }?.dropFirst(6))
        #expect(try JSONValue(parsing: Array(data.utf8)) == expected)
        try await world.end()
    }

    // MARK: - Strategies

    /// Pushes with a count that the record has had and has no more.
    private static func push(
        _ value: String, at count: Int, to dataset: String, by client: ServedClient
    ) async throws -> ServedClient.Answer {
        let listing = try await client.sync("GET", "/datasets/\(dataset)/records")
        let token = try #require(listing.json?["SyncSessionToken"]?.text, "\(listing.body)")
        let patch =
            #"{"Op": "replace", "Key": "key", "SyncCount": \#(count), "#
            + #""Value": \#(JSONText.quoted(value))}"#
        return try await client.sync(
            "POST", "/datasets/\(dataset)",
            body: #"{"SyncSessionToken": \#(JSONText.quoted(token)), "RecordPatches": [\#(patch)]}"#
        )
    }

    /// What a dataset's record holds.
    private static func value(
        _ dataset: String, of client: ServedClient
    ) async throws -> String? {
        let listing = try await client.sync("GET", "/datasets/\(dataset)/records")
        return listing.json?["Records"]?.elements?.first?["Value"]?.text
    }

    @Test("at a hub each dataset goes by its own strategy, or by the pool's")
    func strategies() async throws {
        let store = try directory.store("hub")
        var settings = ServedClient.settings
        settings.pools[0].strategy = .reject
        settings.pools[0].datasetStrategies = ["posts": .autoMerge, "users": .resolver]
        var extensions = HubExtensions()
        extensions.resolvers[ServedClient.pool] = { conflict in
            .resolve("\(conflict.existing ?? "-") + \(conflict.incoming ?? "-")")
        }
        settings.port = 0
        let (onFreePort, added) = (settings, extensions)
        try await withServedHub { logger, onListening in
            Hub(
                store: store, settings: onFreePort, extensions: added, logger: logger,
                onListening: onListening)
        } _: { port, _ in
            let client = try await ServedClient(port)
            func push(_ value: String, _ count: Int, _ name: String) async throws -> String? {
                try await Self.push(value, at: count, to: name, by: client).error
            }
            for name in ["orders", "posts", "users"] {
                #expect(try await push(#"{"title": "Tide"}"#, 0, name) == nil)
                #expect(try await push(#"{"title": "Ebb"}"#, 1, name) == nil)
            }
            let late = #"{"title": "Tide", "tag": "sea"}"#
            // Optimistic Concurrency: refused, and what is there stays.
            let refusal = try await push(late, 1, "orders")
            #expect(refusal?.hasPrefix("ResourceConflictException") == true)
            #expect(try await Self.value("orders", of: client) == #"{"title": "Ebb"}"#)
            // Auto Merge: what each side changed.
            #expect(try await push(late, 1, "posts") == nil)
            let merged = try #require(try await Self.value("posts", of: client))
            #expect(
                try JSONValue(parsing: Array(merged.utf8)) == ["title": "Ebb", "tag": "sea"])
            // Custom Lambda: what the resolver says.
            #expect(try await push("late", 1, "users") == nil)
            #expect(try await Self.value("users", of: client) == #"{"title": "Ebb"} + late"#)
        }
        try store.close()
    }
}
