import AsyncHTTPClient
import Logging
import NIOCore
import NIOHTTP1
import TidemarkSync

/// Why a post was not taken. Never holds what was posted, nor a secret.
enum WebhookFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// No answer: it is not there, or the connection broke.
    case unreachable(String)
    case timedOut
    case tooLarge
    /// With a status that is not 2xx.
    case refused(status: UInt)
    case cancelled

    var description: String {
        switch self {
        case .unreachable(let reason): "it cannot be reached (\(reason))"
        case .timedOut: "it timed out"
        case .tooLarge: "its answer is too large"
        case .refused(let status): "it answered with status \(status)"
        case .cancelled: "the hub is shutting down"
        }
    }
}

/// An endpoint of the app's service that is sent signed posts of JSON.
struct Webhook: Sendable {
    /// `http://…` or `https://…`, checked with the settings.
    let url: String
    let secret: [UInt8]
    /// Must not follow redirects: what is posted is for nobody else.
    let http: HTTPClient
    let clock: any SyncEnvironment
    let logger: Logger

    /// Posts a document and returns the answer's body.
    ///
    /// - Parameters:
    ///   - delivery: names it towards the receiver; nil for questions, which are not repeated.
    ///   - limit: for all of it, from connecting to the last byte of the answer.
    ///   - answerBytesMax: of the answer's body.
    func post(
        _ body: [UInt8], delivery: String? = nil, limit: Duration, answerBytesMax: Int
    ) async throws(WebhookFailure) -> [UInt8] {
        let request = request(body, delivery: delivery)
        let http = http
        let answer: Answer?
        do {
            answer = try await TimeLimit.run(limit, clock) {
                try await Self.exchange(request, by: http, answerBytesMax: answerBytesMax)
            }
        } catch is NIOTooManyBytesError {
            throw .tooLarge
        } catch is CancellationError {
            throw .cancelled
        } catch {
            throw .unreachable("\(error)")
        }
        guard let answer else { throw .timedOut }
        guard (200..<300).contains(answer.status) else { throw .refused(status: answer.status) }
        return answer.body
    }

    private struct Answer: Sendable {
        let status: UInt
        let body: [UInt8]
    }

    func request(_ body: [UInt8], delivery: String?) -> HTTPClientRequest {
        let timestamp = clock.now() / 1_000
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "content-type", value: "application/json")
        request.headers.add(name: "user-agent", value: "tidemark")
        request.headers.add(name: WebhookSignature.timestampHeader, value: "\(timestamp)")
        request.headers.add(
            name: WebhookSignature.signatureHeader,
            value: WebhookSignature.text(of: body, timestamp: timestamp, secret: secret))
        if let delivery {
            request.headers.add(name: WebhookSignature.deliveryHeader, value: delivery)
        } else {
            // A delivery comes some time after the requests that it tells of, and is part of none.
            RequestTracing.pass(to: &request.headers)
        }
        request.body = .bytes(ByteBuffer(bytes: body))
        return request
    }

    private static func exchange(
        _ request: HTTPClientRequest, by http: HTTPClient, answerBytesMax: Int
    ) async throws -> Answer {
        // Whoever waits has the time, and cancels this at its end.
        let response = try await http.execute(request, deadline: .distantFuture)
        let isTaken = (200..<300).contains(response.status.code)
        // Of a refusal nothing but the status counts.
        let body =
            try await isTaken ? response.body.collect(upTo: answerBytesMax) : ByteBuffer()
        return Answer(status: response.status.code, body: Array(body.readableBytesView))
    }
}
