import HTTPTypes
import Hummingbird
import HummingbirdCore
import NIOCore
import ServiceLifecycle
import TidemarkHTTP

/// Messages of the sync protocol, from replicas.
extension RequestHandler {
    func nativeAnswer(
        _ call: RequestCall, isWatch: Bool
    ) async throws(APIFailure) -> Response {
        let principal = try await bearer(call)
        try await access.gate.check(principal)
        try protection.rates.check(principal)
        guard NativeResponder.isMessage(call.request.headers[.contentType]) else {
            throw APIFailure(
                .unsupportedMediaType,
                "the body is not declared as a sync message; use a Tidemark client")
        }
        let bytesMax = try endpoints.native.requestBytesMax(for: principal)
        guard isWatch else {
            let message = try await body(of: call, bytesMax: bytesMax)
            return Self.message(try await synced(message, by: principal, call))
        }
        return try await watchAnswer(
            call, principal, bytesMax: min(bytesMax, NativeResponder.watchBytesMax))
    }

    /// Once more behind the body, which may have taken its time: the identity that a message writes
    /// to is neither merged nor deleted until it is answered.
    private func synced(
        _ message: [UInt8], by principal: Principal, _ call: RequestCall
    ) async throws(APIFailure) -> [UInt8] {
        let pass = try await access.gate.enter(principal)
        defer { pass.end() }
        return try await endpoints.native.sync(message, by: principal, call.logger)
    }

    /// Holds the answer back until there is news. No thread waits with it, and nothing of the wait
    /// is left once the caller hangs up or the hub shuts down.
    ///
    /// To notice that the caller hangs up, the connection is read on behind the request. It can
    /// carry no other one after that, and is closed behind the answer.
    private func watchAnswer(
        _ call: RequestCall, _ principal: Principal, bytesMax: Int
    ) async throws(APIFailure) -> Response {
        let answer: [UInt8]
        do {
            answer = try await call.request.body.consumeWithCancellationOnInboundClose {
                @Sendable body -> [UInt8] in
                let message = try await self.body(body, of: call, bytesMax: bytesMax)
                guard NativeResponder.isWatch(message) else {
                    return try await self.synced(message, by: principal, call)
                }
                return try await cancelWhenGracefulShutdown {
                    try await self.endpoints.native.watch(message, by: principal, call.logger)
                }
            }
        } catch let failure as APIFailure {
            throw failure
        } catch {
            // Nobody is there any more to be told.
            throw APIFailure(BodyFailure.incomplete)
        }
        var response = Self.message(answer)
        response.headers[.connection] = "close"
        return response
    }

    private static func message(_ bytes: [UInt8]) -> Response {
        Response(
            status: .ok, headers: [.contentType: HTTPTransport.contentType],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}
