import HTTPTypes
import Hummingbird
import NIOCore

/// A request that is not answered in the sync protocol, because it never got that far. The body is
/// for people: `{"error": {"code": ..., "message": ...}}`.
struct Refusal: Error {
    let status: HTTPResponse.Status
    let code: String
    /// With the remedy. Nothing in it comes from the request, so nothing needs escaping.
    let message: String
    var headers: HTTPFields = [:]

    static let unauthorized = Refusal(
        status: .unauthorized, code: "unauthorized",
        message: "the token is missing or wrong; send the hub's token as a bearer token",
        headers: [.wwwAuthenticate: "Bearer"])

    static let notFound = Refusal(
        status: .notFound, code: "notFound",
        message: "nothing is here; this hub answers POST /v1/sync, POST /v1/watch and GET /health")

    static func methodNotAllowed(allowed: String) -> Refusal {
        Refusal(
            status: .methodNotAllowed, code: "methodNotAllowed",
            message: "this path does not take that method; use \(allowed)",
            headers: [.allow: allowed])
    }

    static let unsupportedMediaType = Refusal(
        status: .unsupportedMediaType, code: "unsupportedMediaType",
        message: "the body is not declared as a sync message; use a Tidemark client")

    static func tooLarge(_ bytesMax: Int) -> Refusal {
        Refusal(
            status: .contentTooLarge, code: "tooLarge",
            message:
                "the request exceeds \(bytesMax) bytes; lower the page size or raise the limit",
            // What is left of the body is not worth reading.
            headers: [.connection: "close"])
    }

    static let incomplete = Refusal(
        status: .badRequest, code: "incomplete",
        message: "the request ended before its body did; repeat it",
        headers: [.connection: "close"])

    static let shuttingDown = Refusal(
        status: .serviceUnavailable, code: "shuttingDown",
        message: "the hub is shutting down; repeat the request later")

    var response: Response {
        let body = #"{"error": {"code": "\#(code)", "message": "\#(message)"}}"#
        var fields = headers
        fields[.contentType] = "application/json"
        return Response(
            status: status, headers: fields,
            body: ResponseBody(byteBuffer: ByteBuffer(string: body)))
    }
}
