import HTTPTypes
import Hummingbird
import Logging
import Metrics
import NIOCore
import NIOPosix
import ServiceLifecycle
import TidemarkHTTP
import TidemarkSync

/// Answers the hub's requests: finds out what is asked, lets in who may, and hands messages to the
/// sync module on a thread that may block.
struct HubResponder: HTTPResponder {
    typealias Context = BasicRequestContext

    let sync: SyncResponder
    let threads: NIOThreadPool
    /// Measures the time of those who wait.
    let environment: any SyncEnvironment
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
        case ("/v1/watch", .post):
            guard token.matches(request.headers[.authorization]) else { throw .unauthorized }
            return try await watch(request, context)
        case ("/health", _):
            throw .methodNotAllowed(allowed: "GET, HEAD")
        case ("/v1/sync", _), ("/v1/watch", _):
            throw .methodNotAllowed(allowed: "POST")
        default:
            throw .notFound
        }
    }

    private func exchange(
        _ request: Request, _ context: BasicRequestContext
    ) async throws(Refusal) -> Response {
        try checkHead(of: request)
        let message = try await message(in: request.body)
        let started = ContinuousClock.now
        let answer = try await answer(to: message)
        record(message, answer, since: started, context.logger)
        return Response(
            status: .ok, headers: [.contentType: HTTPTransport.contentType],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: answer)))
    }

    /// Holds the answer back until there is news. No thread waits with it, and nothing of the wait
    /// is left once the caller hangs up or the hub shuts down.
    ///
    /// To notice that the caller hangs up, the connection is read on behind the request. It can
    /// carry no other one after that, and is closed behind the answer.
    private func watch(
        _ request: Request, _ context: BasicRequestContext
    ) async throws(Refusal) -> Response {
        try checkHead(of: request)
        let started = ContinuousClock.now
        let exchanged: (message: [UInt8], answer: [UInt8])
        do {
            exchanged = try await request.body.consumeWithCancellationOnInboundClose {
                @Sendable body -> (message: [UInt8], answer: [UInt8]) in
                let message = try await self.message(in: body)
                guard MessageLabel.isWatch(message) else {
                    return (message, try await self.answer(to: message))
                }
                let answer = await cancelWhenGracefulShutdown {
                    await self.sync.watch(message, environment: self.environment)
                }
                return (message, answer)
            }
        } catch let refusal as Refusal {
            throw refusal
        } catch {
            // Nobody is there any more to be told.
            throw .incomplete
        }
        record(exchanged.message, exchanged.answer, since: started, context.logger)
        return Response(
            status: .ok,
            headers: [.contentType: HTTPTransport.contentType, .connection: "close"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: exchanged.answer)))
    }

    private func answer(to message: [UInt8]) async throws(Refusal) -> [UInt8] {
        do {
            return try await threads.runIfActive { sync.respond(to: message) }
        } catch {
            throw .shuttingDown
        }
    }

    private func checkHead(of request: Request) throws(Refusal) {
        let type = request.headers[.contentType] ?? ""
        guard type.lowercased().hasPrefix(HTTPTransport.contentType) else {
            throw .unsupportedMediaType
        }
        if let declared = request.headers[.contentLength].flatMap({ Int($0) }),
            declared > requestBytesMax
        {
            throw .tooLarge(requestBytesMax)
        }
    }

    private func message(in body: RequestBody) async throws(Refusal) -> [UInt8] {
        do {
            let buffer = try await body.collect(upTo: requestBytesMax)
            return Array(buffer.readableBytesView)
        } catch is NIOTooManyBytesError {
            throw .tooLarge(requestBytesMax)
        } catch {
            throw .incomplete
        }
    }

    private func record(
        _ message: [UInt8], _ answer: [UInt8], since started: ContinuousClock.Instant,
        _ logger: Logger
    ) {
        let (kind, duration) = (MessageLabel.kind(of: message), ContinuousClock.now - started)
        let isFailure = MessageLabel.isFailure(answer)
        let labels = [("kind", kind), ("outcome", isFailure ? "failure" : "success")]
        Counter(label: "tidemark_hub_messages", dimensions: labels).increment()
        Counter(label: "tidemark_hub_received_bytes", dimensions: [("kind", kind)])
            .increment(by: message.count)
        Counter(label: "tidemark_hub_sent_bytes", dimensions: [("kind", kind)])
            .increment(by: answer.count)
        Timer(label: "tidemark_hub_message_duration", dimensions: [("kind", kind)])
            .record(duration: duration)
        logger.log(
            level: isFailure ? .notice : .debug, "message answered",
            metadata: [
                "kind": "\(kind)", "received": "\(message.count)", "sent": "\(answer.count)",
                "outcome": isFailure ? "failure" : "success", "duration": "\(duration)",
            ])
    }
}
