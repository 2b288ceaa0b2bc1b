import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// What the article *Coming from Cognito Sync and DataStore* says of DataStore's configuration,
/// events and calls, and of the strategies of AppSync: each test does what its row says.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct DataStoreMappingTests {
    let a: TestReplica
    let b: TestReplica
    let time = VirtualEnvironment()

    init() throws { (a, b) = try TestReplica.two() }

    // MARK: - Configuration

    @Test func theDefaultsAreThoseOfTheArticle() throws {
        let (exchange, options) = (SyncOptions(), SynchronizerOptions())
        guard case .lastWriterWins = exchange.policy else {
            Issue.record("\(exchange.policy)")
            return
        }
        #expect(exchange.policies.isEmpty)
        #expect(exchange.recordsPerRunMax == nil)
        #expect(exchange.pageRecordsMax == 8_192)
        #expect(exchange.onDatasetDeleted == .keepAndStop)
        #expect(exchange.deletedDatasetHandler == nil && exchange.mergedDatasetsHandler == nil)
        #expect(options.attemptsMax == 5)
        #expect(options.network == .anyNetwork)
        let schedule = SyncSchedule()
        #expect(schedule.interval == nil && schedule.afterWrite == nil)
        #expect(schedule.fullSyncAfter == nil)
    }

    @Test(arguments: [nil, Duration.seconds(60)])
    func aFullExchangeIsMadeOnlyIfItIsAskedFor(_ after: Duration?) async throws {
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport, schedule: SyncSchedule(fullSyncAfter: after),
            environment: time)
        for _ in 0..<3 {
            try b.dataset().put("1", for: "key")
            try await synchronizer.synchronize()
            time.advance(by: .seconds(1_000 * 86_400))
        }
        #expect((synchronizer.lastFullSync == nil) == (after == nil))
        try await synchronizer.synchronizeFully()
        #expect(synchronizer.lastFullSync != nil)
        await synchronizer.shutdown()
    }

    /// The other side evaluates the scope: what is outside of it is never received. The store keeps
    /// the scope.
    @Test func aScopeOfFieldsIsEvaluatedThereKeptHereAndChangedAtAnyTime() async throws {
        for number in 0..<6 {
            let state = number % 2 == 0 ? "open" : "closed"
            try b.dataset().put(#"{"state": "\#(state)"}"#, for: "order \(number)")
        }
        try a.dataset().setSyncScope(.field(JSONPath(["state"]), .equals("open")))
        let received = Box<Int>()
        let options = SyncOptions(progress: { received.set($0.recordsReceived) })
        func keys() throws -> [String?] { try a.dataset().records().collect().map(\.keyText) }
        try await a.dataset().synchronize(with: b.transport, options: options)
        #expect(try keys() == ["order 0", "order 2", "order 4"])
        #expect(received.value == 3)
        try a.reopen()
        try b.dataset().put(#"{"state": "closed"}"#, for: "order 6")
        try b.dataset().put(#"{"state": "open"}"#, for: "order 7")
        try await a.dataset().synchronize(with: b.transport)
        #expect(try keys() == ["order 0", "order 2", "order 4", "order 7"])
        try a.dataset().setSyncScope(.prefix("order 1"))
        try await a.dataset().synchronize(with: b.transport)
        #expect(try keys() == ["order 1"])
        #expect(try b.dataset().count() == 8)
    }

    @Test func aConflictThatIsSettledIsSentOnce() async throws {
        try a.dataset().put("ours", for: "key")
        try b.dataset().put("theirs", for: "key")
        let options = SyncOptions(policy: .keepLocal)
        let first = try await a.dataset().synchronize(with: b.transport, options: options)
        #expect(first.conflicts == 1 && first.pushed == 1)
        #expect(try b.dataset().text("key") == "ours")
        for (asker, responder) in [(a, b), (b, a)] {
            let again = try await asker.dataset().synchronize(
                with: responder.transport, options: options)
            #expect(again.conflicts == 0 && again.pushed == 0)
        }
        try expectEqual([a, b])
    }

    @Test func aHandlerThatAlwaysWritesIsNotAskedWithoutEnd() async throws {
        try a.dataset().put("ours", for: "key")
        try b.dataset().put("theirs", for: "key")
        let dataset = try a.dataset()
        let calls = Mutex(0)
        let policy = MergePolicy.custom { _ in
            let call = calls.withLock { calls in
                calls += 1
                return calls
            }
            try dataset.put("ours, edit \(call)", for: "key")
            return .keepLocal
        }
        let error = await #expect(throws: SyncError.self) {
            try await dataset.synchronize(with: b.transport, options: SyncOptions(policy: policy))
        }
        #expect(error?.code == .contended)
        #expect(calls.withLock { $0 } > 1)
        #expect(try b.dataset().text("key") == "theirs")
        try await dataset.synchronize(with: b.transport, options: SyncOptions(policy: .keepLocal))
        #expect(try b.dataset().text("key")?.hasPrefix("ours, edit") == true)
    }

    /// Hands on what a delegate is told of errors in the background and of ends.
    private struct Listener: SyncDelegate {
        let told: AsyncStream<(label: String, error: SyncError?)>.Continuation

        func syncFailedInBackground(_ error: SyncError) { told.yield(("background", error)) }
        func syncEnded(_ report: SyncReport) { told.yield(("ended", report.firstError)) }
    }

    @Test func anErrorInTheBackgroundNamesItsPlaceAndComesBeforeTheEnd() async throws {
        try a.dataset().put("ours", for: "key")
        try b.dataset().put("theirs", for: "key")
        let (stream, told) = AsyncStream.makeStream(of: (label: String, error: SyncError?).self)
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport,
            options: SynchronizerOptions(exchange: SyncOptions(policy: .leavePending)),
            schedule: SyncSchedule(interval: .seconds(60)), delegate: Listener(told: told),
            environment: time)
        synchronizer.start()
        var iterator = stream.makeAsyncIterator()
        let first = try #require(await iterator.next())
        #expect(first.label == "background")
        #expect(first.error?.code == .conflictPending)
        #expect(first.error?.peer == b.store.replicaID.description)
        #expect(first.error?.dataset == "notes")
        #expect(first.error?.key == Array("key".utf8))
        let second = try #require(await iterator.next())
        #expect(second.label == "ended" && second.error == first.error)
        await synchronizer.shutdown()
    }

    /// Asks one after the other for a token that is let in, before it sends.
    private struct AskingTransport: SyncTransport {
        let providers: [@Sendable () async -> String]
        let hub: @Sendable (_ token: String, _ request: [UInt8]) -> [UInt8]?

        func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
            for provider in providers {
                if let answer = hub(await provider(), request) { return answer }
            }
            throw SyncError(.unauthorized, "no provider has a token that is let in")
        }
    }

    @Test func aTransportOfOnesOwnAsksWhomItLikes() async throws {
        try a.dataset().put("1", for: "key")
        let responder = b.responder
        let hub: @Sendable (String, [UInt8]) -> [UInt8]? = { token, request in
            token == "good" ? responder.respond(to: request) : nil
        }
        let expired = AskingTransport(providers: [{ "expired" }], hub: hub)
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: expired)
        }
        #expect(error?.code == .unauthorized)
        #expect(try b.store.datasets().isEmpty)
        let several = AskingTransport(providers: [{ "expired" }, { "good" }], hub: hub)
        try await a.dataset().synchronize(with: several)
        #expect(try b.dataset().text("key") == "1")
    }

    // MARK: - Events and calls

    @Test func theStoreCanBeUsedWhileARunIsUnderWay() async throws {
        try b.dataset().put("1", for: "theirs")
        let gate = GatedTransport(b.transport)
        let synchronizer = Synchronizer(store: a.store, transport: gate)
        let run = Task { try await synchronizer.synchronize(["notes"]) }
        await gate.untilArrived(1)
        try a.dataset().put("2", for: "ours")
        #expect(try a.dataset().text("ours") == "2")
        #expect(synchronizer.isRunning)
        gate.open()
        #expect(try await run.value.isComplete)
        try await synchronizer.synchronize()
        try expectEqual([a, b])
        await synchronizer.shutdown()
    }

    @Test func eachChangeSaysWhetherItIsStillToBeSent() async throws {
        var changes = try a.dataset().liveChanges(since: .zero).makeAsyncIterator()
        try a.dataset().put("1", for: "ours")
        let enqueued = try await changes.next()
        #expect(enqueued?.keyText == "ours" && enqueued?.isDirty == true)
        try b.dataset().put("2", for: "theirs")
        try await a.dataset().synchronize(with: b.transport)
        let received = try await changes.next()
        #expect(received?.keyText == "theirs" && received?.isDirty == false)
        #expect(try a.dataset().record(for: "ours")?.isDirty == false)
    }

    @Test func changesGoOnInTheNextLifeOfTheProcess() async throws {
        for key in ["a/1", "b/1", "a/2"] { try a.dataset().put("1", for: key) }
        var first = try a.dataset().liveChanges(since: .zero, in: .prefix("a/"))
            .makeAsyncIterator()
        var seen: [String?] = []
        for _ in 0..<2 { seen.append(try await first.next()?.keyText) }
        #expect(seen == ["a/1", "a/2"])
        let position = first.position
        try a.reopen()
        var second = try a.dataset().liveChanges(since: position, in: .prefix("a/"))
            .makeAsyncIterator()
        for key in ["b/2", "a/3"] { try a.dataset().put("1", for: key) }
        let next = try await second.next()
        #expect(next?.keyText == "a/3")
    }

    // MARK: - Strategies of AppSync

    /// One exchange, in which each dataset goes by its own strategy and none holds up another.
    @Test func eachDatasetGoesByItsOwnStrategy() async throws {
        let names = ["drafts", "orders", "posts", "users"]
        let base = #"{"title": "Tide", "tags": ["sea"]}"#
        for name in names { try a.dataset(name).put(base, for: "key") }
        try await a.store.synchronize(with: b.transport)
        for name in names {
            let (ours, theirs) = (try a.dataset(name), try b.dataset(name))
            try ours.put(#"{"title": "Tides", "tags": ["sea"]}"#, for: "key")
            try theirs.put(#"{"title": "Tide", "tags": ["sea", "moon"]}"#, for: "key")
        }
        let asked = Box<Conflict>()
        let waiting = Box<String>()
        let options = SyncOptions(
            policies: [
                "orders": .leavePending, "posts": .autoMerge(AutoMerge()),
                "users": .custom { conflict in
                    asked.set(conflict)
                    return .value(Array("decided".utf8))
                },
            ],
            onPending: { waiting.set($0.dataset) })
        let report = await a.store.synchronizeEach(with: b.transport, options: options)
        // Auto Merge: the fields that only one side changed.
        let merged = try JSONValue(parsing: try #require(try b.dataset("posts").get("key")))
        #expect(merged == ["title": "Tides", "tags": ["sea", "moon"]])
        // Custom Lambda: what the handler says, with both sides and their ancestor before it.
        #expect(asked.all.map(\.ancestor?.valueText) == [base])
        #expect(try b.dataset("users").text("key") == "decided")
        // Optimistic Concurrency: both sides as they were, and the application is told.
        #expect(report["orders"]?.error?.code == .conflictPending)
        #expect(waiting.all == ["orders"])
        #expect(try a.dataset("orders").text("key")?.contains("Tides") == true)
        #expect(try b.dataset("orders").text("key")?.contains("moon") == true)
        // None of them: the last writer.
        #expect(try a.dataset("drafts").text("key") == b.dataset("drafts").text("key"))
        for name in ["drafts", "posts", "users"] {
            #expect(report[name]?.isComplete == true)
            try expectEqual([a, b], dataset: name)
        }
        let conflict = try #require(try a.dataset("orders").pendingConflicts().first?.conflict)
        try a.dataset("orders").settle(conflict, as: .keepLocal)
        try await a.store.synchronize(with: b.transport, options: options)
        try expectEqual([a, b], dataset: "orders")
    }

    /// AppSync's own rules: scalars keep the server's, lists append, sets unite. Here the report
    /// says which scalar lost, and who had written it.
    @Test func aMergeByAppSyncsRulesSaysWhichFieldLost() async throws {
        try b.dataset().put(#"{"title": "Ebb", "log": [1], "tags": ["a"]}"#, for: "key")
        try a.dataset().put(#"{"title": "Flood", "log": [1], "tags": ["a", "b"]}"#, for: "key")
        let rules = AutoMerge(rules: .appSync(server: .remote), sets: [JSONPath(["tags"])])
        let result = try await a.dataset().synchronize(
            with: b.transport, options: SyncOptions(policy: .autoMerge(rules)))
        let merged = try JSONValue(parsing: try #require(try b.dataset().get("key")))
        #expect(merged == ["title": "Ebb", "log": [1, 1], "tags": ["a", "b"]])
        let lost = try #require(result.reports.first?.lost)
        #expect(lost.map(\.path) == [JSONPath(["title"])])
        #expect(lost.map(\.side) == [.local])
        #expect(lost.map(\.value) == ["Flood"])
        try expectEqual([a, b])
    }

    /// Everything at first, and then what has changed since, however long ago that was.
    @Test func anExchangeBringsWhatHasChangedSinceTheLastHoweverLongAgo() async throws {
        try fill(b, 0..<20, "theirs")
        let received = Box<Int>()
        let options = SyncOptions(progress: { received.set($0.recordsReceived) })
        let base = try await a.dataset().synchronize(with: b.transport, options: options)
        #expect(base.pulled == 20 && received.value == 20)
        for replica in [a, b] { replica.clock.putForward(bySeconds: 3_000_000) }
        try b.dataset().put("changed", for: "key 3")
        try b.dataset().delete("key 4")
        received.removeAll()
        let delta = try await a.dataset().synchronize(with: b.transport, options: options)
        #expect(delta.pulled == 2 && received.value == 2)
        #expect(try a.dataset().text("key 3") == "changed")
        #expect(try a.dataset().text("key 4") == nil)
        try expectEqual([a, b])
    }

    @Test func everythingIsGoneThroughAgainWhenItIsAskedFor() async throws {
        try fill(b, 0..<20, "theirs")
        let transport = CountingTransport(b.transport)
        let synchronizer = Synchronizer(store: a.store, transport: transport, environment: time)
        try await synchronizer.synchronize()
        func positions(from first: Int) throws -> [SyncCount] {
            try transport.messages()[first...].compactMap { message in
                guard case .pull(let pull) = message else { return nil }
                return pull.since
            }
        }
        try b.dataset().put("new", for: "key 20")
        let before = transport.count
        try await synchronizer.synchronize()
        #expect(try !positions(from: before).contains(.zero))
        let between = transport.count
        try await synchronizer.synchronizeFully()
        #expect(try positions(from: between).contains(.zero))
        try expectEqual([a, b])
        await synchronizer.shutdown()
    }
}
