import Foundation
import ServiceLifecycle
import TestSupport
import Testing
import Tidemark

@testable import TidemarkHub

/// Bytes that no client would send, and the absence of those that one would: each costs the hub
/// little, has its answer, and leaves the hub as it was for everybody else.
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes)))
struct HostileInputTests {
    let directory: TemporaryDirectory
    let store: Store

    init() throws {
        directory = try TemporaryDirectory()
        store = try directory.store("hub")
    }

    /// Nobody is let go for being slow: a busy machine makes everybody slow.
    private static var settings: HubSettings {
        var settings = HubSettings()
        settings.adminToken = HubSecret(testToken)
        settings.protection.headSeconds = 3_600
        settings.protection.idleSeconds = 3_600
        settings.protection.bodyBytesMax = 4_096
        settings.protection.otherBodyBytesMax = 4_096
        return settings
    }

    private static var impatient: HubSettings {
        var settings = settings
        settings.protection.headSeconds = 1
        settings.protection.idleSeconds = 2
        return settings
    }

    /// A whole request in, and the whole answer out, on a connection that is closed behind it.
    private static func answer(_ port: Int, _ request: String) async throws -> String {
        let connection = try RawConnection(port: port)
        try await connection.send(request)
        // All answers here are JSON, or nothing.
        return try await connection.receive(until: "}")
    }

