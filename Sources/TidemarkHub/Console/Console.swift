import Tidemark
import TidemarkSync

/// What the console works with: parts of the hub, none of which knows of it.
struct ConsoleParts: Sendable {
    let threads: HubThreads
    let identities: IdentityDirectory
    let gate: IdentityGate
    let connected: ConnectedDevices
    let sink: any ChangeSink
    let books: SyncBooks
    let metrics: HubMetrics
    let settings: HubSettings
    let clock: any SyncEnvironment
}

/// A request of the console's API whose session was found.
struct ConsoleCall: Sendable {
    let operation: ConsoleOperation
    let query: ConsoleQuery
    /// All of it; empty if there was none.
    let body: [UInt8]
    let session: ConsoleSessions.Session
    /// Of the caller, as limits count it.
    let address: String?
}

/// The console: one page for whoever runs the hub, which shows what is in its store and how it
/// fares, and lets a record, a conflict or a device be seen to.
///
/// Every request does a bounded amount of work, by ``ConsoleLimits``. Edits take the way that those
/// of replicas take, so that streams, push and counts hear of them, and are in the audit file
/// before anything is changed.
final class Console: Sendable {
    let parts: ConsoleParts
    let sessions: ConsoleSessions
    let signIns: RateLimiter
    let feed: ConsoleFeed
    let samples: ConsoleSamples
    let audit: ConsoleAudit

    init(_ parts: ConsoleParts) {
        self.parts = parts
        let sessions = ConsoleSessions(clock: parts.clock)
        self.sessions = sessions
        signIns = RateLimiter(
            RateLimiter.Rate(
                perSecond: ConsoleLimits.signInsPerSecond, burst: ConsoleLimits.signInBurst),
            namesMax: ConsoleLimits.signInNamesMax)
        feed = ConsoleFeed(threads: parts.threads, isOpen: { sessions.isOpen($0) })
        samples = ConsoleSamples()
        audit = ConsoleAudit(path: parts.threads.stores.current.path + "/" + ConsoleAudit.fileName)
    }

