import HTTPTypes
import Hummingbird
import NIOCore
import TidemarkSync

/// The console: its page, who is signed in, and its API.
extension RequestHandler {
    func consoleAnswer(
        _ call: RequestCall, _ label: inout String
    ) async throws(APIFailure) -> Response {
        let head = SigV4Request(call.request.head)
        switch try ConsoleRoute(method: call.request.method, path: head.path) {
        case .redirect:
            return Response(
                status: .permanentRedirect, headers: [.location: ConsoleRoute.root + "/"])
        case .file(let file):
            return Response(
                status: .ok, headers: [.contentType: file.contentType],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: file.bytes)))
        case .operation(let operation):
            label = "console-\(operation.rawValue)"
            let query = try ConsoleQuery(head.query, names: operation.parameters)
            if operation == .session, call.request.method == .post {
                return try await signIn(call)
            }
            return try await consoleAnswer(call, operation, query)
        }
    }

    private func consoleAnswer(
        _ call: RequestCall, _ operation: ConsoleOperation, _ query: ConsoleQuery
    ) async throws(APIFailure) -> Response {
        let console = endpoints.console
        let session = try session(of: call.request.head)
        if call.request.method != .get {
            try ConsoleHeaders.checkOrigin(of: call.request.head)
            try ConsoleHeaders.checkToken(of: call.request.head, session)
        }
        switch operation {
        case .session where call.request.method == .delete:
            console.sessions.close(session)
            var response = Self.json("{}")
            response.headers[.setCookie] = cookies.ended
            return response
        case .session: return Self.json(bytes: ConsoleHeaders.body(of: session))
        case .stream: return try consoleStream(session)
        default:
            if operation.isEdit { try protection.disk.checkWriting() }
            let body = try await body(of: call, bytesMax: protection.settings.bodyBytesMax)
            let consoleCall = ConsoleCall(
                operation: operation, query: query, body: body, session: session,
                address: call.address)
            return Self.json(bytes: try await console.answer(consoleCall))
        }
    }

    // MARK: Sessions

    private struct SignIn: Decodable {
        let token: String
    }

    private var cookies: ConsoleCookies {
        ConsoleCookies(isSecure: endpoints.console.parts.settings.tls != nil)
    }

    private func signIn(_ call: RequestCall) async throws(APIFailure) -> Response {
        let console = endpoints.console
        try ConsoleHeaders.checkOrigin(of: call.request.head)
        if let address = call.address,
            let seconds = console.signIns.take(address, now: console.parts.clock.now())
        {
            throw APIFailure(
                .tooManyRequests, "too many attempts to sign in; try again in \(seconds) s",
                retryAfterSeconds: seconds)
        }
        let body = try await body(of: call, bytesMax: Bearer.charactersMax)
        let token = try APICoding.decode(SignIn.self, from: body).token
        let principal = try await access.authenticator.bearer("Bearer " + token)
        try Authorizer.checkConsole(principal)
        let (cookie, session) = console.sessions.open()
        var response = Self.json(bytes: ConsoleHeaders.body(of: session))
        response.headers[.setCookie] = cookies.begun(cookie)
        return response
    }

    /// - Throws: `expiredToken` for who is not signed in, or not any more.
    private func session(of head: HTTPRequest) throws(APIFailure) -> ConsoleSessions.Session {
        guard let cookie = cookies.value(in: head),
            let session = endpoints.console.sessions.session(of: cookie)
        else {
            throw APIFailure(.expiredToken, "you are not signed in; sign in with the hub's token")
        }
        return session
    }

    // MARK: Streams

    private func consoleStream(
        _ session: ConsoleSessions.Session
    ) throws(APIFailure) -> Response {
        let feed = endpoints.console.feed
        guard feed.listenerCount < ConsoleLimits.listenersMax else {
            throw APIFailure(
                .serviceUnavailable, "too many pages listen; close one of them",
                retryAfterSeconds: 30)
        }
        var fields: HTTPFields = [.contentType: "text/event-stream"]
        // Some proxies would hold events back until they have many.
        if let name = HTTPField.Name("X-Accel-Buffering") { fields[name] = "no" }
        return Response(
            status: .ok, headers: fields,
            body: ResponseBody { writer in
                // Listed here and not before: a body that is never asked for leaves nothing behind.
                let listener = ConsoleListener(session: session)
                guard feed.add(listener) else { return try await writer.finish(nil) }
                defer { feed.remove(listener) }
                try await writer.write(ByteBuffer(string: "retry: 2000\n\n"))
                for await _ in listener.wakes {
                    let (text, isClosed) = listener.take()
                    if !text.isEmpty { try await writer.write(ByteBuffer(string: text)) }
                    if isClosed { break }
                }
                try await writer.finish(nil)
            })
    }
}