    /// Asked again if there is no answer: an impatient hub lets us go, too, if we are slow.
    private static func expectAlive(_ port: Int) async throws {
        var answer = ""
        let begin = ContinuousClock.now
        while answer.isEmpty, ContinuousClock.now - begin < Patience.limit {
            answer = try await Self.answer(port, "GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        }
        #expect(answer.hasPrefix("HTTP/1.1 200"))
        #expect(answer.contains(#"{"status":"ok"}"#))
    }

    @Test("a head that does not end closes its connection, and many of them nobody else's")
    func slowHeads() async throws {
        try await withServedHub(store, Self.impatient) { port, _ in
            let slow = try (0..<50).map { _ in try RawConnection(port: port) }
            for connection in slow {
                try await connection.send("GET /health HTTP/1.1\r\nHost: a\r\nX-")
            }
            try await Self.expectAlive(port)
            for connection in slow { try await connection.untilClosed() }
            let silent = try RawConnection(port: port)
            try await silent.untilClosed()
            try await Self.expectAlive(port)
        }
    }

    @Test("a body that stops closes its connection")
    func slowBody() async throws {
        try await withServedHub(store, Self.impatient) { port, _ in
            let connection = try RawConnection(port: port)
            try await connection.send(
                "POST / HTTP/1.1\r\nHost: a\r\nX-Amz-Target: AWSCognitoIdentityService.GetId\r\n"
                    + "Content-Length: 1000\r\n\r\n{")
            try await connection.untilClosed()
            try await Self.expectAlive(port)
        }
    }

    @Test("a body that is too large is refused before it has come, and one that never ends, too")
    func largeBodies() async throws {
        try await withServedHub(store, Self.settings) { port, _ in
            let head =
                "POST / HTTP/1.1\r\nHost: a\r\nX-Amz-Target: AWSCognitoIdentityService.GetId\r\n"
            let declared = try await Self.answer(port, head + "Content-Length: 100000000\r\n\r\n")
            #expect(declared.hasPrefix("HTTP/1.1 413"))
            #expect(declared.contains("RequestEntityTooLargeException"))
            #expect(declared.lowercased().contains("connection: close"))
            let endless = try RawConnection(port: port)
            try await endless.send(head + "Transfer-Encoding: chunked\r\n\r\n")
            let chunk = "1000\r\n" + String(repeating: "x", count: 4_096) + "\r\n"
            // It is read for a while, so that the answer arrives, and then no more.
            let begin = ContinuousClock.now
            while try await endless.send(chunk), ContinuousClock.now - begin < Patience.limit {}
            #expect(ContinuousClock.now - begin < Patience.limit)
            try await Self.expectAlive(port)
        }
    }

    @Test("who asks and reads no answers is let go")
    func unreadAnswers() async throws {
        try await withServedHub(store, Self.impatient) { port, _ in
            let connection = try RawConnection(port: port)
            let requests = String(
                repeating: "GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n", count: 100)
            // Until the answers fill all there is between the two, then the questions as well.
            while try await connection.send(requests) {}
            try await Self.expectAlive(port)
        }
    }

    @Test("the body of a stranger is not waited for")
    func strangers() async throws {
        try await withServedHub(store, Self.settings) { port, _ in
            let answer = try await Self.answer(
                port,
                "POST /v1/sync HTTP/1.1\r\nHost: a\r\nContent-Length: 200000000\r\n"
                    + "Content-Type: application/x-tidemark-sync\r\n\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 401"))
            let unsigned = try await Self.answer(
                port, "GET /identitypools HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n")
            #expect(unsigned.hasPrefix("HTTP/1.1 403"))
            #expect(unsigned.contains("MissingAuthenticationTokenException"))
            try await Self.expectAlive(port)
        }
    }

    @Test("what is answered without its body is not read for ever")
    func unwantedBodies() async throws {
        try await withServedHub(store, Self.settings) { port, _ in
            let chunk = "1000\r\n" + String(repeating: "x", count: 4_096) + "\r\n"
            for path in ["/health", "/ready", "/openapi.json"] {
                let endless = try RawConnection(port: port)
                try await endless.send(
                    "GET \(path) HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
                let begin = ContinuousClock.now
                while try await endless.send(chunk), ContinuousClock.now - begin < Patience.limit {}
                #expect(ContinuousClock.now - begin < Patience.limit)
            }
            // One that has none keeps its connection, whatever its method.
            let kept = try RawConnection(port: port)
            for _ in 0..<2 {
                try await kept.send(
                    "OPTIONS /identitypools HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n"
                        + "Access-Control-Request-Method: GET\r\n\r\n")
                let answer = try await kept.receive(until: "\r\n\r\n")
                #expect(answer.hasPrefix("HTTP/1.1 200"))
                #expect(!answer.lowercased().contains("connection: close"))
            }
        }
    }

    @Test("what waits for news is small: it stays in memory")
    func largeWatches() async throws {
        try await withServedHub(store, Self.settings) { port, _ in
            let answer = try await Self.answer(
                port,
                "POST /v1/watch HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(testToken)\r\n"
                    + "Content-Type: application/x-tidemark-sync\r\n"
                    + "Content-Length: 1000000\r\n\r\n")
            #expect(answer.hasPrefix("HTTP/1.1 413"), "\(answer)")
        }
    }

    @Test("what is compressed is refused")
    func compressed() async throws {
        try await withServedHub(store, Self.settings) { port, _ in
            for path in ["/", "/identitypools", "/v1/sync"] {
                let answer = try await Self.answer(
                    port,
                    "POST \(path) HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n"
                        + "Content-Length: 3\r\n\r\nabc")
                #expect(answer.hasPrefix("HTTP/1.1 415"), "\(path): \(answer)")
            }
        }
    }

    @Test("floods of fields, long fields, and long paths are refused")
    func heads() async throws {
        try await withServedHub(store, Self.settings) { port, _ in
            let fields = (0..<70).map { "X-\($0): 1\r\n" }.joined()
            let many = try await Self.answer(
                port, "GET /ready HTTP/1.1\r\nHost: a\r\n\(fields)\r\n")
            #expect(many.hasPrefix("HTTP/1.1 431"))
            for count in [17_000, 60_000, 1_000_000] {
                let text = String(repeating: "x", count: count)
                let heads = [
                    "GET /ready HTTP/1.1\r\nHost: a\r\nX: \(text)\r\n\r\n",
                    "GET /\(text) HTTP/1.1\r\nHost: a\r\n\r\n",
                ]
                for head in heads {
                    let connection = try RawConnection(port: port)
                    try await connection.send(head)
                    let answer = try await connection.receive(until: "}")
                    // Far above the bounds the parser itself gives up, without words.
                    #expect(
                        answer.isEmpty || answer.hasPrefix("HTTP/1.1 431")
                            || answer.hasPrefix("HTTP/1.1 400"), "\(count): \(answer)")
                }
            }
            try await Self.expectAlive(port)
        }
    }

    @Test(
        "paths lead where they say, or nowhere",
        arguments: [
            "/health/", "//health", "/./health", "/v1/../health", "/%68ealth", "/health%00",
            "/HEALTH", "/v1/sync/..", "/metrics/", "http://a/healthy", "/identitypoolsx", "*",
        ])
    func paths(_ path: String) async throws {
        try await withServedHub(store, Self.settings) { port, _ in
            let answer = try await Self.answer(port, "GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(
                answer.hasPrefix("HTTP/1.1 404") || answer.hasPrefix("HTTP/1.1 400"), "\(answer)")
            try await Self.expectAlive(port)
        }
    }

    @Test(
        "paths of the API with tricks in them",
        arguments: [
            "/identitypools/..%2f..%2fhealth", "/identitypools/a%00b",
            "/identitypools/r:1/identities/r:2/../r:3", "/identitypools/%ff",
            "/identitypools/r:1/identities/hub:0/datasets/d", "/identitypools//identities",
            "/identitypools/%",
        ])
    func apiPaths(_ path: String) async throws {
        try await withServedHub(store, Self.settings) { port, _ in
            let answer = try await Self.answer(port, "GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
            let status = answer.dropFirst("HTTP/1.1 ".count).prefix(3)
            #expect(["400", "403", "404", "405"].contains(String(status)), "\(answer)")
            #expect(answer.contains("__type"))
        }
    }

    @Test(
        "what is no HTTP, or HTTP that can be read in two ways",
        arguments: [
            "\u{0}\u{1}\u{2}\r\n\r\n", "SSH-2.0-OpenSSH\r\n\r\n",
            "GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551617\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "GET /health HTTP/9.9\r\n\r\n", "GET\r\n\r\n",
        ])
    func broken(_ request: String) async throws {
        try await withServedHub(store, Self.settings) { port, _ in
            let connection = try RawConnection(port: port)
            try await connection.send(request)
            let answer = try await connection.receive(until: "\r\n\r\n")
            #expect(!answer.contains("HTTP/1.1 200"), "\(answer)")
            try await Self.expectAlive(port)
        }
    }

    @Test("so many connections of one address, and the next ones are closed at once")
    func connections() async throws {
        var settings = Self.settings
        settings.protection.connectionsPerAddressMax = 5
        try await withServedHub(store, settings) { port, _ in
            var held: [RawConnection] = []
            for _ in 0..<5 {
                let connection = try RawConnection(port: port)
                try await connection.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
                let answer = try await connection.receive(until: "}")
                #expect(answer.hasPrefix("HTTP/1.1 200"))
                held.append(connection)
            }
            for _ in 0..<5 {
                let refused = try RawConnection(port: port)
                try await refused.untilClosed()
            }
            // Those that are there go on.
            for connection in held {
                try await connection.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
                let answer = try await connection.receive(until: "}")
                #expect(answer.hasPrefix("HTTP/1.1 200"))
            }
            held = []
            var answer = ""
            while !answer.hasPrefix("HTTP/1.1 200") {
                answer = try await Self.answer(port, "GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            }
        }
    }

    @Test("whoever asks too often is told when to come again")
    func rates() async throws {
        var settings = Self.settings
        settings.protection.requestsPerSecondOfAddress = 1
        settings.protection.requestBurstOfAddress = 3
        try await withServedHub(store, settings) { port, _ in
            let request = "GET /identitypools HTTP/1.1\r\nHost: a\r\n\r\n"
            var refused = ""
            let begin = ContinuousClock.now
            // All at once, since on a slow machine two in a row may be a second apart.
            while !refused.hasPrefix("HTTP/1.1 429"), ContinuousClock.now - begin < Patience.limit {
                let connections = try (0..<10).map { _ in try RawConnection(port: port) }
                for connection in connections { try await connection.send(request) }
                for connection in connections {
                    let answer = try await connection.receive(until: "}")
                    if answer.hasPrefix("HTTP/1.1 429") { refused = answer }
                }
            }
            #expect(refused.hasPrefix("HTTP/1.1 429"))
            #expect(refused.contains("TooManyRequestsException"))
            #expect(refused.lowercased().contains("retry-after: 1"))
            // What balances load is not counted.
            for _ in 0..<20 { try await Self.expectAlive(port) }
        }
    }

    @Test("the hub ends while requests hang, once their time is over")
    func drain() async throws {
        var settings = Self.settings
        settings.protection.drainSeconds = 1
        let begin = ContinuousClock.now
        let connection = try await withServedHub(store, settings) { port, _ in
            let connection = try RawConnection(port: port)
            try await connection.send(
                "POST / HTTP/1.1\r\nHost: a\r\nX-Amz-Target: AWSCognitoIdentityService.GetId\r\n"
                    + "Content-Length: 1000\r\n\r\n{")
            try await Self.expectAlive(port)
            return connection
        }
        #expect(ContinuousClock.now - begin < Patience.limit)
        try await connection.untilClosed()
    }
}
