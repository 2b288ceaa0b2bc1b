import Tidemark
import TidemarkSync

/// Notes that can be read and written at any time, with or without a network.
actor Notebook {
    private let notes: Dataset
    private let synchronizer: Synchronizer
    private(set) var changedElsewhere: Set<String> = []
    private(set) var problem: String?

    init(store: Store, hub: any SyncTransport, network: any ConnectivitySource) throws {
        notes = try store.dataset("notes")
        synchronizer = Synchronizer(
            store: store, transport: hub,
            options: SynchronizerOptions(
                exchange: SyncOptions(policy: .custom(Self.merge)), network: .freeOnly),
            schedule: SyncSchedule(
                interval: .seconds(300), afterWrite: .seconds(1), fullSyncAfter: .seconds(86_400)),
            connectivity: network)
    }

    /// Works offline: the write is durable here, and leaves when there is a network.
    func write(_ text: String, as name: String) throws {
        try notes.put(text, for: name)
    }

    func text(of name: String) throws -> String? {
        try notes.text(name)
    }

    /// What a badge shows.
    func unsentCount() throws -> Int {
        try notes.dirtyCount()
    }

    /// Synchronises until `close`: at once, a second after a write, every five minutes, when the
    /// network comes back, and when the hub announces a change.
    func run() async throws {
        let events = synchronizer.events()
        try synchronizer.subscribe(["notes"])
        synchronizer.start()
        for await event in events {
            switch event {
            case .localChanged(_, let keys):
                changedElsewhere.formUnion(keys.map { String(decoding: $0, as: UTF8.self) })
            case .backgroundFailure(let error): problem = error.message
            case .ended(let report): problem = report.firstError?.message
            default: break
            }
        }
    }

    func close() async {
        await synchronizer.shutdown()
    }

    /// Both sides of a conflict, one below the other; a deletion gives way to a change.
    private static let merge: @Sendable (Conflict) async throws -> Resolution = { conflict in
        guard let ours = conflict.local.valueText else { return .keepRemote }
        guard let theirs = conflict.remote.valueText else { return .keepLocal }
        return .value(Array([ours, theirs].sorted().joined(separator: "\n").utf8))
    }
}
