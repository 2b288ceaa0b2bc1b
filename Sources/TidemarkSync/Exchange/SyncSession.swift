import Tidemark

// The asking side of an exchange of one dataset.
//
//   hello ─▶ lifecycle ─▶ pull, settling conflicts ─▶ push ─▶ done
//     ▲                                                │
//     └──────────── the peer has moved on ─────────────┘
//
// Invariants:
// - Nothing is pushed before everything was pulled and every conflict settled.
// - A checkpoint is stored in the same batch as the records that it vouches for.
// - The peer's vector is joined into ours only with the last page of a pull, when all that it
//   speaks of has been applied.
// - Positions count only as far as both sides remember them. Each side stores both directions;
//   a side that was restored from a backup has forgotten the newer ones, and the exchange starts
//   again where the two still agree. (CouchDB's replicator compares checkpoints in the same way.)
// - Records leave only when they are durable here.
// - State of the store is read again after every `await`, but for the next page of a push, which is
//   read ahead: see `readAhead`.
//
// A crash or a lost message at any point leaves both sides in a state from which the next exchange
// goes on: records compare by version, so to apply a page twice is to apply it once.

/// One exchange of one dataset with one peer. Belongs to one task.
final class SyncSession {
    let store: Store
    let dataset: Dataset
    let connection: PeerConnection
    let options: SyncOptions

    var result: SyncResult
    /// What the peer last told about itself.
    var remote: PeerKnowledge?
    var peer: ReplicaID
    /// Where to go on in the peer's order of change.
    var pullPosition = SyncCount.zero
    /// Where to go on in ours.
    var pushPosition = SyncCount.zero
    /// What the peer remembers of how far we have pulled.
    var acknowledged = SyncCount.zero
    /// Ids under which two stores wrote.
    var doubts = Doubts()
    /// Keys of which the peer is known to have the write under a doubted id that is here, or of
    /// which a conflict waits.
    var confirmedKeys: Set<[UInt8]> = []
    /// How many records may still travel in this exchange.
    var recordsLeft: Int
    /// The first conflict that waits and is in the way of the push.
    var firstPending: (key: [UInt8], reason: PendingConflict.Reason)?
    /// Versions of which it was told in this exchange that they wait.
    var toldWaiting: Set<Dot> = []
    /// Keys that the peer was asked for because a push met conflicts in them, each with the last
    /// attempt that did.
    var askedFor: [[UInt8]: Int] = [:]
    /// Why the first record that failed in this exchange did.
    var firstFailure: SyncError?
    /// Whether the handler was asked about merged datasets.
    var hasTakenMerged = false
    /// Merged datasets of which the peer is yet to be told what became of them.
    var retired: [String] = []
    /// Whether something was not taken in that cannot wait here, so that no position may move.
    var isFrozen = false
    /// Keys of held writes with which the peer has found a conflict before.
    var metConflicts: Set<[UInt8]> = []
    /// Keys of held writes that are not handed over, because the peer has to settle them itself.
    var withheld: Set<[UInt8]> = []
    /// The first conflict with a held write that the policy left to the application.
    var firstHeldPending: (key: [UInt8], reason: PendingConflict.Reason)?
    /// Everything here up to this count came from the peer as it lies there, or is known to be
    /// there.
    var adoptedThrough = SyncCount.zero
    /// To be stored with the page that is applied: how far a sweep has come then, or that it ends.
    var sweepNotes: [SystemNote] = []
    /// Of the pages of a push, the last one before which the store was synced.
    var lastSynced: SyncedPage?
    /// What reading one page of changes found out for the next.
    let changeMemory: ChangeMemory
    /// What was found here and not there, and is still to be pushed.
    var differences: Differences?
    /// Where records went from this dataset, as the peer is told.
    var movedInto: [String] = []
    /// Whether the peer refused something because it does not know that we have what was moved.
    var metMoved = false
    /// Whether all was exchanged of which the peer says that records went there.
    var hasTakenMoved = false
    /// Datasets whose exchange waits for this one.
    let underWay: Set<String>
    /// Whether a dataset is to be exchanged with the peer anyway.
    let mayExchange: @Sendable (String) -> Bool
    /// Whether the peer is a file: it answers pulls and nothing else, and hears nothing.
    var isOneWay = false
    /// If only a part of the dataset is kept here.
    var part: PartExchange?
    /// Records that took the place of damaged ones.
    var recordsRestored = 0
    /// Tells this exchange from all others, in what is kept of it.
    private(set) lazy var number = store.randomNumber()
    /// The fresh start that is under way, by its number.
    var freshStart: UInt64?
    /// What the peer has forgotten with which was compared all that lay here at a count.
    var settled = (forgotten: ForgottenDeletions(), through: SyncCount.zero)
    /// Whether the peer lacks deletions that were forgotten here, so that each of its records is
    /// looked at for whether it is dead.
    var judgesPeer = false
    /// What was forgotten here when that began.
    var judging = VersionVector()
    /// Whether any of what is dead there was not told to the peer.
    var leavesDead = false
    /// What the peer's greeting said that it has seen.
    var seenByPeer = VersionVector()
    /// Whether this attempt met a side that lacks deletions which the other has forgotten.
    var metLateness = false
    /// The same once all that the peer had up to a count was looked at; empty if it lacks nothing.
    var judged = (forgotten: VersionVector(), through: SyncCount.zero)
    private var recordsReceived = 0
    private var recordsSent = 0

