import TestSupport
import Tidemark
import TidemarkSync

/// One store on a disk of its own, with a clock of its own, that can die at any moment.
final class SimulatedReplica: @unchecked Sendable {
    // Unchecked: it belongs to the one thread that runs the simulation.
    let index: Int
    var storage: SimulatedStorage
    /// nil while it is down.
    var store: Store?
    var path = "/store0"
    /// Changes whenever the process does: what an earlier one was about to do comes to nothing.
    var incarnation = 0
    /// The disk as it was when the power failed, in the middle of something that does not know it
    /// yet.
    var remains: SimulatedStorage?
    var downFor: UInt64 = 0
    var losesUnsynced = false
    /// Milliseconds that its clock is ahead.
    var clockOffset: Int64
    var isDiskFull = false
    var hasBeenFull = false
    var slowness: UInt64 = 0
    /// The whole disk at some earlier moment, and where on it the store lay.
    var snapshot: (disk: SimulatedStorage, path: String)?
    var hasBackup = false
    /// Whether its disk went back in time, or was copied: then it may have to take a new id.
    var mayRenew = false
    /// How often it was opened.
    var openCount = 0
    /// Datasets of which it knew nothing then, by their names, each with the last such opening.
    var lackedAt: [String: Int] = [:]
    var lastID: ReplicaID?
    /// Writes, by their number in the model, that the loss of power may still undo.
    var unsynced: [Int] = []
    /// For each key the latest version that a reader has seen here.
    var lastSeen: [ModelKey: Version] = [:]
    /// Deletions of which nobody else can have heard, since no other replica has had a part in
    /// their dataset. Looked after where a large dataset is exchanged.
    var loneDeletions: [ModelKey: Version] = [:]
    /// Datasets of which it has ever kept a part.
    var scopedDatasets: Set<Int> = []
    /// What was held here because of its date when it was last asked, or an exchange ended.
    var held: [HeldWrite: HeldNumbers] = [:]
    /// Of each pair of a receiver and a dataset, up to where its last bundle went.
    var bundledThrough: [BundlePair: SyncCount] = [:]
    /// What datasets held at some moments of their order of change here.
    var moments: [PastMoment] = []
    private let settings: SimulationSettings

    init(_ index: Int, _ settings: SimulationSettings, random: inout SeededGenerator) {
        self.index = index
        self.settings = settings
        storage = SimulatedStorage(seed: Seed(random.next()))
        storage.writebackOneIn = random.oneIn(2) ? 0 : 10
        clockOffset = Int64.random(in: -5_000...5_000, using: &random)
    }

    var isUp: Bool { store != nil && remains == nil }

    /// Whether it may keep a part: then it asks, and nobody asks it.
    var mayBePart: Bool { index >= settings.replicaCount - settings.partCount }

    private var options: StoreOptions {
        var options = StoreOptions(
            durability: settings.durability, author: "r\(index)", segmentBytes: 1 << 20,
            blockCacheBytes: 1 << 20, tombstoneAge: settings.tombstoneAge,
            compactsAutomatically: false, clockAheadMax: .milliseconds(settings.clockAheadMax))
        // So that states are let go and read again wherever that is allowed.
        options.keptDatasetStatesMax = 0
        options.runsInline = true
        options.plantedBugs = settings.plantedBugs
        if settings.traits.contains(.past) {
            options.historyVersions = settings.keyCount % 2 == 0 ? 3 : 0
            options.historyAge = settings.keyCount % 2 == 0 ? .zero : .seconds(2)
        }
        return options
    }

    func open() throws(StoreError) {
        let opened = try Store.open(at: path, options: options, storage: storage)
        store = opened
        lastID = opened.replicaID
        lastSeen = [:]
        // What is not here any more was lost on the way, and not forgotten.
        for (key, version) in loneDeletions where try record(key)?.version.dot != version.dot {
            loneDeletions[key] = nil
        }
    }

    static let epoch: UInt64 = 1_790_000_000_000

    func setClock(now: UInt64) {
        storage.clockMilliseconds = UInt64(Int64(Self.epoch + now) + clockOffset)
        latestClock = max(latestClock, storage.clockMilliseconds)
        earliestClock = min(earliestClock, storage.clockMilliseconds)
    }

    /// The latest that its own wall clock ever was, in milliseconds since 1970.
    private(set) var latestClock: UInt64 = 0
    /// The earliest.
    private(set) var earliestClock = UInt64.max

    /// Takes over a store whose writes are dated by another clock.
    func inheritClock(of other: SimulatedReplica) {
        latestClock = max(latestClock, other.latestClock)
    }

    // MARK: - What it holds

    static func name(_ dataset: Int) -> String { "d\(dataset)" }

    static func key(_ number: Int) -> [UInt8] { Array("k\(number)".utf8) }

    /// What it holds of a key as it is stored: tombstones too, as long as they do not count as
    /// forgotten, and also while the dataset is deleted. What has expired counts as deleted.
    func record(_ key: ModelKey) throws(StoreError) -> Record? {
        guard let store,
            let found = try store.datasetForSync(Self.name(key.dataset), creating: false)
        else { return nil }
        var record = try found.storedRecord(for: Self.key(key.number))
        // What was let go because it is outside of the part is not here.
        guard record?.isDropped != true else { return nil }
        if let present = record, let end = present.expiresAt, end <= storage.clockMilliseconds {
            record = Record(
                key: present.key, value: nil, version: present.version,
                syncCount: present.syncCount, isDirty: present.isDirty, expiresAt: end)
        }
        guard let record, record.isDeleted else { return record }
        return try found.knowledge().forgotten.covers(record.version) ? nil : record
    }

    func isVisible(_ dataset: Int) throws(StoreError) -> Bool {
        try store?.existingDataset(Self.name(dataset)) != nil
    }

    func knowledge(_ dataset: Int) throws(StoreError) -> DatasetKnowledge? {
        guard let store, let found = try store.datasetForSync(Self.name(dataset), creating: false)
        else { return nil }
        return try found.knowledge()
    }

    /// Whether no other replica has ever had a part in a dataset, as far as the store can know:
    /// there are writes of its own only, and there was no exchange. A store that has given away or
    /// taken in anything remembers with whom.
    func isAlone(with dataset: Int) throws(StoreError) -> Bool {
        guard let store, let found = try store.datasetForSync(Self.name(dataset), creating: false)
        else { return false }
        let knowledge = try found.knowledge()
        let ids = ids
        return try !found.hasPeers() && knowledge.forgotten.isEmpty
            && knowledge.vector.dots.allSatisfy { ids.contains($0.replica) }
    }

    /// Every id under which it has written, or a store of whose files its own are copies.
    var ids: [ReplicaID] { store.map { [$0.replicaID] + $0.formerReplicaIDs } ?? [] }

    /// Every id under which it alone has written, since its files were copied if they were.
    var ownIDs: [ReplicaID] {
        guard let store else { return [] }
        let closed = store.closedReplicaIDs
        return ids.filter { !closed.contains($0) }
    }
}
