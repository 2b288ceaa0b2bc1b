import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// Configuration and events of pools, through the API.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct PoolOperationsTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static let configuration = """
        {
          "PushSync": {
            "ApplicationArns": ["arn:aws:sns:us-east-1:123456789012:app/GCM/My.App-1_x"],
            "RoleArn": "arn:aws:iam::123456789012:role/push"
          },
          "CognitoStreams": {
            "StreamName": "notes", "RoleArn": "arn:aws:iam::123456789012:role/stream",
            "StreamingStatus": "ENABLED"
          }
        }
        """

    @Test("a pool that nobody configured has its id, and no events")
    func untouched() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let answer = try await world.answer("GET", "\(world.poolPath)/configuration")
        #expect(answer == ["IdentityPoolId": .string(world.pool.text)])
        #expect(try await world.answer("GET", "\(world.poolPath)/events") == ["Events": [:]])
        try await world.end()
    }

    @Test("what is set is answered, and is there after a restart")
    func configuration() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        var expected = try JSONValue(parsing: Array(Self.configuration.utf8))
        expected["IdentityPoolId"] = .string(world.pool.text)
        let path = "\(world.poolPath)/configuration"
        #expect(try await world.answer("POST", path, Self.configuration) == expected)
        #expect(try await world.answer("GET", path) == expected)
        #expect(world.parts.book.record(of: world.pool)?.isStreaming == true)
        try await world.end()
        let again = try PoolWorld(try directory.store("hub"))
        #expect(try await again.answer("GET", path) == expected)
        try await again.end()
    }

    @Test("a block that is missing stays as it is")
    func partial() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let path = "\(world.poolPath)/configuration"
        _ = try await world.answer("POST", path, Self.configuration)
        let answer = try await world.answer(
            "POST", path, #"{"PushSync": {"ApplicationArns": []}}"#)
        #expect(answer["PushSync"] == ["ApplicationArns": []])
        #expect(answer["CognitoStreams"]?["StreamingStatus"] == "ENABLED")
        #expect(world.parts.book.record(of: world.pool)?.hasPush == false)
        try await world.end()
    }

    @Test(
        "what is out of shape is refused",
        arguments: [
            #"{"PushSync": {"ApplicationArns": ["arn:aws:sns:us-east-1:1:app/gcm/a"]}}"#,
            #"{"PushSync": {"RoleArn": "arn:aws:iam::x:role/a0000000"}}"#,
            #"{"CognitoStreams": {"StreamName": "", "StreamingStatus": "ENABLED"}}"#,
            #"{"CognitoStreams": {"StreamName": "a", "StreamingStatus": "ON"}}"#,
            #"{"CognitoStreams": {"StreamingStatus": "ENABLED"}}"#,
        ])
    func shapes(_ body: String) async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let path = "\(world.poolPath)/configuration"
        #expect(try await world.refusal("POST", path, body) == .invalidParameter)
        try await world.end()
    }

    @Test(
        "what is no JSON of the right types is refused as such",
        arguments: [
            "{", "[]", "7", #"{"PushSync": 1}"#, #"{"PushSync": {"ApplicationArns": "a"}}"#,
            #"{"PushSync": {"ApplicationArns": [1]}}"#, #"{"CognitoStreams": {"StreamName": 1}}"#,
        ])
    func types(_ body: String) async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let path = "\(world.poolPath)/configuration"
        #expect(try await world.refusal("POST", path, body) == .serialization)
        try await world.end()
    }

    @Test("a stream or trigger that the settings do not name cannot be turned on")
    func unnamed() async throws {
        let world = try PoolWorld(try directory.store("hub")) { $0.stream = nil }
        #expect(
            try await world.refusal(
                "POST", "\(world.poolPath)/configuration", Self.configuration)
                == .invalidParameter)
        #expect(
            try await world.refusal(
                "POST", "\(world.poolPath)/events", #"{"Events": {"SyncTrigger": "x"}}"#)
                == .invalidParameter)
        try await world.end()
    }

    @Test("a pool that is not there is not found")
    func unknownPool() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let path = "/identitypools/us-east-1:ffff/configuration"
        #expect(try await world.refusal("GET", path) == .resourceNotFound)
        #expect(try await world.refusal("POST", path, "{}") == .resourceNotFound)
        try await world.end()
    }

    @Test("events are merged, an empty one is removed, and there is only one")
    func events() async throws {
        let world = try PoolWorld(try directory.store("hub")) { behavior in
            behavior.trigger = .closure { _ in [] }
        }
        let path = "\(world.poolPath)/events"
        let arn = "arn:aws:lambda:us-east-1:1:function:check"
        let set = #"{"Events": {"SyncTrigger": "\#(arn)"}}"#
        #expect(try await world.answer("POST", path, set) == [:])
        let expected: JSONValue = ["Events": ["SyncTrigger": .string(arn)]]
        #expect(try await world.answer("GET", path) == expected)
        _ = try await world.answer("POST", path, #"{"Events": {}}"#)
        #expect(try await world.answer("GET", path) == expected)
        #expect(
            try await world.refusal("POST", path, #"{"Events": {"Other": "x"}}"#)
                == .invalidParameter)
        #expect(try await world.refusal("POST", path, "{}") == .invalidParameter)
        _ = try await world.answer("POST", path, #"{"Events": {"SyncTrigger": ""}}"#)
        #expect(try await world.answer("GET", path) == ["Events": [:]])
        try await world.end()
    }

    @Test("who changes a pool that somebody else has changed is told so, and then may")
    func concurrent() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnStream()
        var record = PoolRecord()
        record.syncTrigger = "by somebody else"
        try world.store.dataset(PoolBook.datasetName)
            .put(record.encoded, for: Array(world.pool.text.utf8))
        let path = "\(world.poolPath)/configuration"
        let body = #"{"PushSync": {}}"#
        #expect(try await world.refusal("POST", path, body) == .concurrentModification)
        #expect(world.parts.book.record(of: world.pool) == record)
        #expect(try await world.refusal("POST", path, body) == nil)
        try await world.end()
    }

    @Test("a record that nothing has written is not taken for a configuration")
    func damaged() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try world.store.dataset(PoolBook.datasetName)
            .put("no JSON", for: world.pool.text)
        try await world.end()
        let store = try directory.store("hub")
        let behaviors = [world.pool: PoolBehavior()]
        #expect(throws: StoreError.self) { try PoolBook(store, behaviors: behaviors) }
        try store.close()
    }

    @Test("what is stored of a pool is read again", arguments: [0, 1, 2, 3, 4, 5, 6, 7])
    func coding(_ bits: Int) throws {
        var record = PoolRecord()
        if bits & 1 != 0 {
            record.pushSync = PoolRecord.PushSync(applicationARNs: ["a", "b"], roleARN: "r")
        }
        if bits & 2 != 0 {
            record.stream = PoolRecord.Stream(name: "n", roleARN: nil, isEnabled: true)
        }
        if bits & 4 != 0 { record.syncTrigger = "t\"\n" }
        #expect(PoolRecord(encoded: record.encoded) == record)
        #expect(PoolRecord(encoded: Array(record.encoded.dropLast())) == nil)
    }

    @Test("ARNs follow the rules of the service model")
    func rules() {
        let applications = [
            "arn:aws:sns:us-east-1:1:app/APNS_SANDBOX/a.b-c_D": true,
            "arn:aws:sns:us-east-1:1:app/APNS/": false,
            "arn:aws:sns::1:app/APNS/a": false,
            "arn:aws:sns:us-east-1:a:app/APNS/a": false,
            "arn:aws:sns:us-east-1:1:app/APNS/a/b": false,
            "arn:aws:sns:us-east-1:1:app/APNS/a:b": false,
            "xarn:aws:sns:us-east-1:1:app/APNS/a": false,
            "": false,
        ]
        for (text, isAllowed) in applications {
            #expect(PoolRules.isApplicationARN(text) == isAllowed, "\(text)")
        }
        #expect(PoolRules.isRoleARN("arn:aws:iam::1:role/a"))
        #expect(!PoolRules.isRoleARN("arn:aws:iam::1:role"))
        #expect(!PoolRules.isRoleARN("arn:aws:iam::a:role/abcdef"))
        #expect(!PoolRules.isRoleARN("arn:aws:iam::1:role/" + String(repeating: "a", count: 2_048)))
        #expect(PoolRules.isStreamName(String(repeating: "é", count: 128)))
        #expect(!PoolRules.isStreamName(String(repeating: "é", count: 129)))
    }
}
