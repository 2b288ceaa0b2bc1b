import HTTPTypes

extension Refusal {
    /// What a failure is outside of the Cognito APIs, such as to a replica: a code in the hub's own
    /// spelling, and 401 for who has shown no token or a wrong one, so that clients know to get
    /// another.
    init(_ failure: APIFailure) {
        switch failure.kind {
        case .missingAuthenticationToken, .expiredToken, .unrecognizedClient, .invalidSignature,
            .incompleteSignature:
            self = .unauthorized
        case .notAuthorized:
            self = .unauthorized
        case .unknownOperation:
            self = .notFound
        case .methodNotAllowed:
            self = .methodNotAllowed(allowed: failure.allowedMethods ?? "")
        default:
            self = Refusal(
                status: HTTPResponse.Status(code: failure.kind.status),
                code: Self.code(of: failure.kind), message: Self.escaped(failure.message))
        }
        if let seconds = failure.retryAfterSeconds { headers[.retryAfter] = String(seconds) }
        if failure.closesConnection { headers[.connection] = "close" }
    }

    /// `TooManyRequestsException` is `tooManyRequests`.
    static func code(of kind: APIFailure.Kind) -> String {
        var name = kind.rawValue[...]
        if name.hasSuffix("Exception") { name = name.dropLast("Exception".count) }
        return name.prefix(1).lowercased() + name.dropFirst()
    }

    /// What stands in the body between quotation marks.
    static func escaped(_ message: String) -> String {
        String(JSONText.quoted(message).dropFirst().dropLast())
    }
}
