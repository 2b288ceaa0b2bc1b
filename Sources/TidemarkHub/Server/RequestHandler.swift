import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import TidemarkSync

/// Answers all requests: finds out what is asked, lets in who may, bounds what it takes, and hands
/// it to the part of the hub that knows the answer.
///
/// In this order, so that strangers cost little: the head's bounds, what browsers ask beforehand,
/// the route, the rate of the address, what the signature or token claims, the rate of the
/// identity, the body, the signature, what the caller may, and only then the operation.
struct RequestHandler: HTTPResponder {
    typealias Context = HubContext

    /// The hub's own parts.
    let access: RequestAccess
    let endpoints: RequestEndpoints
    let protection: RequestProtection
    let readiness: Readiness
    let metrics: HubMetrics
    let log: AccessLog
    let tracing: RequestTracing
    let cors: CORS
    /// The text of `/metrics`; nil if nobody keeps it.
    let metricsText: (@Sendable () -> String)?
    let openAPI: String

    /// An answer, and what the hub notes of it.
    struct Outcome {
        var response: Response
        /// As metrics call what was asked.
        var label: String
        /// Of a refusal.
        var code: String?
        /// Whether it is for who has the hub's own token.
        var isOwn = false
    }

    func respond(to request: Request, context: HubContext) async throws -> Response {
        protection.connections.noteRequest(on: context.channel)
        let route = HubRoute(request.head)
        // Asked for all the time by what balances load: without any ceremony.
        if route == .health, request.method == .get, RequestBodyReading.hasNone(request.head) {
            return Self.healthy
        }
        let began = ContinuousClock.now
        return await tracing.traced(request, requestID: context.id) { request in
            await answered(request, context, route, began)
        }
    }

    private func answered(
        _ request: Request, _ context: HubContext, _ route: HubRoute,
        _ began: ContinuousClock.Instant
    ) async -> RequestTracing.Answer {
        metrics.began()
        let share = BodyShare(protection.budget)
        let address = context.address
        var outcome = await outcome(request, context, route, address, share)
        hold(&outcome, context, route, share)
        finish(&outcome, request, context, route, share)
        let duration = ContinuousClock.now - began
        let status = outcome.response.status.code
        metrics.ended(outcome.label, status: status, duration: duration)
        if let code = outcome.code { metrics.refused(code) }
        log.write(
            context.logger, method: request.method.rawValue, route: outcome.label, status: status,
            code: outcome.code, address: address, duration: duration)
        return RequestTracing.Answer(
            response: outcome.response, route: outcome.label, code: outcome.code)
    }

    private func outcome(
        _ request: Request, _ context: HubContext, _ route: HubRoute, _ address: String?,
        _ share: BodyShare
    ) async -> Outcome {
        if let preflight = cors.preflight(request.head), route.isForPages {
            return Outcome(response: preflight, label: "preflight")
        }
        var label = route.rawValue
        do throws(APIFailure) {
            try protection.checkHead(of: request.head)
            if let methods = route.methods, !methods.contains(request.method) {
                let names = methods.map(\.rawValue).joined(separator: ", ")
                throw APIFailure(
                    .methodNotAllowed, "this path does not take that method; use \(names)",
                    allowedMethods: names)
            }
            // Replicas with the hub's token are the operator's own, and go as fast as they can.
            var isOwn = false
            if route.isNative {
                isOwn = await access.isAdmin(request.headers[.authorization])
            }
            if !isOwn { try protection.rates.check(address: address) }
            let call = RequestCall(
                request: request, context: context, address: address, share: share)
            var found = try await answer(call, route, &label)
            found.isOwn = isOwn
            return found
        } catch {
            return Outcome(
                response: Self.response(to: error, route, context.id), label: label,
                code: error.kind.rawValue)
        }
    }

    private func answer(
        _ call: RequestCall, _ route: HubRoute, _ label: inout String
    ) async throws(APIFailure) -> Outcome {
        switch route {
        case .health: return Outcome(response: Self.healthy, label: label)
        case .ready: return Outcome(response: ready, label: label)
        case .openAPI: return Outcome(response: Self.json(openAPI), label: label)
        case .metrics:
            return Outcome(response: try await metricsAnswer(call), label: label)
        case .nativeSync, .nativeWatch:
            let response = try await nativeAnswer(call, isWatch: route == .nativeWatch)
            return Outcome(response: response, label: label)
        case .push: return Outcome(response: try await pushAnswer(call), label: label)
        case .cognitoIdentity:
            return Outcome(response: try await identityAnswer(call, &label), label: label)
        case .cognitoSync:
            return Outcome(response: try await syncAnswer(call, &label), label: label)
        case .console:
            return Outcome(response: try await consoleAnswer(call, &label), label: label)
        case .nothing:
            throw APIFailure(.unknownOperation, "nothing is here; see the article Hub")
        }
    }

