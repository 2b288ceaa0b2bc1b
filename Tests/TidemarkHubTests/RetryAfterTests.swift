import TestSupport
import Testing
import TidemarkSync

@testable import TidemarkHTTP

/// A hub that says when it wants to be asked again is asked then, and not for ever.
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes)))
struct RetryAfterTests {
    private static func busy(_ status: String, _ seconds: String?) -> [UInt8] {
        canned(
            status: status, type: "application/json", body: "{}",
            fields: seconds.map { "retry-after: \($0)\r\n" } ?? "")
    }

    private static let good = canned(type: HTTPTransport.contentType, body: "answer")

    /// What a request ends with, and what was waited for meanwhile.
    private static func outcome(
        _ answers: [[UInt8]], retryWaitMax: Duration = .seconds(10)
    ) async throws -> (result: Result<[UInt8], SyncError>, slept: [Duration]) {
        let server = try CannedServer(inTurn: answers)
        defer { server.stop() }
        let time = VirtualEnvironment(passesBySleeping: true)
        let transport = HTTPTransport(
            url: server.url, token: nil, timeout: Patience.limit, retryWaitMax: retryWaitMax,
            environment: time)
        let result: Result<[UInt8], SyncError>
        do throws(SyncError) {
            result = .success(try await transport.send([1]))
        } catch {
            result = .failure(error)
        }
        await transport.shutdown()
        return (result: result, slept: time.slept)
    }

    @Test("only a number of seconds is one, and none is beyond a day")
    func parsing() {
        let cases: [(String, Duration?)] = [
            ("0", .zero), ("1", .seconds(1)), ("120", .seconds(120)), ("86401", .seconds(86_400)),
            ("99999999999999999999999", .seconds(86_400)), ("", nil), ("-1", nil), ("1.5", nil),
            ("+3", nil), (" 3", nil), ("\u{0663}", nil), ("Fri, 31 Dec 1999 23:59:59 GMT", nil),
        ]
        for (text, expected) in cases { #expect(RetryAfter.duration(text) == expected, "\(text)") }
    }

    @Test("a busy hub is asked again when it says so")
    func honoured() async throws {
        let (result, slept) = try await Self.outcome([
            Self.busy("429 Too Many Requests", "3"), Self.busy("503 Service Unavailable", "7"),
            Self.good,
        ])
        let answer = try result.get()
        #expect(answer == Array("answer".utf8))
        #expect(slept == [.seconds(3), .seconds(7)])
    }

    @Test("one that is busy for longer is told of, with when to come again")
    func bounded() async throws {
        let (result, slept) = try await Self.outcome([Self.busy("429 Too Many Requests", "4")])
        guard case .failure(let error) = result else {
            Issue.record("it is not told")
            return
        }
        #expect(error.code == .peerFailed && error.isTransient)
        #expect(error.retryAfter == .seconds(4))
        #expect(error.message.contains("429") && error.message.contains("in 4 s"))
        #expect(slept == [.seconds(4), .seconds(4)])
        // What is more than all that may be waited is not waited for at all.
        let (longer, none) = try await Self.outcome([Self.busy("503 Service Unavailable", "11")])
        guard case .failure(let refusal) = longer else {
            Issue.record("it is not told")
            return
        }
        #expect(refusal.retryAfter == .seconds(11) && none.isEmpty)
        // Nor is a hub that says "at once" asked without end.
        let (_, many) = try await Self.outcome([Self.busy("429 Too Many Requests", "0")])
        #expect(many.count == 20 && many.allSatisfy { $0 == .milliseconds(500) })
    }

    @Test(
        "who does not say when, or is not busy, is not asked again",
        arguments: [
            "429 Too Many Requests", "503 Service Unavailable", "500 Internal Server Error",
        ])
    func silent(_ status: String) async throws {
        let isBusy = !status.hasPrefix("500")
        let answer = Self.busy(status, isBusy ? nil : "1")
        let (result, slept) = try await Self.outcome([answer, Self.good])
        guard case .failure(let error) = result else {
            Issue.record("it is not told")
            return
        }
        #expect(error.code == .peerFailed && error.retryAfter == nil && slept.isEmpty)
    }

    @Test("who is cancelled while it waits is told at once")
    func cancelled() async throws {
        let server = try CannedServer(Self.busy("429 Too Many Requests", "9"))
        defer { server.stop() }
        let time = VirtualEnvironment()
        let transport = HTTPTransport(
            url: server.url, token: nil, timeout: Patience.limit, retryWaitMax: .seconds(30),
            environment: time)
        let call = Task { try await transport.send([1]) }
        await time.untilAsleep()
        call.cancel()
        let error = await #expect(throws: SyncError.self) { try await call.value }
        #expect(error?.code == .cancelled)
        await transport.shutdown()
    }
}
