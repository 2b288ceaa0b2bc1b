/// Which operation a request asks for, and about what.
///
/// A path is split at its slashes first, and each segment is decoded afterwards, so that an encoded
/// slash in the id of a device ends nothing. What names a pool, an identity, a dataset or a device
/// becomes a type that nothing out of shape can become, before anything else sees it.
struct SyncRoute: Hashable, Sendable {
    let operation: SyncOperation
    private(set) var poolID: PoolID?
    private(set) var identityID: IdentityID?
    private(set) var datasetName: APIDatasetName?
    private(set) var deviceID: DeviceID?

    /// Whether a path may be one of this API, so that a refusal has its form.
    static func isOfAPI(path: String) -> Bool {
        path == "/identitypools" || path.hasPrefix("/identitypools/")
    }

    /// - Parameters:
    ///   - method: of HTTP.
    ///   - path: not decoded, without the query.
    /// - Throws: `unknownOperation` if no operation has such a path, `methodNotAllowed` if those
    ///   that have it have other methods, `invalidParameter` for a name that none can have.
    init(method: String, path: String) throws(APIFailure) {
        let segments = try Self.segments(of: path)
        let candidates = Self.table.filter { Self.matches($0.pattern, segments) }
        guard !candidates.isEmpty else {
            throw APIFailure(.unknownOperation, "no operation has this path")
        }
        guard let found = candidates.first(where: { $0.operation.method == method }) else {
            let methods = candidates.map(\.operation.method).sorted().joined(separator: ", ")
            throw APIFailure(
                .methodNotAllowed, "this path does not take that method; use \(methods)",
                allowedMethods: methods)
        }
        operation = found.operation
        for (segment, text) in zip(found.pattern, segments) {
            try take(text, as: segment)
        }
    }

    private struct Row: Sendable {
        let operation: SyncOperation
        let pattern: [SyncOperation.Segment]
    }

    private static let table = SyncOperation.allCases.map {
        Row(operation: $0, pattern: $0.pattern)
    }

    /// Decoded, without the empty one before the first slash.
    private static func segments(of path: String) throws(APIFailure) -> [String] {
        let raw = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        var segments: [String] = []
        for segment in raw {
            guard let text = PercentCoding.decodedText(segment) else {
                throw APIFailure(
                    .invalidParameter, "the path is not percent-encoded UTF-8; encode it anew")
            }
            segments.append(text)
        }
        return segments
    }

    private static func matches(
        _ pattern: [SyncOperation.Segment], _ segments: [String]
    ) -> Bool {
        guard pattern.count == segments.count else { return false }
        return zip(pattern, segments).allSatisfy { segment, text in
            if case .fixed(let fixed) = segment { fixed == text } else { !text.isEmpty }
        }
    }

    private mutating func take(
        _ text: String, as segment: SyncOperation.Segment
    ) throws(APIFailure) {
        switch segment {
        case .fixed: break
        case .pool:
            guard let id = PoolID(text) else { throw Self.invalid("IdentityPoolId") }
            poolID = id
        case .identity:
            guard let id = IdentityID(text) else { throw Self.invalid("IdentityId") }
            identityID = id
        case .dataset:
            guard let name = APIDatasetName(text) else { throw Self.invalid("DatasetName") }
            datasetName = name
        case .device:
            guard let id = DeviceID(text) else { throw Self.invalid("DeviceId") }
            deviceID = id
        }
    }

    private static func invalid(_ member: String) -> APIFailure {
        APIFailure(.invalidParameter, "\(member) does not have the form that the API gives it")
    }
}