    /// Takes samples and tells who listens, until the task is cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.feed.run() }
            group.addTask { await self.feed.beat() }
            group.addTask { await self.sample() }
        }
    }

    private func sample() async {
        while !Task.isCancelled {
            let counters = parts.threads.stores.current.counters()
            samples.take(
                counters, parts.metrics.allDurations.current, at: SystemSyncEnvironment().now())
            try? await SystemSyncEnvironment().sleep(for: ConsoleLimits.samplePeriod)
        }
    }

    /// The JSON of an answer, whose status is 200. Sessions and streams are the handler's.
    ///
    /// - Throws: what the page is told.
    func answer(_ call: ConsoleCall) async throws(APIFailure) -> [UInt8] {
        let threads = parts.threads
        switch call.operation {
        case .overview: return try await overview()
        case .identities:
            let listing = try IdentityList(call.query)
            return try await threads.read { try listing.answer(in: $0) }
        case .identity: return try await identity(call.query)
        case .datasets:
            let listing = try DatasetList(call.query)
            return try await threads.read { try listing.answer(in: $0) }
        case .dataset: return try await dataset(call.query)
        case .records:
            let listing = try RecordList(call.query)
            return try await threads.read { try listing.answer(in: $0) }
        case .record: return try await record(call.query)
        case .history: return try await history(call.query)
        case .replicas:
            let listing = try ReplicaList(call.query)
            return try await threads.read { try listing.answer(in: $0) }
        case .devices:
            let (listing, connected) = (try DeviceList(call.query), parts.connected)
            return try await threads.read { try listing.answer(in: $0, connected) }
        case .conflicts:
            let listing = try ConflictList(call.query)
            return try await threads.read { try listing.answer(in: $0) }
        case .conflict: return try await conflict(call.query)
        case .charts:
            let since = try call.query.number("since", in: 0...Int.max, default: 0)
            return samples.answer(since: UInt64(since))
        case .settings: return ConsoleSettings(parts.settings).answer
        case .audit:
            let before = try call.query.number("before", in: 0...Int.max, default: Int.max)
            return try await audit.answer(before: UInt64(before))
        case .put, .delete, .resolve, .revoke: return try await edit(call)
        case .session, .stream:
            throw APIFailure(.unknownOperation, "the console has nothing of that name")
        }
    }

    /// - Throws: `resourceNotFound` as an `APIFailure`, and what the store throws.
    static func dataset(_ name: String, in store: Store) throws -> Dataset {
        guard let dataset = try store.existingDataset(name) else {
            throw APIFailure(.resourceNotFound, "there is no dataset of that name")
        }
        return dataset
    }

    // MARK: - One record

    private func record(_ query: ConsoleQuery) async throws(APIFailure) -> [UInt8] {
        let (name, reference) = (try query.dataset(), try query.record())
        let from = try query.number("from", in: 0...Limits.valueBytesMax, default: 0)
        let bytesMax = try query.number(
            "bytes", in: 4...ConsoleLimits.valueBytesMax,
            default: ConsoleLimits.valueBytesDefault)
        return try await parts.threads.read { store in
            let record = try reference.record(in: try Self.dataset(name, in: store))
            var answer = JSONAnswer()
            answer.open("{")
            answer.add("dataset", text: name)
            answer.addMembers(of: record, from: from, valueBytesMax: bytesMax)
            answer.add("vector", vector: record.version.vector)
            answer.close("}")
            return answer.bytes
        }
    }

    private func history(_ query: ConsoleQuery) async throws(APIFailure) -> [UInt8] {
        let (name, reference) = (try query.dataset(), try query.record())
        return try await parts.threads.read { store in
            let dataset = try Self.dataset(name, in: store)
            let key = try reference.key(in: dataset)
            let history = try RecordHistory(of: key, in: dataset)
            guard !history.nodes.isEmpty else {
                throw APIFailure(.resourceNotFound, "nothing is kept of that key")
            }
            var answer = JSONAnswer()
            answer.open("{")
            answer.add("dataset", text: name)
            answer.add("key", shown: key, bytesMax: ConsoleLimits.shownBytes)
            history.write(to: &answer)
            answer.close("}")
            return answer.bytes
        }
    }

    /// All that waits of a key, with values as long as they are shown one by one.
    private func conflict(_ query: ConsoleQuery) async throws(APIFailure) -> [UInt8] {
        let (name, reference) = (try query.dataset(), try query.record())
        return try await parts.threads.read { store in
            let dataset = try Self.dataset(name, in: store)
            let waiting = try dataset.pendingConflicts(
                of: try reference.key(in: dataset), limit: ConsoleLimits.waitingOfKeyMax)
            guard !waiting.isEmpty else {
                throw APIFailure(.resourceNotFound, "nothing of that key waits any more")
            }
            var answer = JSONAnswer()
            answer.open("{")
            answer.open("[", as: "rows")
            for one in waiting {
                answer.open("{")
                one.write(to: &answer, valueBytesMax: ConsoleLimits.valueBytesDefault)
                answer.close("}")
            }
            answer.close("]")
            answer.close("}")
            return answer.bytes
        }
    }

    // MARK: - All at a glance

    private func overview() async throws(APIFailure) -> [UInt8] {
        let (parts, sessions) = (parts, sessions.count)
        return try await parts.threads.read { store in
            let counters = store.counters()
            var answer = JSONAnswer()
            answer.open("{")
            answer.add("replica", text: store.replicaID.description)
            answer.add("time", parts.clock.now())
            answer.add("pools", parts.settings.pools.count)
            answer.add("connectedDevices", parts.connected.count)
            answer.add("sessions", sessions)
            answer.add("isWriterStopped", counters.isWriterStopped)
            answer.add("damages", counters.damages)
            answer.add("runs", counters.runCount)
            answer.add("segments", counters.segmentCount)
            answer.add("segmentBytes", counters.segmentBytes)
            answer.add("logs", counters.logCount)
            answer.add("logBytes", counters.logBytes)
            answer.add("commits", counters.commits)
            answer.add("puts", counters.puts)
            answer.add("deletes", counters.deletes)
            answer.add("merges", counters.merges)
            answer.add("entriesDropped", counters.entriesDropped)
            answer.add("recordsExpired", counters.recordsExpired)
            answer.close("}")
            return answer.bytes
        }
    }
}