    // MARK: Small answers

    private static let healthy = json(#"{"status":"ok"}"#)

    private var ready: Response {
        guard let problem = readiness.problem else { return Self.json(#"{"status":"ready"}"#) }
        var response = Self.json(#"{"status":"\#(problem)"}"#)
        response.status = .serviceUnavailable
        response.headers[.retryAfter] = "5"
        return response
    }

    private func metricsAnswer(_ call: RequestCall) async throws(APIFailure) -> Response {
        guard let metricsText else {
            throw APIFailure(.unknownOperation, "this hub keeps no metrics to be read here")
        }
        if !access.hasOpenMetrics {
            let principal = try await bearer(call)
            guard principal == .admin else {
                throw APIFailure(.notAuthorized, "the metrics are for the hub's own token")
            }
        }
        return Response(
            status: .ok, headers: [.contentType: PrometheusText.contentType],
            body: ResponseBody(byteBuffer: ByteBuffer(string: metricsText())))
    }

    static func json(_ text: String) -> Response {
        Response(
            status: .ok, headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }

    // MARK: The end of an answer

    /// In the form that clients of the route expect.
    static func response(
        to failure: APIFailure, _ route: HubRoute, _ requestID: String
    ) -> Response {
        if route.isOfCognito || route == .push {
            return failure.response(requestID: requestID)
        }
        return (route == .console ? Refusal.ofConsole(failure) : Refusal(failure)).response
    }

    /// Counts a large answer among what is in memory. What it tells was done, and clients that are
    /// told to come again repeat it: a repeated call changes nothing. Those of the hub's own token
    /// are the operator's, and have pages of any size.
    private func hold(
        _ outcome: inout Outcome, _ context: HubContext, _ route: HubRoute, _ share: BodyShare
    ) {
        if outcome.isOwn { return }
        if let body = share.holding(outcome.response.body) {
            outcome.response.body = body
        } else {
            let failure = APIFailure(
                .serviceUnavailable, "the hub holds as many answers as it can; come again",
                retryAfterSeconds: 1)
            outcome.response = Self.response(to: failure, route, context.id)
            outcome.code = failure.kind.rawValue
        }
    }

    private func finish(
        _ outcome: inout Outcome, _ request: Request, _ context: HubContext, _ route: HubRoute,
        _ share: BodyShare
    ) {
        outcome.response.headers[.amazonRequestID] = context.id
        if route.isForPages { cors.allow(request.head, &outcome.response) }
        if route == .console { ConsoleHeaders.add(to: &outcome.response) }
        if request.method == .head { outcome.response = outcome.response.createHeadResponse() }
        let isToClose =
            outcome.code != nil && outcome.response.headers[.connection] == "close"
        if isToClose || leavesBody(request.head, context, share) {
            outcome.response.headers[.connection] = "close"
            closeLater(context.channel)
        }
        // A connection of HTTP/2 is not about one request, and has no such field.
        if context.isHTTP2 { outcome.response.headers[.connection] = nil }
    }

    /// Whether so much of an answered request may still come that reading it is not worth keeping
    /// its connection.
    private func leavesBody(
        _ head: HTTPRequest, _ context: HubContext, _ share: BodyShare
    ) -> Bool {
        guard !share.isFinished, !RequestBodyReading.hasNone(head) else { return false }
        // In HTTP/1.1 a body is announced, whatever the method: RFC 9112, section 6.3.
        let isAnnounced =
            head.headerFields[.contentLength] != nil || head.headerFields[.transferEncoding] != nil
        guard isAnnounced || context.isHTTP2 else { return false }
        guard let declared = head.headerFields[.contentLength].flatMap({ Int($0) }) else {
            return true
        }
        return declared > Self.drainedBytesMax
    }

    /// The caller has so long to read the answer. Until then what it sends is read and dropped,
    /// since a connection that is closed with bytes unread is reset, and the answer lost.
    private func closeLater(_ channel: any Channel) {
        channel.eventLoop.scheduleTask(in: Self.lingerTime) {
            channel.close(promise: nil)
        }
    }

    private static let drainedBytesMax = 65_536
    private static let lingerTime = TimeAmount.seconds(2)
}
