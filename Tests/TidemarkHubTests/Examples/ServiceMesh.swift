import Logging
import ServiceLifecycle
import Tidemark
import TidemarkHTTP
import TidemarkHub
import TidemarkSync

/// Keeps the store of a service in step with that of one neighbour.
struct MeshLink: Service {
    let transport: HTTPTransport
    let synchronizer: Synchronizer

    init(_ store: Store, to url: String, token: String) {
        transport = HTTPTransport(url: url, token: token)
        synchronizer = Synchronizer(
            store: store, transport: transport,
            options: SynchronizerOptions(
                name: url, exchange: SyncOptions(policies: ["stock": .mergeable])),
            schedule: SyncSchedule(
                interval: .seconds(60), afterWrite: .milliseconds(20),
                fullSyncAfter: .seconds(86_400)))
    }

    func run() async throws {
        try synchronizer.subscribe(["stock"])
        synchronizer.start()
        try? await gracefulShutdown()
        await synchronizer.shutdown()
        await transport.shutdown()
    }
}

/// One service of the mesh: a hub for whoever asks, and a link to each neighbour.
func meshService(
    _ store: Store, _ configuration: HubConfiguration, neighbours: [String], logger: Logger
) -> ServiceGroup {
    let hub = Hub(store: store, configuration: configuration, logger: logger)
    let links: [any Service] = neighbours.map { url in
        MeshLink(store, to: url, token: configuration.token)
    }
    return ServiceGroup(services: [hub] + links, logger: logger)
}

/// Books pieces in or out, in whichever service that happens: what several book adds up.
func book(_ pieces: Int, of article: String, in store: Store) throws {
    try store.dataset("stock").update(article, as: Counter.self) { stock, turn in
        stock.add(pieces, turn)
    }
}

/// How many pieces there are, by all that this service knows.
func pieces(of article: String, in store: Store) throws -> Int {
    try store.dataset("stock").value(of: article, as: Counter.self)?.value ?? 0
}
