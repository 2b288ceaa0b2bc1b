import Tidemark
import TidemarkSync

/// ListRecords and UpdateRecords: what every synchronisation of a client consists of.
///
/// Counts on the wire are the API's, one for each call; those of the store are called positions
/// here. `CountMap` has the one for the other.
struct RecordOperations: SyncOperationHandler {
    let threads: HubThreads
    let limits: HubLimits
    let secrets: HubSecrets
    let clock: any SyncEnvironment
    let trigger: any SyncTrigger
    let resolver: any ConflictResolver
    let sink: any ChangeSink
    /// Those of the hub, which `DatasetOperations` has, too.
    let books: SyncBooks

    let operations: Set<SyncOperation> = [.listRecords, .updateRecords]

    init(
        threads: HubThreads, limits: HubLimits, secrets: HubSecrets, clock: any SyncEnvironment,
        trigger: any SyncTrigger, resolver: any ConflictResolver, sink: any ChangeSink,
        books: SyncBooks
    ) {
        self.threads = threads
        self.limits = limits
        self.secrets = secrets
        self.clock = clock
        self.trigger = trigger
        self.resolver = resolver
        self.sink = sink
        self.books = books
    }

    func answer(_ call: SyncCall) async throws(APIFailure) -> [UInt8] {
        switch call.route.operation {
        case .listRecords: return try await list(call)
        case .updateRecords: return try await update(call)
        default: throw APIFailure(.unknownOperation, "no operation has this path")
        }
    }
}
