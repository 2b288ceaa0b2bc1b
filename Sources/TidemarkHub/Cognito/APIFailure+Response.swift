import HTTPTypes
import Hummingbird
import NIOCore

extension APIFailure {
    /// The answer of HTTP.
    ///
    /// - Parameter requestID: by which the log speaks of the request.
    func response(requestID: String) -> Response {
        var fields: HTTPFields = [.contentType: "application/json"]
        fields[.amazonErrorType] = kind.rawValue
        fields[.amazonRequestID] = requestID
        if let retryAfterSeconds { fields[.retryAfter] = String(retryAfterSeconds) }
        if let allowedMethods { fields[.allow] = allowedMethods }
        if closesConnection { fields[.connection] = "close" }
        return Response(
            status: HTTPResponse.Status(code: kind.status), headers: fields,
            body: ResponseBody(byteBuffer: ByteBuffer(string: body)))
    }
}

extension HTTPField.Name {
    /// The name of an error. Some clients look at nothing else.
    static let amazonErrorType = knownToBeValid("x-amzn-ErrorType")
    static let amazonRequestID = knownToBeValid("x-amzn-RequestId")

    private static func knownToBeValid(_ name: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(name) else {
            preconditionFailure("\(name) is no name of a header")
        }
        return name
    }
}
