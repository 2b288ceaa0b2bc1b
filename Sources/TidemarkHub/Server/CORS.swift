import HTTPTypes
import Hummingbird

/// Lets web pages of some origins call the hub: the Fetch standard of WHATWG, section 3.2.
struct CORS: Sendable {
    private let origins: Set<String>

    private static let allowedHeaders = [
        "Authorization", "Content-Type", "X-Amz-Client-Context", "X-Amz-Content-Sha256",
        "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Target", "X-Amz-User-Agent",
        "amz-sdk-invocation-id", "amz-sdk-request",
    ].joined(separator: ", ")
    private static let exposedHeaders = "Date, Retry-After, x-amzn-ErrorType, x-amzn-RequestId"
    private static let methods = "GET, HEAD, POST, DELETE, OPTIONS"
    /// A day: browsers take less of it.
    private static let maxAgeSeconds = "86400"

    /// - Parameter origins: `*` for all.
    init(origins: [String]) {
        self.origins = Set(origins)
    }

    /// The answer to what a browser asks before it sends a request of a page; nil for anything
    /// else.
    func preflight(_ request: HTTPRequest) -> Response? {
        guard request.method == .options, let origin = request.headerFields[.origin],
            request.headerFields[.accessControlRequestMethod] != nil
        else { return nil }
        var fields: HTTPFields = [.vary: "Origin"]
        if isAllowed(origin) {
            fields[.accessControlAllowOrigin] = origin
            fields[.accessControlAllowMethods] = Self.methods
            fields[.accessControlAllowHeaders] = Self.allowedHeaders
            fields[.accessControlMaxAge] = Self.maxAgeSeconds
        }
        // Without the fields the browser sends nothing, and tells its page why.
        return Response(status: .ok, headers: fields)
    }

    /// Adds what lets a page read the answer.
    func allow(_ request: HTTPRequest, _ response: inout Response) {
        guard !origins.isEmpty else { return }
        response.headers[.vary] = "Origin"
        guard let origin = request.headerFields[.origin], isAllowed(origin) else { return }
        response.headers[.accessControlAllowOrigin] = origin
        response.headers[.accessControlExposeHeaders] = Self.exposedHeaders
    }

    /// What is signed proves who asks, and cookies play no part: so all may be allowed.
    private func isAllowed(_ origin: String) -> Bool {
        origins.contains(origin) || origins.contains("*")
    }
}
