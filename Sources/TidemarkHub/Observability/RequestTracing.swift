import HTTPTypes
import Hummingbird
import NIOHTTP1
import Tracing

/// Spans of requests, for whatever tracer the process has set up. Where a request comes from is
/// read from its head, as the tracer has it there.
///
/// A span holds the hub's own words and nothing that a caller or the settings chose, but for the
/// method: no path, no query, no header, no address. Those may name identities and keys, or carry a
/// signature.
struct RequestTracing: Sendable {
    let isOn: Bool

    struct Answer: Sendable {
        let response: Response
        /// The word that metrics have for what was asked.
        let route: String
        /// The error's name; nil unless it is a refusal.
        let code: String?
    }

    func traced(
        _ request: Request, requestID: String, _ respond: @Sendable (Request) async -> Answer
    ) async -> Response {
        guard isOn else { return await respond(request).response }
        var origin = ServiceContext.topLevel
        InstrumentationSystem.instrument.extract(
            request.headers, into: &origin, using: FieldExtractor())
        let context = origin
        let name = "HTTP \(request.method.rawValue)"
        return await withSpan(name, context: context, ofKind: .server) { span in
            let answer = await respond(request)
            let status = answer.response.status.code
            span.operationName = answer.route
            span.attributes["http.request.method"] = request.method.rawValue
            span.attributes["http.route"] = answer.route
            span.attributes["http.response.status_code"] = status
            span.attributes["tidemark.request_id"] = requestID
            if let code = answer.code { span.attributes["error.type"] = code }
            // By OpenTelemetry's rule for servers: what is refused for a fault of the caller's is
            // no failure of the span.
            if status >= 500 { span.setStatus(SpanStatus(code: .error)) }
            return answer.response
        }
    }

    /// Lets the endpoint that a request asks belong to the request's trace; nothing if there is no
    /// span.
    static func pass(to headers: inout HTTPHeaders) {
        guard let context = ServiceContext.current else { return }
        InstrumentationSystem.instrument.inject(context, into: &headers, using: FieldInjector())
    }
}

private struct FieldExtractor: Extractor {
    func extract(key: String, from carrier: HTTPFields) -> String? {
        HTTPField.Name(key).flatMap { carrier[$0] }
    }
}

private struct FieldInjector: Injector {
    func inject(_ value: String, forKey key: String, into carrier: inout HTTPHeaders) {
        carrier.replaceOrAdd(name: key, value: value)
    }
}
