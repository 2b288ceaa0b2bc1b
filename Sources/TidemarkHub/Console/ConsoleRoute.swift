import HTTPTypes

/// What the API of the console answers: `/console/api/` and the name of an operation. What a
/// request is about stands in its query or body, where no browser or proxy changes a name.
enum ConsoleOperation: String, CaseIterable, Sendable {
    case session
    case overview
    case identities
    case identity
    case datasets
    case dataset
    case records
    case record
    case history
    case replicas
    case devices
    case conflicts
    case conflict
    case charts
    case settings
    case audit
    case stream
    // Edits.
    case put
    case delete
    case resolve
    case revoke

    var isEdit: Bool {
        switch self {
        case .put, .delete, .resolve, .revoke: true
        default: false
        }
    }

    var methods: [HTTPRequest.Method] {
        if isEdit { return [.post] }
        return self == .session ? [.get, .post, .delete] : [.get]
    }

    /// Of the query.
    var parameters: Set<String> {
        switch self {
        case .session, .overview, .settings, .stream, .put, .delete, .resolve, .revoke: []
        case .identities: ["q", "sort", "after", "limit"]
        case .identity: ["identity"]
        case .datasets: ["prefix", "q", "sort", "after", "limit"]
        case .dataset: ["dataset"]
        case .records: ["dataset", "prefix", "sort", "deleted", "after", "limit"]
        case .record: ["dataset", "id", "from", "bytes"]
        case .history, .conflict: ["dataset", "id"]
        case .replicas: ["after", "limit"]
        case .devices: ["identity", "after", "limit"]
        case .conflicts: ["state", "dataset", "after", "limit"]
        case .charts: ["since"]
        case .audit: ["before"]
        }
    }
}

/// Where a path below `/console` leads.
enum ConsoleRoute: Sendable {
    /// To the page, by its whole name, so that what it refers to is found beside it.
    case redirect
    case file(ConsoleFile)
    case operation(ConsoleOperation)

    static let root = "/console"
    private static let apiPrefix = "/console/api/"
    private static let indexName = "index.html"

    /// - Parameter path: not decoded, without the query. Compared as it is.
    static func isOfConsole(path: String) -> Bool {
        path == root || path.hasPrefix(root + "/")
    }

    /// - Throws: `unknownOperation`, `methodNotAllowed`.
    init(method: HTTPRequest.Method, path: String) throws(APIFailure) {
        let allowed: [HTTPRequest.Method]
        if path.hasPrefix(Self.apiPrefix) {
            let name = String(path.dropFirst(Self.apiPrefix.count))
            guard let operation = ConsoleOperation(rawValue: name) else { throw Self.nothing }
            allowed = operation.methods
            self = .operation(operation)
        } else if path == Self.root {
            allowed = [.get, .head]
            self = .redirect
        } else {
            let rest = String(path.dropFirst(Self.root.count + 1))
            let name = rest.isEmpty ? Self.indexName : rest
            guard let file = ConsoleFile.named(name) else { throw Self.nothing }
            allowed = [.get, .head]
            self = .file(file)
        }
        guard allowed.contains(method) else {
            let names = allowed.map(\.rawValue).joined(separator: ", ")
            throw APIFailure(
                .methodNotAllowed, "this path does not take that method; use \(names)",
                allowedMethods: names)
        }
    }

    private static var nothing: APIFailure {
        APIFailure(.unknownOperation, "the console has nothing of that name")
    }
}
