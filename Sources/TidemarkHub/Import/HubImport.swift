import AsyncHTTPClient
import NIOCore
public import Tidemark
import TidemarkHTTP
import TidemarkSync

/// Pulls all datasets of identity pools out of a service with the API of Cognito Sync, into the
/// store of a hub, which answers the same devices afterwards as if it had been the service all
/// along: ids of identities, names, records, removals and sync counts stay what they were.
///
/// ```swift
/// let source = HubImport.Source(
///     endpoint: "https://cognito-sync.us-east-1.amazonaws.com", region: "us-east-1",
///     accessKeyID: id, secretAccessKey: HubSecret(secret))
/// let report = try await HubImport(source: source, pools: [pool]).run(into: store)
/// try store.sync()
/// ```
///
/// It can be repeated: what has changed since is brought over, and nothing else. So the bulk of
/// the data moves while apps use the service, and the rest in the moment of changing over. Datasets
/// that somebody has written to here are left alone, and told of. See
/// <doc:MigratingFromCognitoSync> for what cannot be brought over.
public struct HubImport: Sendable {
    /// Where it comes from, and by whose right.
    public struct Source: Sendable {
        /// Of Cognito Sync, such as `https://cognito-sync.us-east-1.amazonaws.com`.
        public var endpoint: String
        /// Of Cognito Identity; nil for what belongs to the other address.
        public var identityEndpoint: String?
        public var region: String
        /// Of an access key that may read all identities of the pools.
        public var accessKeyID: String
        public var secretAccessKey: HubSecret
        /// Of temporary credentials; nil for permanent ones.
        public var sessionToken: HubSecret?

        public init(
            endpoint: String, identityEndpoint: String? = nil, region: String = "us-east-1",
            accessKeyID: String, secretAccessKey: HubSecret, sessionToken: HubSecret? = nil
        ) {
            self.endpoint = endpoint
            self.identityEndpoint = identityEndpoint
            self.region = region
            self.accessKeyID = accessKeyID
            self.secretAccessKey = secretAccessKey
            self.sessionToken = sessionToken
        }
    }

    /// Who signs in as an identity. The service tells only with whom, not as whom: an app's owner
    /// knows.
    public struct Login: Hashable, Sendable {
        public var identityID: String
        /// As clients have it in `Logins`.
        public var provider: String
        /// What stands in `sub` of its tokens.
        public var subject: String

        public init(identityID: String, provider: String, subject: String) {
            self.identityID = identityID
            self.provider = provider
            self.subject = subject
        }
    }

    /// What was left out, and why.
    public struct Problem: Hashable, Sendable {
        /// An identity's id, with a dataset's name behind a slash where it is one of it.
        public let place: String
        public let reason: String
    }

    /// What an import has done.
    public struct Report: Hashable, Sendable {
        public var identities = 0
        /// Of them, those whose users are not known here: they wait for ``Login``.
        public var closedIdentities = 0
        /// Datasets that were looked at.
        public var datasets = 0
        /// Live records that were written, and removals.
        public var records = 0
        public var removals = 0
        /// At most ``problemsMax`` are kept.
        public var problems: [Problem] = []
        public var problemCount = 0

        public static let problemsMax = 1_000

        mutating func add(_ problem: Problem) {
            problemCount += 1
            if problems.count < Self.problemsMax { problems.append(problem) }
        }

        mutating func add(_ other: Report) {
            identities += other.identities
            closedIdentities += other.closedIdentities
            datasets += other.datasets
            records += other.records
            removals += other.removals
            for problem in other.problems { add(problem) }
            problemCount += other.problemCount - other.problems.count
        }
    }

    private let source: Source
    private let endpoints: [CognitoSource.Service: ImportEndpoint]
    private let pools: [PoolID]
    private let identities: [IdentityID]?
    private let logins: [String: [VerifiedLogin]]
    private let developerProvider: String?
    private let clock: any SyncEnvironment = SystemSyncEnvironment()