/// The cookie that names a session.
struct ConsoleCookies {
    /// Whether the hub speaks TLS: then the browser sends the cookie over nothing else.
    let isSecure: Bool

    private var name: String {
        isSecure ? "__Secure-tidemark-console" : "tidemark-console"
    }

    /// Sent to the console alone, to no script, and with no request that another site began:
    /// RFC 6265, and `SameSite` of its successor.
    private var attributes: String {
        "; Path=\(ConsoleRoute.root); HttpOnly; SameSite=Strict" + (isSecure ? "; Secure" : "")
    }

    func begun(_ value: String) -> String {
        "\(name)=\(value)\(attributes); Max-Age=\(ConsoleLimits.sessionMilliseconds / 1_000)"
    }

    var ended: String { "\(name)=\(attributes); Max-Age=0" }

    /// nil if there is none, or more than one: then nobody knows which is meant.
    func value(in head: HTTPRequest) -> String? {
        var found: [Substring] = []
        for field in head.headerFields[values: .cookie] {
            for pair in field.split(separator: ";") {
                let parts = pair.drop { $0 == " " }
                    .split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                if parts.count == 2, parts[0] == name { found.append(parts[1]) }
            }
        }
        return found.count == 1 ? String(found[0]) : nil
    }
}

/// What every answer of the console says to the browser, and what it asks of requests.
enum ConsoleHeaders {
    /// Nothing but the hub's own files is loaded or run, nothing of it stands in a frame, and
    /// nothing is kept.
    static let policy =
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        + "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"

    static func add(to response: inout Response) {
        response.headers[.contentSecurityPolicy] = policy
        response.headers[.xContentTypeOptions] = "nosniff"
        response.headers[.cacheControl] = "no-store"
        response.headers[.referrerPolicy] = "no-referrer"
        response.headers[.crossOriginResourcePolicy] = "same-origin"
    }

    /// A request that another page began is refused, by what the browser says of it: Fetch Metadata
    /// of the W3C. Who says nothing is no browser, and has no cookie that it did not put there.
    ///
    /// - Throws: `notAuthorized`; `unsupportedMediaType` for a body that a form could have sent.
    static func checkOrigin(of head: HTTPRequest) throws(APIFailure) {
        let site = head.headerFields[.secFetchSite] ?? "same-origin"
        guard site == "same-origin" || site == "none" else {
            throw APIFailure(.notAuthorized, "another page asks for this; use the console's own")
        }
        guard head.method == .post else { return }
        let type = (head.headerFields[.contentType] ?? "").lowercased()
        guard type == "application/json" || type.hasPrefix("application/json;") else {
            throw APIFailure(.unsupportedMediaType, "the body must be application/json")
        }
    }

    /// - Throws: `notAuthorized` without the session's own token in the header.
    static func checkToken(
        of head: HTTPRequest, _ session: ConsoleSessions.Session
    ) throws(APIFailure) {
        let token = Array((head.headerFields[.consoleToken] ?? "").utf8)
        guard ConstantTime.areEqual(token, Array(session.token.utf8)) else {
            throw APIFailure(
                .notAuthorized, "the request lacks the token of its session; load the page again")
        }
    }

    /// What the page is told of its session.
    static func body(of session: ConsoleSessions.Session) -> [UInt8] {
        var answer = JSONAnswer()
        answer.open("{")
        answer.add("token", text: session.token)
        answer.add("endsAt", session.endsAt)
        answer.close("}")
        return answer.bytes
    }
}

extension Refusal {
    /// Towards the console: 401 for who is not signed in, 403 for who may not, and the words of the
    /// failure.
    static func ofConsole(_ failure: APIFailure) -> Refusal {
        var status = failure.kind.status
        switch failure.kind {
        case .missingAuthenticationToken, .expiredToken: status = 401
        default: break
        }
        var refusal = Refusal(
            status: HTTPResponse.Status(code: status), code: code(of: failure.kind),
            message: escaped(failure.message))
        if let methods = failure.allowedMethods { refusal.headers[.allow] = methods }
        if let seconds = failure.retryAfterSeconds {
            refusal.headers[.retryAfter] = String(seconds)
        }
        if failure.closesConnection { refusal.headers[.connection] = "close" }
        return refusal
    }
}

extension HTTPField.Name {
    static let consoleToken = known("X-Tidemark-Token")
    static let secFetchSite = known("Sec-Fetch-Site")
    static let referrerPolicy = known("Referrer-Policy")

    private static func known(_ name: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(name) else {
            preconditionFailure("\(name) is no name of a header")
        }
        return name
    }
}
