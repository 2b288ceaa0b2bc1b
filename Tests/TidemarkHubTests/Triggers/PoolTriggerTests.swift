import AsyncHTTPClient
import Logging
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// Sync triggers: what they are sent, and what becomes of what they answer.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct PoolTriggerTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static let records = [
        TriggerRecord(key: "kept", oldValue: "k", newValue: "k", isChanged: false),
        TriggerRecord(key: "changed", oldValue: "old", newValue: "new", isChanged: true),
        TriggerRecord(key: "removed", oldValue: "r", newValue: nil, isChanged: true),
        TriggerRecord(key: "added", oldValue: nil, newValue: "a", isChanged: true),
    ]

    private static var callersOwn: [TriggerRecord] { records.filter(\.isChanged) }

    private func world(_ trigger: PoolBehavior.Trigger) async throws -> PoolWorld {
        let world = try PoolWorld(try directory.store("hub")) { $0.trigger = trigger }
        _ = try await world.answer(
            "POST", "\(world.poolPath)/events", #"{"Events": {"SyncTrigger": "check"}}"#)
        return world
    }

    private static func refusal(_ world: PoolWorld) async throws -> APIFailure.Kind? {
        let context = try world.context("notes", of: world.alice)
        do throws(APIFailure) {
            _ = try await world.parts.trigger.changed(records, context)
            return nil
        } catch {
            return error.kind
        }
    }

    @Test("the event has the members of Cognito's, and every record is an object")
    func input() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let context = try world.context("notes", of: world.alice)
        let bytes = TriggerDocument.input(Self.records, context, region: "eu-west-1")
        let expected: JSONValue = [
            "version": 2, "eventType": "SyncTrigger", "region": "eu-west-1",
            "identityPoolId": .string(world.pool.text), "identityId": .string(world.alice.text),
            "datasetName": "notes",
            "datasetRecords": [
                "kept": ["oldValue": "k", "newValue": "k", "op": "replace"],
                "changed": ["oldValue": "old", "newValue": "new", "op": "replace"],
                "removed": ["oldValue": "r", "newValue": .null, "op": "remove"],
                "added": ["oldValue": .null, "newValue": "a", "op": "replace"],
            ],
        ]
        #expect(try JSONValue(parsing: bytes) == expected)
        // What comes back as it was sent changes nothing.
        let output = try TriggerDocument.output(bytes)
        #expect(try PoolTrigger.merged(Self.records, output) == Self.callersOwn)
        try await world.end()
    }

    @Test("an answer may change, remove and add; what it leaves out stays")
    func output() throws {
        let answer = #"""
            {"datasetRecords": {
              "changed": {"oldValue": "x", "newValue": "other", "op": "replace"},
              "added": null,
              "kept": {"op": "remove"},
              "fresh": {"newValue": "f"},
              "absent": null
            }}
            """#
        let output = try TriggerDocument.output(Array(answer.utf8))
        let merged = try PoolTrigger.merged(Self.records, output)
        #expect(
            merged == [
                TriggerRecord(key: "kept", oldValue: "k", newValue: nil, isChanged: true),
                TriggerRecord(key: "changed", oldValue: "old", newValue: "other", isChanged: true),
                TriggerRecord(key: "removed", oldValue: "r", newValue: nil, isChanged: true),
                TriggerRecord(key: "added", oldValue: nil, newValue: nil, isChanged: true),
                TriggerRecord(key: "fresh", oldValue: nil, newValue: "f", isChanged: true),
            ])
    }

    @Test(
        "an answer of another shape is refused",
        arguments: [
            "", "null", "[]", "{}", #"{"datasetRecords": []}"#, #"{"datasetRecords": {"a": 1}}"#,
            #"{"datasetRecords": {"a": {"op": "replace"}}}"#,
            #"{"datasetRecords": {"a": {"op": "replace", "newValue": 1}}}"#,
            #"{"datasetRecords": {"a": {"op": "put", "newValue": "x"}}}"#,
            #"{"datasetRecords": {"a": {"newValue": null}}}"#,
            #"{"datasetRecords": {"a": null, "a": null}}"#,
        ])
    func shapes(_ answer: String) {
        #expect(throws: APIFailure.self) { try TriggerDocument.output(Array(answer.utf8)) }
    }

    @Test("keys and values beyond any record's are refused, and so is a key that comes twice")
    func bounds() {
        let long = String(repeating: "k", count: 1_025)
        for output in [
            [TriggerOutput(key: "", value: "v")], [TriggerOutput(key: long, value: "v")],
            [TriggerOutput(key: "k", value: String(repeating: "v", count: 1_048_576))],
            [TriggerOutput(key: "k", value: "1"), TriggerOutput(key: "k", value: "2")],
        ] {
            #expect(throws: APIFailure.self) { try PoolTrigger.merged(Self.records, output) }
        }
    }

    @Test("a closure sees the update, and what it returns is written")
    func closure() async throws {
        let world = try await world(
            .closure { event in
                event.records.filter(\.isChanged).map { record in
                    var record = record
                    record.newValue = record.newValue?.uppercased()
                    return record
                } + [SyncTriggerRecord(key: "seen", newValue: event.datasetName)]
            })
        let context = try world.context("notes", of: world.alice)
        #expect(world.parts.trigger.isNeeded(context))
        let changed = try await world.parts.trigger.changed(Self.records, context)
        #expect(changed?.map(\.key) == ["changed", "removed", "added", "seen"])
        #expect(changed?.map(\.newValue) == ["NEW", nil, "A", "notes"])
        try await world.end()
    }

    @Test("what a closure throws, and one that takes too long, refuse the update")
    func failures() async throws {
        struct Broken: Error {}
        let broken = try await world(.closure { _ in throw Broken() })
        #expect(try await Self.refusal(broken) == .invalidTriggerOutput)
        try await broken.end()
        let throttled = try await world(.closure { _ in throw TriggerThrottled() })
        #expect(try await Self.refusal(throttled) == .triggerThrottled)
        try await throttled.end()
        let endless = try await world(
            .closure { _ in
                try await sleepUntilCancelled()
                return []
            })
        let refusal = Task { try await Self.refusal(endless) }
        await endless.clock.untilAsleep()
        endless.clock.advance(by: .seconds(5))
        #expect(try await refusal.value == .invalidTriggerOutput)
        try await endless.end()
    }

    @Test("a developer's update, and a pool whose trigger is off, have none")
    func exempt() async throws {
        let world = try await world(.closure { _ in [] })
        let context = try world.context("notes", of: world.alice)
        let own = UpdateContext(
            pool: world.pool, identity: world.alice, dataset: context.dataset, deviceID: nil,
            principal: world.developer)
        #expect(!world.parts.trigger.isNeeded(own))
        #expect(try await world.parts.trigger.changed(Self.records, own) == nil)
        _ = try await world.answer(
            "POST", "\(world.poolPath)/events", #"{"Events": {"SyncTrigger": ""}}"#)
        #expect(!world.parts.trigger.isNeeded(context))
        try await world.end()
    }

    // MARK: - Endpoints

    private static func answer(
        _ status: String, _ body: String, hangUps: Int = 0
    ) async throws -> (kind: APIFailure.Kind?, keys: [String]) {
        let server = try CannedServer(
            canned(status: status, type: "text/plain", body: body), hangUps: hangUps)
        defer { server.stop() }
        let client = HTTPClient(
            eventLoopGroupProvider: .singleton,
            configuration: HTTPClient.Configuration(redirectConfiguration: .disallow))
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let webhook = Webhook(
            url: server.url + "/check", secret: [1], http: client, clock: VirtualEnvironment(),
            logger: logger)
        var (kind, keys): (APIFailure.Kind?, [String]) = (nil, [])
        do throws(APIFailure) {
            let bytes = try await PoolTrigger.answer(of: webhook, to: [], "the sync trigger")
            let output = try TriggerDocument.output(bytes)
            keys = try PoolTrigger.merged(records, output).map(\.key)
        } catch {
            kind = error.kind
        }
        try await client.shutdown()
        return (kind, keys)
    }

    @Test("an endpoint that answers is heard")
    func endpoint() async throws {
        let body = #"{"datasetRecords": {"fresh": {"newValue": "f", "op": "replace"}}}"#
        let (kind, keys) = try await Self.answer("200 OK", body)
        #expect(kind == nil)
        #expect(keys == ["changed", "removed", "added", "fresh"])
    }

    @Test("an endpoint is asked again if the connection breaks, once")
    func broken() async throws {
        let body = #"{"datasetRecords": {"fresh": {"newValue": "f", "op": "replace"}}}"#
        let once = try await Self.answer("200 OK", body, hangUps: 1)
        #expect(once.kind == nil)
        #expect(once.keys == ["changed", "removed", "added", "fresh"])
        let twice = try await Self.answer("200 OK", body, hangUps: 2)
        #expect(twice.kind == .invalidTriggerOutput)
    }

    @Test(
        "an endpoint that does not answer well refuses the update",
        arguments: [
            ("200 OK", "no JSON", APIFailure.Kind.invalidTriggerOutput),
            ("500 Internal Server Error", "{}", APIFailure.Kind.invalidTriggerOutput),
            ("302 Found", "{}", APIFailure.Kind.invalidTriggerOutput),
            ("429 Too Many Requests", "{}", APIFailure.Kind.triggerThrottled),
        ])
    func endpointFailures(
        _ status: String, _ body: String, _ expected: APIFailure.Kind
    ) async throws {
        #expect(try await Self.answer(status, body).kind == expected)
    }
}
