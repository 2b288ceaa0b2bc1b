import Tidemark

// The asking side of an exchange of one dataset. What comes after what says `ExchangeMachine`.
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
    /// Ids under which two stores wrote.
    var doubts = Doubts()
    /// To be stored with the page that is applied: how far a sweep has come then, or that it ends.
    var sweepNotes: [SystemNote] = []
    /// Of the pages of a push, the last one before which the store was synced.
    var lastSynced: SyncedPage?
    /// What reading one page of changes found out for the next.
    let changeMemory: ChangeMemory
    /// What was found here and not there, and is still to be pushed.
    var differences: Differences?
    /// Whether the peer is a file, or keeps a part as this side does: it answers pulls and nothing
    /// else, and hears nothing.
    var isOneWay = false
    /// If only a part of the dataset is kept here: as it was found at the beginning of the attempt.
    var keptPart: PartBook?
    /// The same, with what this exchange has done about it.
    var part: PartExchange?
    /// Tells this exchange from all others, in what is kept of it.
    private(set) lazy var number = store.randomNumber()
    /// What the peer's greeting said that it has seen.
    var seenByPeer = VersionVector()
    var positions = Positions()
    var late = Lateness()
    var waiting = Waiting()
    var moves: Moves
    var tally: Tally

    init(
        store: Store, dataset: Dataset, connection: PeerConnection, options: SyncOptions,
        peer: ReplicaID, underWay: Set<String> = [],
        mayExchange: @escaping @Sendable (String) -> Bool = { _ in false }
    ) {
        self.store = store
        self.dataset = dataset
        self.connection = connection
        self.options = options
        self.peer = peer
        result = SyncResult(dataset: dataset.name, remoteReplica: peer)
        moves = Moves(underWay: underWay, mayExchange: mayExchange)
        tally = Tally(recordsLeft: options.recordsPerRunMax ?? .max)
        changeMemory =
            options.walksFrom == 0
            ? ChangeMemory(passedMax: 1, changesMin: 0)
            : ChangeMemory(changesMin: options.walksFrom)
        switch policy {
        case .lastWriterWins, .keepLocal, .keepRemote: doubts.believesDates = true
        default: break
        }
    }

    /// - Parameter greeting: the answer to a hello that was just asked; nil to ask first.
    func run(greeting: DatasetGreeting?) async throws(SyncError) -> SyncResult {
        var machine = ExchangeMachine(attemptsMax: options.attemptsMax, known: greeting)
        var lastError: SyncError?
        defer { endFreshStart() }
        while true {
            let step = machine.step
            result.attempts = machine.attempts
            do throws(SyncError) {
                switch step {
                case .end:
                    // Everything else was exchanged.
                    if let failure = tally.firstFailure { throw failure }
                    return try finished()
                case .giveUp:
                    throw lastError ?? SyncError(.contended, wordsForContention)
                default:
                    let event = try await carryOut(step)
                    if event == .outdated { lastError = nil }
                    machine.advance(event)
                }
            } catch {
                if step != .end, step != .giveUp {
                    // The peer may be moving records at this moment, or left out some of them.
                    if error.code == .recordsMoved, moves.isTaken { return resultSoFar() }
                    if beginsAgain(after: error) {
                        lastError = error.isOfLateness ? nil : error
                        machine.advance(.outdated)
                        continue
                    }
                }
                throw error.located(peer: peer.description, dataset: dataset.name)
            }
        }
    }

    /// Whether another attempt may come to a better end.
    private func beginsAgain(after error: SyncError) -> Bool {
        switch error.code {
        case .recordsMoved:
            guard !moves.isRefused else { return false }
            moves.isRefused = true
        case .peerChanged:
            late.isMet = false
        default:
            guard error.isOfLateness else { return false }
            // Who was late starts afresh.
            late.isMet = true
        }
        // What was found may have been found in another state of the peer.
        differences = nil
        return true
    }

    private var wordsForContention: String {
        guard late.isMet else {
            return "the peer's dataset changed during each of \(result.attempts) attempts; "
                + "repeat the exchange or raise attemptsMax"
        }
        return "one side starts afresh with another replica at this time, or forgot deletions "
            + "during each of \(result.attempts) attempts; repeat the exchange later"
    }

    /// Whether a pull could bring anything. Without this, each of a million idle datasets would
    /// cost a round trip.
    func hasNews(_ remote: PeerKnowledge) throws(SyncError) -> Bool {
        let ours = try engine(dataset.name) { () throws(StoreError) in try dataset.vector }
        if isBeginningAfresh || remote.syncCount > positions.pull || !doubts.isEmpty { return true }
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
            (positions.adopted, differences) = (.zero, nil)
            doubts.confirmed = []
            endFreshStart()
            late.forgetJudged()
        }
        peer = answer.replica
        result.remoteReplica = peer
        return answer.datasets.first { $0.name == dataset.name }
    }

    func takePositions(_ greeting: DatasetGreeting?) throws(SyncError) {
        let formerIDs = greeting?.formerIDs ?? []
        let (checkpoint, reached, ours) = try engine(dataset.name) { () throws(StoreError) in
            (
                try dataset.checkpoint(for: peer),
                try dataset.pulledThrough(from: [peer] + formerIDs),
                try dataset.knowledge()
            )
        }
        let theirs = greeting?.knowledge?.syncCount ?? .zero
        positions.acknowledged = greeting?.pushedThrough ?? .zero
        doubts.known = (checkpoint.vector, min(reached, positions.acknowledged))
        positions.pull = min(checkpoint.pulledThrough, positions.acknowledged)
        positions.push = min(checkpoint.pushedThrough, greeting?.pulledThrough ?? .zero)
        if positions.pull > theirs { positions.pull = .zero }
        if positions.push > ours.syncCount { positions.push = .zero }
        if isBeginningAfresh { (positions.pull, positions.push) = (.zero, .zero) }
        // What lies on either side under a disputed id is all to be compared, in one exchange: what
        // a part of it came to is remembered nowhere.
        if !doubts.isEmpty {
            (positions.pull, positions.push) = (.zero, .zero)
            tally.recordsLeft = .max
            (positions.adopted, differences) = (.zero, nil)
        }
    }

    var policy: MergePolicy { options.policies[dataset.name] ?? options.policy }

    /// Whether the journal keeps what the policy settles.
    var keepsConflicts: Bool { policy.settler.map { options.journal.keeps($0) } ?? false }

    var address: Address {
        Address(
            from: options.asker(store), to: peer, dataset: dataset.name, moved: moves.told)
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
        tally.recordsLeft -= min(tally.recordsLeft, records)
        switch phase {
        case .pulling:
            result.pagesReceived += 1
            tally.recordsReceived += records
        case .pushing:
            result.pagesSent += 1
            tally.recordsSent += records
        }
        options.progress?(
            SyncProgress(
                dataset: dataset.name, phase: phase, recordsReceived: tally.recordsReceived,
                recordsSent: tally.recordsSent, bytesReceived: result.bytesReceived,
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