    init(
        store: Store, dataset: Dataset, connection: PeerConnection, options: SyncOptions,
        peer: ReplicaID, underWay: Set<String> = [],
        mayExchange: @escaping @Sendable (String) -> Bool = { _ in false }
    ) {
        self.underWay = underWay
        self.mayExchange = mayExchange
        self.store = store
        self.dataset = dataset
        self.connection = connection
        self.options = options
        self.peer = peer
        result = SyncResult(dataset: dataset.name, remoteReplica: peer)
        recordsLeft = options.recordsPerRunMax ?? .max
        switch options.policies[dataset.name] ?? options.policy {
        case .lastWriterWins, .keepLocal, .keepRemote: doubts.believesDates = true
        default: break
        }
        changeMemory =
            options.walksFrom == 0
            ? ChangeMemory(passedMax: 1, changesMin: 0)
            : ChangeMemory(changesMin: options.walksFrom)
    }

    /// - Parameter greeting: the answer to a hello that was just asked; nil to ask first.
    func run(greeting: DatasetGreeting?) async throws(SyncError) -> SyncResult {
        var greeting = greeting
        var lastError: SyncError?
        defer { endFreshStart() }
        while result.attempts < options.attemptsMax {
            result.attempts += 1
            metLateness = false
            do throws(SyncError) {
                if try await attempt(greeting) {
                    // Everything else was exchanged.
                    if let firstFailure { throw firstFailure }
                    return try finished()
                }
                lastError = nil
            } catch {
                if error.code == .recordsMoved {
                    // It may be moving records at this moment, or left out some of them.
                    if hasTakenMoved { return resultSoFar() }
                    if !metMoved {
                        (metMoved, greeting) = (true, nil)
                        continue
                    }
                }
                guard error.code == .peerChanged || error.isOfLateness else {
                    throw error.located(peer: peer.description, dataset: dataset.name)
                }
                // Who was late starts afresh.
                metLateness = error.isOfLateness
                lastError = error.isOfLateness ? nil : error
                // What was found may have been found in another state of the peer.
                differences = nil
            }
            greeting = nil
        }
        throw lastError?.located(peer: peer.description, dataset: dataset.name)
            ?? SyncError(
                .contended, wordsForContention, peer: peer.description, dataset: dataset.name)
    }

    private var wordsForContention: String {
        guard metLateness else {
            return "the peer's dataset changed during each of \(result.attempts) attempts; "
                + "repeat the exchange or raise attemptsMax"
        }
        return "one side starts afresh with another replica at this time, or forgot deletions "
            + "during each of \(result.attempts) attempts; repeat the exchange later"
    }

    /// - Returns: false if the peer wrote meanwhile what we must pull first, and the exchange is to
    ///   begin again.
    private func attempt(_ known: DatasetGreeting?) async throws(SyncError) -> Bool {
        let book = try engine(dataset.name) { () throws(StoreError) in try PartBook(dataset) }
        if let book { return try await attempt(book, known) }
        part = nil
        guard case .greeted(var greeting) = try await greetBehindMoved(known) else { return true }
        if try noteFork(greeting?.knowledge) {
            // The peer's checkpoints about an id that we gave up mean nothing for the new one.
            greeting = try await greet()
        }
        doubts.take(greeting)
        remote = greeting?.knowledge
        seenByPeer = remote?.vector ?? VersionVector()
        try takePositions(greeting)
        try judge(remote)
        try await admitHeld()
        if let remote {
            try await settleLifecycle(remote.lifecycle)
            try await tellDeletion()
        }
        // The answer to what it was told may say more of it than its greeting.
        if let remote, try hasNews(remote) {
            try await bootstrap(remote)
            try await startAfresh(remote.forgotten)
            // What was buried here may be more than the peer has seen.
            try judge(remote)
            if try !isSweepWaiting(remote) { try await reconcile(remote) }
            try await sweep(remote)
            guard try await pull() else {
                try await acknowledge()
                return true
            }
        }
        if remote == nil { try settleAlone() }
        try checkHeldPending()
        try await takeMerged(greeting?.merged ?? [])
        guard try await push() else { return false }
        if try await settleOverlooked() {
            guard try await push() else { return false }
        }
        if result.isComplete { try await retireMerged() }
        return true
    }

