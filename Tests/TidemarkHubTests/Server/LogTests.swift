import Logging
import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkHub

/// What requests leave in the log.
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes)))
struct LogTests {
    private final class Lines: Sendable {
        private let lines = Mutex<[String]>([])

        func add(_ line: String) {
            lines.withLock { $0.append(line) }
        }

        var all: [String] { lines.withLock { $0 } }
    }

    /// Keeps all that a line holds.
    private struct Handler: LogHandler {
        let lines: Lines
        var logLevel = Logger.Level.info
        var metadata: Logger.Metadata = [:]

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let own = event.metadata ?? [:]
            let error = event.error.map { "\($0)" } ?? ""
            lines.add("\(event.level) \(event.message) \(metadata) \(own) \(error)")
        }
    }

    @Test("no secret of a request is in the log, and a refusal has its request's id")
    func secrets() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.store("hub")
        let lines = Lines()
        let logger = Logger(label: "test") { _ in Handler(lines: lines) }
        var settings = HubSettings()
        settings.adminToken = HubSecret(testToken)
        settings.pools = [
            PoolSettings(id: "us-east-1:3e0e5eb2-2c5c-4bba-8a4d-bd1ad5c1c6f1", name: "p")
        ]
        let secret = "zebra9crossing"
        let signature =
            "AWS4-HMAC-SHA256 Credential=AKIA\(secret)/20261123/us-east-1/cognito-sync/"
            + "aws4_request, SignedHeaders=host;x-amz-date, Signature=\(secret)"
        let body = #"{"IdentityPoolId":"us-east-1:3e0e5eb2","Logins":{"a":"\#(secret)"}}"#
        let requests = [
            "GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(secret)\r\n\r\n",
            "GET /identitypools HTTP/1.1\r\nHost: a\r\nX-Amz-Date: 20261123T000000Z\r\n"
                + "X-Amz-Security-Token: \(secret)\r\nAuthorization: \(signature)\r\n\r\n",
            "GET /identitypools?X-Amz-Signature=\(secret) HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /\(secret)?a=\(secret) HTTP/1.1\r\nHost: a\r\nCookie: \(secret)\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nX-Amz-Target: AWSCognitoIdentityService.GetId\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)",
        ]
        let answers = try await withServedHub(store, settings, logger: logger) { port, _ in
            var answers: [String] = []
            for request in requests {
                let connection = try RawConnection(port: port)
                try await connection.send(request)
                answers.append(try await connection.receive(until: "}"))
            }
            return answers
        }
        for answer in answers {
            #expect(answer.hasPrefix("HTTP/1.1 4"), "\(answer)")
            let id = answer.split(separator: "\r\n").first {
                $0.lowercased().hasPrefix("x-amzn-requestid: ")
            }?.split(separator: " ").last
            let found = try #require(id)
            #expect(lines.all.contains { $0.contains(found) && $0.contains("request refused") })
        }
        for line in lines.all {
            #expect(!line.contains(secret) && !line.contains(testToken), "\(line)")
        }
    }

    @Test("a notice for the log is a line with all of it but the device's token")
    func notices() async throws {
        let lines = Lines()
        let gateway = LogGateway(logger: Logger(label: "test") { _ in Handler(lines: lines) })
        try await gateway.deliver(
            PushNotice(
                identityPoolID: "the-pool", identityID: "the-identity", datasetName: "notes",
                syncCount: 4_711, deviceID: "the-device", platform: "GCM",
                token: "zebra9crossing"))
        let line = try #require(lines.all.first)
        #expect(lines.all.count == 1)
        for part in ["the-pool", "the-identity", "notes", "4711", "the-device", "GCM"] {
            #expect(line.contains(part), "\(line)")
        }
        #expect(!line.contains("zebra9crossing"))
    }

    @Test("a hub whose logger keeps nothing answers as any other")
    func silence() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.store("hub")
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let answer = try await withServedHub(store, HubSettings(), logger: logger) { port, _ in
            let connection = try RawConnection(port: port)
            try await connection.send("GET /ready HTTP/1.1\r\nHost: a\r\n\r\n")
            return try await connection.receive(until: "}")
        }
        #expect(answer.hasPrefix("HTTP/1.1 200"))
        #expect(answer.lowercased().contains("x-amzn-requestid: "))
    }

    @Test("of more refusals than so many in a second the others are counted")
    func bound() {
        let meter = RefusalMeter(linesPerSecond: 3)
        let begin = ContinuousClock.now
        let first = (0..<10).map { meter.admit(at: begin + .milliseconds($0)) }
        #expect(first == [0, 0, 0, nil, nil, nil, nil, nil, nil, nil])
        #expect(meter.admit(at: begin + .milliseconds(999)) == nil)
        #expect(meter.admit(at: begin + .milliseconds(1_000)) == 8)
        #expect(meter.admit(at: begin + .milliseconds(1_001)) == 0)
    }
}
