import Foundation
import HTTPTypes
import Hummingbird
import Testing
import Tidemark

@testable import TidemarkHub

struct APIFailureTests {
    /// Of the service model.
    static let model: [(name: String, status: Int)] = [
        ("AlreadyStreamedException", 400), ("ConcurrentModificationException", 400),
        ("DuplicateRequestException", 400), ("InternalErrorException", 500),
        ("InvalidConfigurationException", 400), ("InvalidLambdaFunctionOutputException", 400),
        ("InvalidParameterException", 400), ("LambdaThrottledException", 429),
        ("LimitExceededException", 400), ("NotAuthorizedException", 403),
        ("ResourceConflictException", 409), ("ResourceNotFoundException", 404),
        ("TooManyRequestsException", 429),
    ]

    @Test("the errors of the service model have its names and statuses")
    func statuses() throws {
        for (name, status) in Self.model {
            let kind = try #require(APIFailure.Kind(rawValue: name))
            #expect(kind.status == status, "\(name)")
        }
    }

    @Test("the body is JSON with name and message, and nothing called code")
    func bodies() throws {
        let message = "a \"quoted\" \\ text\u{0}\u{1F}\n\t\u{E9}\u{1F600}"
        for kind in APIFailure.Kind.allCases {
            let body = APIFailure(kind, message).body
            let parsed = try JSONSerialization.jsonObject(with: Data(body.utf8))
            let members = try #require(parsed as? [String: String])
            #expect(members == ["__type": kind.rawValue, "message": message])
        }
    }

    @Test("the answer has the name in the header that iOS looks at, and the request's id")
    func headers() {
        let failure = APIFailure(
            .tooManyRequests, "later", retryAfterSeconds: 7, closesConnection: true)
        let response = failure.response(requestID: "r-1")
        #expect(response.status.code == 429)
        #expect(response.headers[.amazonErrorType] == "TooManyRequestsException")
        #expect(response.headers[.amazonRequestID] == "r-1")
        #expect(response.headers[.retryAfter] == "7")
        #expect(response.headers[.connection] == "close")
        #expect(response.headers[.contentType] == "application/json")
    }

    @Test("a full disk is said to be one, to be tried again later")
    func fullDisk() {
        let failure = APIFailure(StoreError(.diskFull, "no space on /secret/path"))
        #expect(failure.kind == .serviceUnavailable)
        #expect(failure.retryAfterSeconds == 30)
        #expect(!failure.message.contains("/secret"))
        let damage = APIFailure(StoreError(.corruption, "/secret/path at 17"))
        #expect(damage.kind == .internalError)
        #expect(!damage.message.contains("/secret"))
    }
}
