import HTTPTypes
import Hummingbird
import Tracing

/// Spans of requests, for whatever tracer the process has set up. Where a request comes from is
/// read from its head, as the tracer has it there.
struct RequestTracing: Sendable {
    let isOn: Bool

    /// - Parameter respond: gives the answer, and the word that metrics have for the route.
    func traced(
        _ request: Request, requestID: String,
        _ respond: @Sendable (Request) async -> (response: Response, route: String)
    ) async -> Response {
        guard isOn else { return await respond(request).response }
        var origin = ServiceContext.topLevel
        InstrumentationSystem.instrument.extract(
            request.headers, into: &origin, using: FieldExtractor())
        let context = origin
        let name = "HTTP \(request.method.rawValue)"
        return await withSpan(name, context: context, ofKind: .server) { span in
            let answer = await respond(request)
            span.operationName = answer.route
            span.attributes["http.request.method"] = request.method.rawValue
            span.attributes["http.route"] = answer.route
            span.attributes["http.response.status_code"] = answer.response.status.code
            span.attributes["tidemark.request_id"] = requestID
            return answer.response
        }
    }
}

private struct FieldExtractor: Extractor {
    func extract(key: String, from carrier: HTTPFields) -> String? {
        HTTPField.Name(key).flatMap { carrier[$0] }
    }
}
