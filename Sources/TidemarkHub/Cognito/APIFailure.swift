import Tidemark

/// A request of the Cognito API that is refused: what the client is told, and how.
///
/// Clients look at the name: the iOS one in the header `x-amzn-ErrorType` alone, others also in the
/// body's `__type`.
struct APIFailure: Error, Hashable, Sendable {
    /// The names of the service model, and of the errors that all services of AWS share.
    enum Kind: String, CaseIterable, Sendable {
        // Of the service model.
        case alreadyStreamed = "AlreadyStreamedException"
        case concurrentModification = "ConcurrentModificationException"
        case duplicateRequest = "DuplicateRequestException"
        case internalError = "InternalErrorException"
        case invalidConfiguration = "InvalidConfigurationException"
        case invalidTriggerOutput = "InvalidLambdaFunctionOutputException"
        case invalidParameter = "InvalidParameterException"
        case triggerThrottled = "LambdaThrottledException"
        case limitExceeded = "LimitExceededException"
        case notAuthorized = "NotAuthorizedException"
        case resourceConflict = "ResourceConflictException"
        case resourceNotFound = "ResourceNotFoundException"
        case tooManyRequests = "TooManyRequestsException"
        // Shared by all services.
        case expiredToken = "ExpiredTokenException"
        case incompleteSignature = "IncompleteSignatureException"
        case invalidSignature = "InvalidSignatureException"
        case methodNotAllowed = "MethodNotAllowedException"
        case missingAuthenticationToken = "MissingAuthenticationTokenException"
        case requestEntityTooLarge = "RequestEntityTooLargeException"
        case requestHeadTooLarge = "RequestHeaderFieldsTooLargeException"
        case requestTimeout = "RequestTimeoutException"
        case serialization = "SerializationException"
        case serviceUnavailable = "ServiceUnavailableException"
        case unknownOperation = "UnknownOperationException"
        case unrecognizedClient = "UnrecognizedClientException"
        case unsupportedMediaType = "UnsupportedMediaTypeException"

        /// The status of HTTP. Clients repeat by themselves what has 429 or 5xx.
        var status: Int {
            switch self {
            case .alreadyStreamed, .concurrentModification, .duplicateRequest,
                .invalidConfiguration, .invalidTriggerOutput, .invalidParameter, .limitExceeded,
                .incompleteSignature, .serialization:
                400
            case .expiredToken, .invalidSignature, .missingAuthenticationToken, .notAuthorized,
                .unrecognizedClient:
                403
            case .resourceNotFound, .unknownOperation: 404
            case .methodNotAllowed: 405
            case .resourceConflict: 409
            case .requestTimeout: 408
            case .requestEntityTooLarge: 413
            case .unsupportedMediaType: 415
            case .requestHeadTooLarge: 431
            case .triggerThrottled, .tooManyRequests: 429
            case .internalError: 500
            case .serviceUnavailable: 503
            }
        }
    }

    let kind: Kind
    /// With the remedy. May hold what came with the request, but never a secret of it.
    let message: String
    /// When it makes sense to come again, for the header `Retry-After`; nil for never or at once.
    var retryAfterSeconds: Int?
    /// For the header `Allow`; nil unless the method is at fault.
    var allowedMethods: String?
    /// Whether what is left of the request is not worth reading, so that the connection is closed.
    var closesConnection = false

    init(
        _ kind: Kind, _ message: String, retryAfterSeconds: Int? = nil,
        allowedMethods: String? = nil, closesConnection: Bool = false
    ) {
        self.kind = kind
        self.message = message
        self.retryAfterSeconds = retryAfterSeconds
        self.allowedMethods = allowedMethods
        self.closesConnection = closesConnection
    }

    /// What a failure of the store is to a client. Paths and positions stay in the log.
    init(_ error: StoreError) {
        switch error.code {
        case .diskFull:
            self.init(
                .serviceUnavailable, "the hub's disk is full: it answers reads and takes no writes",
                retryAfterSeconds: 30)
        case .writerStopped, .readOnly:
            self.init(
                .serviceUnavailable, "the hub takes no writes at present; reads go on",
                retryAfterSeconds: 30)
        case .closed:
            self.init(
                .serviceUnavailable, "the hub is shutting down; repeat the request later",
                retryAfterSeconds: 1)
        case .transactionConflict, .versionMismatch:
            self.init(
                .tooManyRequests, "the dataset is changed by many at once; repeat the request",
                retryAfterSeconds: 1)
        case .datasetNotFound:
            self.init(.resourceNotFound, "there is no such dataset")
        default:
            self.init(.internalError, "the hub failed; its log says why, under this request's id")
        }
    }

    /// As JSON. Never with a member named `code`: some clients take that for the name.
    var body: String {
        let type = JSONText.quoted(kind.rawValue)
        return "{\"__type\":\(type),\"message\":\(JSONText.quoted(message))}"
    }
}
