/// A request for an operation whose caller was verified and may make it.
struct SyncCall: Sendable {
    let route: SyncRoute
    let query: SyncQuery
    /// All of it; empty if there was none.
    let body: [UInt8]
    let principal: Principal
    /// Of the header `x-amz-Client-Context`; nil if it was not sent.
    let clientContext: String?
    /// By which the log speaks of the request.
    let requestID: String

    /// What the path names, for operations whose paths do: `Authorizer` has seen to whose they are.
    ///
    /// - Throws: `invalidParameter`.
    func pool() throws(APIFailure) -> PoolID {
        guard let poolID = route.poolID else { throw Self.missing("IdentityPoolId") }
        return poolID
    }

    func identity() throws(APIFailure) -> IdentityID {
        guard let identityID = route.identityID else { throw Self.missing("IdentityId") }
        return identityID
    }

    func datasetName() throws(APIFailure) -> APIDatasetName {
        guard let name = route.datasetName else { throw Self.missing("DatasetName") }
        return name
    }

    func device() throws(APIFailure) -> DeviceID {
        guard let deviceID = route.deviceID else { throw Self.missing("DeviceId") }
        return deviceID
    }

    private static func missing(_ member: String) -> APIFailure {
        APIFailure(.invalidParameter, "\(member) is missing from the path")
    }
}

/// The parameters of a query that any operation takes. Others are passed over, as those of a
/// signature are.
struct SyncQuery: Hashable, Sendable {
    private(set) var lastSyncCount: UInt64?
    private(set) var nextToken: String?
    private(set) var maxResults: Int?
    private(set) var syncSessionToken: String?

    /// - Throws: `invalidParameter` for a number that is none, or a parameter that comes twice.
    init(_ request: SigV4Request) throws(APIFailure) {
        var seen: Set<String> = []
        for (name, value) in try request.parameters() {
            guard Self.names.contains(name) else { continue }
            guard seen.insert(name).inserted else {
                throw APIFailure(.invalidParameter, "\(name) comes more than once")
            }
            switch name {
            case "lastSyncCount":
                guard let count = UInt64(value) else { throw Self.notANumber(name) }
                lastSyncCount = count
            case "maxResults":
                guard let count = Int(value), count >= 0 else { throw Self.notANumber(name) }
                // Clients that send 0 mean no bound of their own.
                maxResults = count > 0 ? count : nil
            case "nextToken": nextToken = value.isEmpty ? nil : value
            default: syncSessionToken = value.isEmpty ? nil : value
            }
        }
    }

    private static let names: Set<String> = [
        "lastSyncCount", "maxResults", "nextToken", "syncSessionToken",
    ]

    private static func notANumber(_ name: String) -> APIFailure {
        APIFailure(.invalidParameter, "\(name) is not a number of 0 or more")
    }
}