    /// Whether a pull could bring anything. Without this, each of a million idle datasets would
    /// cost a round trip.
    private func hasNews(_ remote: PeerKnowledge) throws(SyncError) -> Bool {
        let ours = try engine(dataset.name) { () throws(StoreError) in try dataset.vector }
        if isBeginningAfresh || remote.syncCount > pullPosition || !doubts.isEmpty { return true }
        // What waits is to be asked about again.
        let holdsBack = try holdsBackVectors()
        return holdsBack || !ours.covers(remote.vector)
    }

    /// Whether positions count for nothing. Only once: what a full exchange has been through need
    /// not be gone through again because the peer wrote meanwhile.
    var isBeginningAfresh: Bool { options.isFull && result.attempts == 1 }

    func greet() async throws(SyncError) -> DatasetGreeting? {
        let (answer, _) = try await counted { connection, traffic throws(SyncError) in
            try await connection.hello(
                from: store, isDryRun: options.isDryRun, names: [dataset.name], &traffic)
        }
        if answer.replica != peer {
            (adoptedThrough, differences) = (.zero, nil)
            confirmedKeys = []
            endFreshStart()
            judged = (VersionVector(), .zero)
        }
        peer = answer.replica
        result.remoteReplica = peer
        return answer.datasets.first { $0.name == dataset.name }
    }

    private func takePositions(_ greeting: DatasetGreeting?) throws(SyncError) {
        let formerIDs = greeting?.formerIDs ?? []
        let (checkpoint, reached, ours) = try engine(dataset.name) { () throws(StoreError) in
            (
                try dataset.checkpoint(for: peer),
                try dataset.pulledThrough(from: [peer] + formerIDs),
                try dataset.knowledge()
            )
        }
        let theirs = greeting?.knowledge?.syncCount ?? .zero
        acknowledged = greeting?.pushedThrough ?? .zero
        doubts.known = (checkpoint.vector, min(reached, acknowledged))
        pullPosition = min(checkpoint.pulledThrough, acknowledged)
        pushPosition = min(checkpoint.pushedThrough, greeting?.pulledThrough ?? .zero)
        if pullPosition > theirs { pullPosition = .zero }
        if pushPosition > ours.syncCount { pushPosition = .zero }
        if isBeginningAfresh { (pullPosition, pushPosition) = (.zero, .zero) }
        // What lies on either side under a disputed id is all to be compared, in one exchange: what
        // a part of it came to is remembered nowhere.
        if !doubts.isEmpty {
            (pullPosition, pushPosition) = (.zero, .zero)
            recordsLeft = .max
            (adoptedThrough, differences) = (.zero, nil)
        }
    }

    var policy: MergePolicy { options.policies[dataset.name] ?? options.policy }

    /// Whether the journal keeps what the policy settles.
    var keepsConflicts: Bool { policy.settler.map { options.journal.keeps($0) } ?? false }

    var address: Address {
        Address(
            from: options.asker(store), to: peer, dataset: dataset.name, moved: movedInto)
    }

    /// Asks, and adds what it took to the result.
    func counted<Answer>(
        _ question: (PeerConnection, inout PeerConnection.Traffic) async throws(SyncError) -> Answer
    ) async throws(SyncError) -> Answer {
        var traffic = PeerConnection.Traffic()
        defer {
            result.bytesSent += traffic.sent
            result.bytesReceived += traffic.received
        }
        return try await question(connection, &traffic)
    }

    func report(_ phase: SyncProgress.Phase, records: Int) {
        // A peer may send more than it was asked for.
        recordsLeft -= min(recordsLeft, records)
        switch phase {
        case .pulling:
            result.pagesReceived += 1
            recordsReceived += records
        case .pushing:
            result.pagesSent += 1
            recordsSent += records
        }
        options.progress?(
            SyncProgress(
                dataset: dataset.name, phase: phase, recordsReceived: recordsReceived,
                recordsSent: recordsSent, bytesReceived: result.bytesReceived,
                bytesSent: result.bytesSent))
    }

    /// What was done until an error ended it.
    func resultSoFar() -> SyncResult {
        result.isComplete = false
        return (try? finished()) ?? result
    }

    func finished() throws(SyncError) -> SyncResult {
        result.localSyncCount = try engine(dataset.name) { () throws(StoreError) in
            try dataset.knowledge().syncCount
        }
        result.remoteSyncCount = remote?.syncCount ?? .zero
        return result
    }
}
