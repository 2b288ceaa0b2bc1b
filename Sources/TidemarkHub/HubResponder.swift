import HTTPTypes
import Hummingbird
import Logging
import Metrics
import NIOCore
import NIOPosix
import TidemarkHTTP
import TidemarkSync

/// Answers the hub's requests: finds out what is asked, lets in who may, and hands messages to the
/// sync module on a thread that may block.
struct HubResponder: HTTPResponder {
    typealias Context = BasicRequestContext

    let sync: SyncResponder
    let threads: NIOThreadPool
    let token: BearerToken
    let requestBytesMax: Int

    func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
        let response: Response
        do throws(Refusal) {
            response = try await answer(request, context)
        } catch {
            context.logger.notice(
                "request refused",
                metadata: [
                    "method": "\(request.method)", "path": "\(request.uri.path)",
                    "status": "\(error.status.code)", "code": "\(error.code)",
                ])
            Counter(label: "tidemark_hub_refusals", dimensions: [("code", error.code)])
                .increment()
            response = error.response
        }
        return response
    }

    private func answer(
        _ request: Request, _ context: BasicRequestContext
    ) async throws(Refusal) -> Response {
        switch (request.uri.path, request.method) {
        case ("/health", .get), ("/health", .head):
            return Response(
                status: .ok, headers: [.contentType: "application/json"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: #"{"status":"ok"}"#)))
        case ("/v1/sync", .post):
            // Before the body is read: strangers take no memory.
            guard token.matches(request.headers[.authorization]) else { throw .unauthorized }
            return try await exchange(request, context)
        case ("/health", _):
            throw .methodNotAllowed(allowed: "GET, HEAD")
        case ("/v1/sync", _):
            throw .methodNotAllowed(allowed: "POST")
        default:
            throw .notFound
        }
    }

    private func exchange(
        _ request: Request, _ context: BasicRequestContext
    ) async throws(Refusal) -> Response {
        let type = request.headers[.contentType] ?? ""
        guard type.lowercased().hasPrefix(HTTPTransport.contentType) else {
            throw .unsupportedMediaType
        }
        let message = try await body(of: request)
        let started = ContinuousClock.now
        let answer: [UInt8]
        do {
            answer = try await threads.runIfActive { sync.respond(to: message) }
        } catch {
            throw .shuttingDown
        }
        record(
            MessageLabel.kind(of: message), answer: answer, requestBytes: message.count,
            duration: ContinuousClock.now - started, context.logger)
        return Response(
            status: .ok, headers: [.contentType: HTTPTransport.contentType],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: answer)))
    }

    private func body(of request: Request) async throws(Refusal) -> [UInt8] {
        if let declared = request.headers[.contentLength].flatMap({ Int($0) }),
            declared > requestBytesMax
        {
            throw .tooLarge(requestBytesMax)
        }
        do {
            let buffer = try await request.body.collect(upTo: requestBytesMax)
            return Array(buffer.readableBytesView)
        } catch is NIOTooManyBytesError {
            throw .tooLarge(requestBytesMax)
        } catch {
            throw .incomplete
        }
    }

    private func record(
        _ kind: String, answer: [UInt8], requestBytes: Int, duration: Duration, _ logger: Logger
    ) {
        let isFailure = MessageLabel.isFailure(answer)
        let labels = [("kind", kind), ("outcome", isFailure ? "failure" : "success")]
        Counter(label: "tidemark_hub_messages", dimensions: labels).increment()
        Counter(label: "tidemark_hub_received_bytes", dimensions: [("kind", kind)])
            .increment(by: requestBytes)
        Counter(label: "tidemark_hub_sent_bytes", dimensions: [("kind", kind)])
            .increment(by: answer.count)
        Timer(label: "tidemark_hub_message_duration", dimensions: [("kind", kind)])
            .record(duration: duration)
        logger.log(
            level: isFailure ? .notice : .debug, "message answered",
            metadata: [
                "kind": "\(kind)", "received": "\(requestBytes)", "sent": "\(answer.count)",
                "outcome": isFailure ? "failure" : "success", "duration": "\(duration)",
            ])
    }
}
