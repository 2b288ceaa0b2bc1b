import Tidemark
import TidemarkSync

/// Which datasets a replica sees, by who it is: an identity those of its own, under the names that
/// the Cognito API has for them, so that clients of both edit the same ones; a bearer of the
/// settings those of its space; who has the hub's token all but the hub's own.
struct NativeNamespaces: Sendable {
    private let limits: NativeLimits
    private let adminRequestBytesMax: Int
    private let replicatesHub: Bool
    private let sink: any ChangeSink

    /// - Parameters:
    ///   - adminRequestBytesMax: bytes of a request with the hub's token.
    ///   - replicatesHub: whether the hub's own datasets are exchanged with its token, too: between
    ///     hubs that stand in for each other.
    ///   - sink: told of each dataset that a replica changes.
    init(
        _ limits: HubLimits, adminRequestBytesMax: Int = SyncLimits.messageBytesMax,
        replicatesHub: Bool = false, sink: any ChangeSink
    ) {
        self.limits = NativeLimits(limits)
        self.adminRequestBytesMax = adminRequestBytesMax
        self.replicatesHub = replicatesHub
        self.sink = sink
    }

    /// Bytes of a request of such a caller.
    ///
    /// - Throws: `missingAuthenticationToken`, `notAuthorized`.
    func requestBytesMax(for principal: Principal) throws(APIFailure) -> Int {
        switch principal {
        case .admin, .replica: adminRequestBytesMax
        case .identity: limits.requestBytesMax
        case .anonymous, .developer: throw Self.refusal(of: principal)
        }
    }

    /// What answers such a caller. Holds nothing but the store, so it costs nothing to make, and
    /// none is kept: the store may be another one with the next request.
    ///
    /// - Throws: `missingAuthenticationToken`, `notAuthorized`.
    func responder(
        for principal: Principal, in store: Store
    ) throws(APIFailure) -> SyncResponder {
        switch principal {
        case .admin:
            let hidden = replicatesHub ? nil : StoreNames.ownPrefix
            return SyncResponder(
                store: store, namespace: DatasetNamespace(prefix: "", hiding: hidden),
                limits: SyncResponder.Limits(requestBytesMax: adminRequestBytesMax),
                validate: nil, journal: SyncJournalOptions(), observer: observer)
        case .replica(let space):
            let namespace = DatasetNamespace(
                prefix: StoreNames.prefix(ofSpace: space),
                nameBytesMax: APINames.datasetNameBytesMax)
            return SyncResponder(
                store: store, namespace: namespace,
                limits: SyncResponder.Limits(requestBytesMax: adminRequestBytesMax),
                validate: nil, journal: .off, observer: observer)
        case .identity(let identityID, _, _):
            let namespace = DatasetNamespace(
                prefix: StoreNames.prefix(of: identityID),
                nameBytesMax: APINames.datasetNameBytesMax)
            let limits = limits
            return SyncResponder(
                store: store, namespace: namespace, limits: limits.responder,
                validate: { record in try limits.validate(record) }, journal: .off,
                observer: observer)
        case .anonymous, .developer:
            throw Self.refusal(of: principal)
        }
    }

    private var observer: PushObserver {
        let sink = sink
        return PushObserver(
            willChange: { name throws(StoreError) in try sink.willChange([name]) },
            didChange: { name in sink.didChange([name]) })
    }

    private static func refusal(of principal: Principal) -> APIFailure {
        principal == .anonymous
            ? APIFailure(.missingAuthenticationToken, "the token is missing; send one as a bearer")
            : APIFailure(
                .notAuthorized,
                "replicas take a token of an identity, of the settings or the hub's; access keys "
                    + "are for the API")
    }
}
