import HTTPTypes

/// What a request asks for, by its path alone.
enum HubRoute: String, Hashable, Sendable {
    case health
    case ready
    case metrics
    case openAPI = "openapi"
    case nativeSync = "sync"
    case nativeWatch = "watch"
    case push
    case cognitoSync = "cognito-sync"
    case cognitoIdentity = "cognito-identity"
    case console
    case nothing

    /// - Parameter path: not decoded, without the query. Compared as it is: what is spelled in
    ///   another way is nothing.
    init(path: String) {
        switch path {
        case "/health": self = .health
        case "/ready": self = .ready
        case "/metrics": self = .metrics
        case "/openapi.json": self = .openAPI
        case "/v1/sync": self = .nativeSync
        case "/v1/watch": self = .nativeWatch
        case "/v1/push": self = .push
        case "/": self = .cognitoIdentity
        case _ where ConsoleRoute.isOfConsole(path: path): self = .console
        default: self = SyncRoute.isOfAPI(path: path) ? .cognitoSync : .nothing
        }
    }

    init(_ head: HTTPRequest) {
        let target = head.path ?? "/"
        self.init(path: String(target.prefix { $0 != "?" }))
    }

    /// Whether refusals have the form of the Cognito APIs.
    var isOfCognito: Bool { self == .cognitoSync || self == .cognitoIdentity }

    var isNative: Bool { self == .nativeSync || self == .nativeWatch }

    /// Whether a page in a browser may ask for it.
    var isForPages: Bool { isOfCognito || self == .push }

    /// What it is asked with; nil if the route itself knows.
    var methods: [HTTPRequest.Method]? {
        switch self {
        case .health, .ready: [.get, .head]
        case .metrics, .openAPI, .push: [.get]
        case .nativeSync, .nativeWatch, .cognitoIdentity: [.post]
        case .cognitoSync, .console, .nothing: nil
        }
    }
}
