import ServiceLifecycle
import Synchronization
import TestSupport
import Testing
import Tidemark
import TidemarkSync
import Tracing

@testable import TidemarkHub

/// Spans of a served hub, as a tracer gets them. Each test has a tracer of its own, for the tasks
/// below it alone.
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes)))
struct TracingTests {
    private let directory: TemporaryDirectory
    private let store: Store

    init() throws {
        directory = try TemporaryDirectory()
        store = try directory.store("hub")
    }

    private static let secret = "zebra9crossing"
    private static let origin = RecordingTracer.Place(
        trace: "4bf92f3577b34da6a3ce929d0e0e4736", id: "00f067aa0ba902b7")

    private static var settings: HubSettings {
        var settings = ServedClient.settings
        settings.traces = true
        return settings
    }

    /// Runs a hub, and returns what its tracer got.
    private func spans(
        _ store: Store, _ settings: HubSettings,
        _ body: @escaping @Sendable (_ port: Int) async throws -> Void
    ) async throws -> [RecordedSpan] {
        let tracer = RecordingTracer()
        try await withTracer(tracer) { () async throws -> Void in
            try await withServedHub(store, settings) { port, _ in try await body(port) }
        }
        return tracer.spans
    }

    private func get(_ path: String, _ fields: String = "") -> String {
        "GET \(path) HTTP/1.1\r\nHost: a\r\n\(fields)\r\n"
    }

