import TestSupport
import Testing
import Tidemark
import TidemarkHTTP
import TidemarkSync

/// Everything at the other end of an address that is no hub, or not the right one: a typed error,
/// and the store still has every write.
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes)))
struct HTTPTransportTests {
    struct Answer: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]?
        let code: SyncError.Code
    }

    static let syncType = HTTPTransport.contentType

    static let answers = [
        Answer(testDescription: "closes without a word", bytes: nil, code: .unreachable),
        Answer(
            testDescription: "no HTTP", bytes: Array("SSH-2.0-OpenSSH\r\n".utf8),
            code: .badMessage),
        Answer(
            testDescription: "a web page",
            bytes: canned(type: "text/html", body: "<html>hello</html>"), code: .badMessage),
        Answer(
            testDescription: "junk of the right type",
            bytes: canned(type: syncType, body: "junk"), code: .badMessage),
        Answer(
            testDescription: "nothing of the right type", bytes: canned(type: syncType, body: ""),
            code: .badMessage),
        Answer(
            testDescription: "more than is accepted",
            bytes: canned(type: syncType, body: String(repeating: "x", count: 5_000)),
            code: .tooLarge),
        Answer(
            testDescription: "a redirect",
            bytes: canned(status: "301 Moved", type: "text/plain", body: ""), code: .peerFailed),
        Answer(
            testDescription: "not found",
            bytes: canned(status: "404 Not Found", type: "text/plain", body: ""),
            code: .peerFailed),
        Answer(
            testDescription: "forbidden",
            bytes: canned(status: "403 Forbidden", type: "text/plain", body: ""),
            code: .unauthorized),
        Answer(
            testDescription: "too large",
            bytes: canned(status: "413 Too Large", type: "text/plain", body: ""), code: .tooLarge),
        Answer(
            testDescription: "an internal error",
            bytes: canned(status: "500 Internal Server Error", type: "text/plain", body: ""),
            code: .peerFailed),
    ]

    @Test(arguments: answers)
    func whatIsNoHub(_ answer: Answer) async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.store("a")
        try store.dataset("notes").put("1", for: "key")
        let server = try CannedServer(answer.bytes)
        defer { server.stop() }
        let transport = HTTPTransport(url: server.url, token: "token", responseBytesMax: 4_000)
        let error = await #expect(throws: SyncError.self) {
            try await store.synchronize(with: transport)
        }
        await transport.shutdown()
        #expect(error?.code == answer.code, "\(error?.message ?? "no error")")
        try store.close()
        #expect(try directory.store("a").dataset("notes").text("key") == "1")
    }

    /// The client library took a status code of 000 for the announcement of an answer, and trapped
    /// at the body that followed. Found by bits that were turned over on the way.
    @Test(arguments: ["000 OK", "099 OK"])
    func aStatusThatIsNone(_ status: String) async throws {
        let server = try CannedServer(canned(status: status, type: Self.syncType, body: "x"))
        defer { server.stop() }
        let transport = HTTPTransport(url: server.url, token: nil)
        let error = await #expect(throws: SyncError.self) { try await transport.send([1]) }
        await transport.shutdown()
        #expect(error?.code == .badMessage, "\(error?.message ?? "no error")")
    }

    /// Each bit of an answer turned over, in the head and in the frame of its body: an answer or a
    /// typed error, and never the end of the process.
    @Test(arguments: ["content-length: 4", "transfer-encoding: chunked"])
    func eachBitTurnedOver(_ framing: String) async throws {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: \(Self.syncType)\r\n\(framing)\r\n\r\n"
        let body = framing.hasSuffix("chunked") ? "4\r\nbody\r\n0\r\n\r\n" : "body"
        let answer = Array((head + body).utf8)
        var refused = 0
        for bit in 0..<answer.count * 8 {
            var damaged = answer
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            let server = try CannedServer(damaged)
            defer { server.stop() }
            let transport = HTTPTransport(url: server.url, token: nil)
            do {
                _ = try await transport.send([1])
            } catch {
                refused += 1
            }
            await transport.shutdown()
        }
        // What is turned over in the status, the type and the framing is seen.
        #expect(refused > answer.count && refused < answer.count * 8)
    }

    /// A hub of another version answers in its own, and says so.
    @Test func aHubOfAnotherVersion() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.store("a")
        // The frame of a hello answer in version 9: header, empty body, checksum.
        let message: [UInt8] = [
            0x54, 0x4D, 0x53, 0x59, 9, 0, 0x81, 0, 0, 0, 0, 0,
        ]
        let sum = unsafe message.withUnsafeBytes { unsafe checksum64($0) }
        let bytes = message + (0..<8).map { UInt8(truncatingIfNeeded: sum >> (8 * $0)) }
        var answer = Array(
            "HTTP/1.1 200 OK\r\ncontent-type: \(Self.syncType)\r\ncontent-length: 20\r\n\r\n".utf8)
        answer += bytes
        let server = try CannedServer(answer)
        defer { server.stop() }
        let error = await #expect(throws: SyncError.self) {
            try await synchronize(store, server.url)
        }
        #expect(error?.code == .protocolMismatch)
    }

    @Test(arguments: ["http://127.0.0.1:1", "no address at all", "ftp://127.0.0.1", ""])
    func nobodyThere(_ url: String) async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.store("a")
        try store.dataset("notes").put("1", for: "key")
        let error = await #expect(throws: SyncError.self) {
            try await synchronize(store, url)
        }
        #expect(error?.code == .unreachable)
        #expect(error?.message.contains(url) == true)
        #expect(try store.dataset("notes").text("key") == "1")
    }

    @Test func shutDownTwiceAndThenAsked() async throws {
        let directory = try TemporaryDirectory()
        let store = try directory.store("a")
        let transport = HTTPTransport(url: "http://127.0.0.1:1", token: nil)
        await transport.shutdown()
        await transport.shutdown()
        let error = await #expect(throws: SyncError.self) {
            try await store.synchronize(with: transport)
        }
        #expect(error?.code == .unreachable)
    }
}