    /// Identities that are asked about at once.
    private static let identitiesAtOnce = 8

    /// - Parameters:
    ///   - pools: ids.
    ///   - identities: ids of the only ones to bring over; nil for all, which the service lists.
    ///     They are of the one pool that is given then.
    ///   - logins: who signs in as whom, as far as it is known.
    ///   - developerProvider: the name of the app's own service among the providers, whose users
    ///     the source is asked for; nil for none.
    /// - Throws: ``HubImportError`` with `invalidArgument` for an address or an id that is none.
    public init(
        source: Source, pools: [String], identities: [String]? = nil, logins: [Login] = [],
        developerProvider: String? = nil
    ) throws(HubImportError) {
        let endpoint = try ImportEndpoint(source.endpoint)
        let other = try ImportEndpoint(source.identityEndpoint ?? endpoint.ofIdentities)
        endpoints = [.sync: endpoint, .identity: other]
        self.source = source
        self.pools = try Self.checkedPools(pools)
        self.identities = try Self.checkedIdentities(identities)
        guard identities == nil || pools.count == 1 else {
            throw HubImportError(
                .invalidArgument, "identities are of one pool; name that one alone")
        }
        self.logins = Dictionary(grouping: logins, by: \.identityID).mapValues { logins in
            logins.map { VerifiedLogin(provider: $0.provider, subject: $0.subject) }
        }
        self.developerProvider = developerProvider
    }

    /// Brings over all that there is. Calls of the store block on the disk, on the threads of this
    /// task: it is not for a process that serves. What was written is as durable as the store's
    /// options say; call `sync()` at the end.
    ///
    /// - Parameter progress: called with what was done so far, after each identity.
    /// - Throws: ``HubImportError``, `StoreError`, `CancellationError`.
    public func run(
        into store: Store, progress: (@Sendable (Report) -> Void)? = nil
    ) async throws -> Report {
        let configuration = HTTPClient.Configuration(
            redirectConfiguration: .disallow,
            timeout: HTTPClient.Configuration.Timeout(
                connect: .seconds(10), read: .seconds(60), write: .seconds(60)))
        let http = HTTPClient(
            eventLoopGroupProvider: .singleton, configuration: configuration.guarded)
        let service = CognitoSource(
            endpoints: endpoints,
            signer: RequestSigner(
                accessKeyID: source.accessKeyID, secret: source.secretAccessKey,
                token: source.sessionToken, region: source.region), http: http, clock: clock)
        let outcome: Result<Report, any Error>
        do {
            outcome = .success(
                try await ImportRun(
                    service: service, store: store,
                    facts: IdentityImport(
                        directory: IdentityDirectory(clock: clock), store: store),
                    logins: logins, developerProvider: developerProvider,
                    identitiesAtOnce: Self.identitiesAtOnce
                ).all(pools, only: identities, progress))
        } catch {
            outcome = .failure(error)
        }
        // It only fails if it was called before.
        try? await http.shutdown()
        return try outcome.get()
    }

    private static func checkedPools(_ pools: [String]) throws(HubImportError) -> [PoolID] {
        var checked: [PoolID] = []
        for text in pools {
            guard let pool = PoolID(text) else {
                throw HubImportError(
                    .invalidArgument,
                    "\(text.debugDescription) is no id of a pool; give one such as "
                        + "us-east-1:3e0e5eb2-2c5c-4bba-8a4d-bd1ad5c1c6f1")
            }
            checked.append(pool)
        }
        guard !checked.isEmpty else {
            throw HubImportError(.invalidArgument, "name the pools to import")
        }
        return checked
    }

    private static func checkedIdentities(
        _ identities: [String]?
    ) throws(HubImportError) -> [IdentityID]? {
        guard let identities else { return nil }
        var checked: [IdentityID] = []
        for text in identities {
            guard let id = IdentityID(text) else {
                throw HubImportError(
                    .invalidArgument, "\(text.debugDescription) is no id of an identity")
            }
            checked.append(id)
        }
        return checked
    }
}