    @Test("a span is named as metrics name what was asked, and belongs to the caller's trace")
    func names() async throws {
        let (traced, plain) = (
            get("/ready", "traceparent: \(Self.origin.traceparent)\r\n"),
            get("/ready", "traceparent: junk\r\n")
        )
        let health = get("/health")
        let ids = Mutex<[String?]>([])
        let spans = try await spans(store, Self.settings) { port in
            for request in [health, traced, plain] {
                let answer = try await ServedClient.exchange(port, request)
                #expect(answer.status == 200)
                ids.withLock { $0.append(answer.fields["x-amzn-requestid"]) }
            }
        }
        // What balancers ask for all the time has none.
        try #require(spans.count == 2)
        for (span, id) in zip(spans, ids.withLock { $0.dropFirst() }) {
            #expect(span.operationName == "ready" && span.kind == .server)
            #expect(!span.isRecording && !span.isFailed)
            #expect(
                span.texts == [
                    "http.request.method": "GET", "http.route": "ready",
                    "http.response.status_code": "200", "tidemark.request_id": id,
                ])
        }
        #expect(spans[0].parent == Self.origin && spans[0].place.trace == Self.origin.trace)
        #expect(spans[1].parent == nil)
    }

    @Test("operations have their names, and of what they are about a span says nothing")
    func operations() async throws {
        let spans = try await spans(store, Self.settings) { port in
            let client = try await ServedClient(port)
            let written = try await client.write(Self.secret, [(Self.secret, Self.secret)])
            #expect(written.status == 200)
        }
        #expect(
            spans.map(\.operationName) == [
                "GetId", "GetCredentialsForIdentity", "ListRecords", "UpdateRecords",
            ])
        for span in spans {
            #expect(span.texts["http.response.status_code"] == "200", "\(span.everything)")
            #expect(!span.everything.contains(Self.secret), "\(span.everything)")
            #expect(!span.everything.contains(ServedClient.pool), "\(span.everything)")
        }
    }

    @Test("a refusal has its name and is no failure of the hub's, and no secret of it is there")
    func refusals() async throws {
        let secret = Self.secret
        let signature =
            "AWS4-HMAC-SHA256 Credential=AKIA\(secret)/20261123/us-east-1/cognito-sync/"
            + "aws4_request, SignedHeaders=host;x-amz-date, Signature=\(secret)"
        let body = #"{"IdentityPoolId":"\#(ServedClient.pool)","Logins":{"a":"\#(secret)"}}"#
        let requests = [
            get("/metrics", "Authorization: Bearer \(secret)\r\n"),
            get(
                "/identitypools",
                "X-Amz-Date: 20261123T000000Z\r\nX-Amz-Security-Token: \(secret)\r\n"
                    + "Authorization: \(signature)\r\n"),
            get("/identitypools?X-Amz-Signature=\(secret)"),
            get("/\(secret)?a=\(secret)", "Cookie: \(secret)\r\n"),
            "POST / HTTP/1.1\r\nHost: a\r\nX-Amz-Target: AWSCognitoIdentityService.GetId\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)",
        ]
        let statuses = Mutex<[String]>([])
        let spans = try await spans(store, Self.settings) { port in
            for request in requests {
                let answer = try await ServedClient.exchange(port, request)
                #expect((400..<500).contains(answer.status), "\(answer.body)")
                statuses.withLock { $0.append("\(answer.status)") }
            }
        }
        #expect(
            spans.map { $0.texts["http.response.status_code"] } == statuses.withLock { $0 })
        let kinds = Set(APIFailure.Kind.allCases.map(\.rawValue))
        for span in spans {
            #expect(span.texts["error.type"].map { kinds.contains($0) } == true)
            #expect(!span.isFailed && !span.isRecording)
            #expect(!span.everything.contains(secret), "\(span.everything)")
        }
    }

    @Test("what the hub cannot do is a failure of the span")
    func failures() async throws {
        let storage = SimulatedStorage(seed: Seed(1))
        let options = StoreOptions(durability: .disk, segmentBytes: 1 << 20)
        let full = try Store.open(at: "/store", options: options, storage: storage)
        let spans = try await spans(full, Self.settings) { port in
            let client = try await ServedClient(port)
            storage.faults = [
                StorageFault(
                    .diskFull, of: [.write, .sync, .truncate, .syncMapping, .syncDirectory],
                    isLasting: true)
            ]
            #expect(try await client.write("d", [("a", "1")]).status == 503)
        }
        let last = try #require(spans.last)
        #expect(last.operationName == "UpdateRecords" && last.isFailed)
        #expect(last.texts["error.type"] == "ServiceUnavailableException")
        #expect(spans.dropLast().allSatisfy { !$0.isFailed })
        try? full.close()
    }

    @Test("an endpoint that a request asks is in its trace, and its address is in no span")
    func endpoints() async throws {
        let answer = #"{"action": "RESOLVE", "value": "both"}"#
        let server = try CannedServer(canned(type: "application/json", body: answer))
        defer { server.stop() }
        var settings = Self.settings
        settings.pools[0].strategy = .resolver
        settings.pools[0].resolver = PoolSettings.Endpoint(
            url: "\(server.url)/\(Self.secret)?key=\(Self.secret)",
            secret: HubSecret(String(repeating: "s", count: 32)))
        let spans = try await spans(store, settings) { port in
            let client = try await ServedClient(port)
            #expect(try await client.write("d", [("a", "1")]).status == 200)
            // By one who has not seen it.
            let listing = try await client.sync("GET", "/datasets/d/records")
            let token = try #require(listing.json?["SyncSessionToken"]?.text)
            let written = try await client.sync(
                "POST", "/datasets/d",
                body: #"{"SyncSessionToken": \#(JSONText.quoted(token)), "RecordPatches": ["#
                    + #"{"Op": "replace", "Key": "a", "Value": "2", "SyncCount": 0}]}"#)
            #expect(written.json?["Records"]?.elements?.first?["Value"]?.text == "both")
        }
        let asking = try #require(spans.last)
        #expect(asking.operationName == "UpdateRecords")
        let asked = try #require(server.requests.first)
        #expect(asked.contains("traceparent: \(asking.place.traceparent)\r\n"), "\(asked)")
        for span in spans {
            #expect(span.kind == .server)
            #expect(!span.everything.contains(Self.secret), "\(span.everything)")
        }
    }

    @Test("without the setting there are no spans, whatever tracer there is")
    func off() async throws {
        var settings = Self.settings
        settings.traces = false
        let request = get("/ready", "traceparent: \(Self.origin.traceparent)\r\n")
        let spans = try await spans(store, settings) { port in
            let answer = try await ServedClient.exchange(port, request)
            #expect(answer.status == 200)
        }
        #expect(spans.isEmpty)
    }
}
