import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// What the article *Coming from Cognito Sync and DataStore* says of conflicts, callbacks,
/// notifications and errors: each test does what its row says.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct CallbackMappingTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    /// So many keys that both sides have changed since they last met.
    private func makeConflicts(_ count: Int) async throws {
        try fill(a, 0..<count, "base")
        try await a.dataset().synchronize(with: b.transport)
        try fill(a, 0..<count, "ours")
        try fill(b, 0..<count, "theirs")
    }

    // MARK: - Conflicts

    @Test func theHandlerIsAskedOnceForEachConflictOneAtATimeAndMayUseTheStore() async throws {
        try await makeConflicts(10)
        let dataset = try a.dataset()
        let state = Mutex((inside: 0, most: 0, keys: [[UInt8]]()))
        let policy = MergePolicy.custom { conflict in
            state.withLock { state in
                state.inside += 1
                state.most = max(state.most, state.inside)
                state.keys.append(conflict.key)
            }
            defer { state.withLock { $0.inside -= 1 } }
            // Neither waits for a lock that the exchange holds.
            let text = try dataset.record(for: conflict.key)?.valueText
            try dataset.put("noted", for: "note of \(conflict.local.keyText ?? "")")
            await Task.yield()
            return text == conflict.local.valueText ? .keepLocal : .stop
        }
        let result = try await dataset.synchronize(
            with: b.transport, options: SyncOptions(policy: policy, pageRecordsMax: 3))
        let (most, keys) = state.withLock { ($0.most, $0.keys) }
        #expect(most == 1)
        #expect(keys.count == 10 && Set(keys).count == 10)
        #expect(result.conflicts == 10)
        try expectText(b, 0..<10, "ours")
    }

    @Test(arguments: [
        Resolution.keepLocal, .keepRemote, .value(Array("both".utf8)), .delete,
    ])
    func aResolutionSaysWhatTheRecordWillHold(_ resolution: Resolution) async throws {
        try await makeConflicts(1)
        let foretold = Box<[UInt8]?>()
        let policy = MergePolicy.custom { conflict in
            foretold.set(conflict.value(after: resolution))
            return resolution
        }
        let result = try await a.dataset().synchronize(
            with: b.transport, options: SyncOptions(policy: policy))
        #expect(result.attempts == 1 && result.isComplete)
        #expect(foretold.all.count == 1)
        for replica in [a, b] {
            #expect(try replica.dataset().get("key 0") == foretold.value ?? nil)
        }
        // The outcome descends from both, so that there is nothing left to settle or to send.
        for (asker, responder) in [(a, b), (b, a)] {
            let again = try await asker.dataset().synchronize(with: responder.transport)
            #expect(again.conflicts == 0 && again.pushed == 0 && again.pulled == 0)
        }
    }

    @Test func aConflictWithoutAnAncestorSaysWhy() async throws {
        try a.dataset().put("ours", for: "made on both sides")
        try b.dataset().put("theirs", for: "made on both sides")
        let asked = Box<Conflict>()
        let policy = MergePolicy.custom { conflict in
            asked.set(conflict)
            return .keepLocal
        }
        let options = SyncOptions(policy: policy)
        try await a.dataset().synchronize(with: b.transport, options: options)
        #expect(asked.value?.ancestry == .nonexistent && asked.value?.ancestor == nil)
        for replica in [a, b] { try replica.dataset().put(replica.name, for: "made on both sides") }
        try await a.dataset().synchronize(with: b.transport, options: options)
        #expect(asked.all.count == 2)
        #expect(asked.value?.ancestor?.valueText == "ours")
        guard case .known = asked.value?.ancestry else {
            Issue.record("the ancestor is kept here")
            return
        }
    }

    /// By default, whichever side asks and whosever clock is ahead.
    @Test(arguments: [false, true], [false, true])
    func withoutAHandlerTheLastWriterWins(asksThere: Bool, isAheadThere: Bool) async throws {
        (isAheadThere ? b : a).clock.putForward(bySeconds: 60)
        try a.dataset().put("ours", for: "key")
        try b.dataset().put("theirs", for: "key")
        let (asker, responder) = asksThere ? (b, a) : (a, b)
        let result = try await asker.dataset().synchronize(with: responder.transport)
        #expect(result.conflicts == 1 && result.isComplete)
        for replica in [a, b] {
            #expect(try replica.dataset().text("key") == (isAheadThere ? "theirs" : "ours"))
        }
        try expectEqual([a, b])
    }

    @Test func theHandleIsGoodAgainAfterTheDatasetWasDiscarded() async throws {
        let handle = try a.dataset()
        try handle.put("1", for: "key")
        try await a.store.synchronize(with: b.transport)
        try b.store.deleteDataset("notes")
        var options = SyncOptions()
        options.deletedDatasetHandler = { _ in .discardLocal }
        try await a.store.synchronize(with: b.transport, options: options)
        let error = #expect(throws: StoreError.self) { try handle.put("2", for: "key") }
        #expect(error?.code == .datasetNotFound)
        _ = try a.dataset()
        try handle.put("3", for: "key")
        try await handle.synchronize(with: b.transport)
        #expect(try b.dataset().text("key") == "3")
    }

    // MARK: - Notifications

    @Test func aChangeHereIsToldOnceForAPageAfterItIsApplied() async throws {
        try fill(b, 0..<10, "theirs")
        let dataset = try a.dataset()
        let pages = Box<[[UInt8]]>()
        var options = SyncOptions(pageRecordsMax: 4)
        options.observer = { event in
            guard case .localChanged("notes", let keys) = event else { return }
            pages.set(keys.filter { (try? dataset.contains($0)) ?? false })
        }
        try await dataset.synchronize(with: b.transport, options: options)
        #expect(pages.all.map(\.count) == [4, 4, 2])
        #expect(Set(pages.all.joined()).count == 10)
    }

    @Test func aChangeThereIsToldWhenItIsDurableThere() async throws {
        let disk = SimulatedStorage(seed: Seed(7))
        let options = StoreOptions(
            durability: .memory, segmentBytes: 1 << 20, compactsAutomatically: false)
        let peer = try Store.open(at: "/store", options: options, storage: disk)
        // On a disk of the same kind, whose clock agrees with that of the other.
        let ours = try Store.open(
            at: "/store", options: options, storage: SimulatedStorage(seed: Seed(8)))
        let notes = try ours.dataset("notes")
        for number in 0..<10 { try notes.put("ours", for: "key \(number)") }
        let found = Mutex((told: 0, durable: 0))
        var exchange = SyncOptions(pageRecordsMax: 4)
        exchange.observer = { event in
            guard case .remoteChanged("notes", let keys) = event else { return }
            var random = TestSupport.SeededGenerator(Seed(1))
            let remains = disk.afterPowerLoss(.nothing, using: &random)
            let store = try? Store.open(at: "/store", options: options, storage: remains)
            let dataset = try? store?.existingDataset("notes")
            let there = keys.filter { key in (try? dataset?.contains(key)) ?? false }
            try? store?.close()
            found.withLock { found in
                found.told += keys.count
                found.durable += there.count
            }
        }
        try await notes.synchronize(
            with: InMemoryTransport(SyncResponder(store: peer)), options: exchange)
        let (told, durable) = found.withLock { ($0.told, $0.durable) }
        #expect(told == 10)
        #expect(durable == 10)
        try ours.close()
        try peer.close()
    }

    @Test func anEventHasTheDatasetTheKeysAndTheError() async throws {
        try a.dataset().put("1", for: "ours")
        try b.dataset().put("2", for: "theirs")
        let isDown = Mutex(false)
        let transport = CountingTransport(b.transport) { _ in
            isDown.withLock { $0 } ? SyncError(.unauthorized, "of the test") : nil
        }
        let synchronizer = Synchronizer(store: a.store, transport: transport)
        let (events, failures) = (synchronizer.events(), synchronizer.events())
        try await synchronizer.synchronize(["notes"])
        var changes: [[String]] = []
        for event in await collect(events, completions: 1) {
            switch event {
            case .localChanged(let dataset, let keys), .remoteChanged(let dataset, let keys):
                changes.append([dataset] + keys.map { String(decoding: $0, as: UTF8.self) })
            default: break
            }
        }
        #expect(changes.contains(["notes", "theirs"]))
        #expect(changes.contains(["notes", "ours"]))
        isDown.withLock { $0 = true }
        let error = await #expect(throws: SyncError.self) {
            try await synchronizer.synchronize(["notes"])
        }
        guard case .failed(let told) = await collect(failures, completions: 2).last else {
            Issue.record("the second run did not fail")
            return
        }
        #expect(told == error && told.code == .unauthorized)
        await synchronizer.shutdown()
    }

    // MARK: - Completions

    /// Hands on what a delegate is told at the end of a run.
    private struct Endings: SyncDelegate {
        enum Ending: Sendable {
            case ended(SyncReport)
            case failed(SyncError)
        }

        let told: AsyncStream<Ending>.Continuation

        func syncEnded(_ report: SyncReport) { told.yield(.ended(report)) }
        func syncFailed(_ error: SyncError) { told.yield(.failed(error)) }
    }

    @Test func theDelegateHearsWhatTheCallReturns() async throws {
        try await makeConflicts(2)
        try fill(a, 5..<7, "ours")
        try fill(b, 7..<10, "theirs")
        let (endings, told) = AsyncStream.makeStream(of: Endings.Ending.self)
        let policy = MergePolicy.custom { conflict in
            conflict.key == Array("key 0".utf8) ? .value(Array("both".utf8)) : .keepLocal
        }
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport,
            options: SynchronizerOptions(exchange: SyncOptions(policy: policy)),
            delegate: Endings(told: told))
        let report = try await synchronizer.synchronize()
        var iterator = endings.makeAsyncIterator()
        guard case .ended(let heard) = await iterator.next() else {
            Issue.record("the run did not end")
            return
        }
        #expect(heard == report)
        let result = try #require(report["notes"]?.result)
        // Those of the other side's only, and those in conflict.
        #expect(result.pulled == 5 && result.conflicts == 2)
        #expect(result.settled.map(\.decision) == [.merged, .local])
        #expect(result.pushed == 4)
        #expect(result.pendingCount == 0 && result.failedCount == 0)
        await synchronizer.shutdown()
    }

    /// A dataset that fails for a reason of its own ends nothing but itself: the run ends, and the
    /// error is in the report.
    @Test func aRunFailsOnlyIfItDoesNotComeToItsEnd() async throws {
        try await makeConflicts(1)
        try a.dataset("plans").put("1", for: "key")
        let (endings, told) = AsyncStream.makeStream(of: Endings.Ending.self)
        let isDown = Mutex(false)
        let transport = CountingTransport(b.transport) { _ in
            isDown.withLock { $0 } ? SyncError(.unauthorized, "of the test") : nil
        }
        let synchronizer = Synchronizer(
            store: a.store, transport: transport,
            options: SynchronizerOptions(exchange: SyncOptions(policy: .leavePending)),
            delegate: Endings(told: told))
        var iterator = endings.makeAsyncIterator()
        let report = try await synchronizer.synchronizeEach()
        #expect(report["notes"]?.error?.code == .conflictPending)
        #expect(report["plans"]?.isComplete == true)
        guard case .ended(report) = await iterator.next() else {
            Issue.record("a dataset's own error ended the run")
            return
        }
        isDown.withLock { $0 = true }
        let error = await #expect(throws: SyncError.self) { try await synchronizer.synchronize() }
        guard case .failed(let heard) = await iterator.next() else {
            Issue.record("the run that was refused did not fail")
            return
        }
        #expect(heard == error && heard.code == .unauthorized)
        await synchronizer.shutdown()
    }

    @Test func attemptsThatAreUsedUpEndInOneFailure() async throws {
        let time = VirtualEnvironment(passesBySleeping: true)
        let transport = CountingTransport(b.transport) { _ in SyncError(.unreachable, "no route") }
        let synchronizer = Synchronizer(
            store: a.store, transport: transport, options: SynchronizerOptions(attemptsMax: 3),
            environment: time)
        let events = synchronizer.events()
        await #expect(throws: SyncError.self) { try await synchronizer.synchronize() }
        await synchronizer.shutdown()
        var labels: [String] = []
        for await event in events { labels.append(event.label) }
        #expect(labels == ["started all", "failed unreachable"])
        #expect(transport.count == 3)
    }

    // MARK: - Errors

    @Test func anErrorOfTheStoreIsHandedOn() async throws {
        let synchronizer = Synchronizer(store: a.store, transport: b.transport)
        try a.dataset().put("1", for: "key")
        try a.store.close()
        let error = await #expect(throws: SyncError.self) { try await synchronizer.synchronize() }
        #expect(error?.code == .store)
        #expect(error?.storeError?.code == .closed)
        await synchronizer.shutdown()
    }

    @Test func aRecordThatIsTooLargeIsLeftOutAndTheRestIsExchanged() async throws {
        var random = SeededGenerator(seed: 1)
        let bytes = (0..<4_000).map { _ in UInt8.random(in: 0...255, using: &random) }
        try fill(a, 0..<5, "small")
        try a.dataset().put(bytes, for: Array("large".utf8))
        let responder = SyncResponder(
            store: b.store, limits: SyncResponder.Limits(requestBytesMax: 2_345))
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: InMemoryTransport(responder))
        }
        #expect(error?.code == .tooLarge)
        #expect(error?.message.contains("2345") == true)
        #expect(try a.dataset().failedRecords().map(\.keyText) == ["large"])
        try expectText(b, 0..<5, "small")
        #expect(try b.dataset().count() == 5)
    }

    @Test func aRefusedArgumentIsNamedWithItsBounds() {
        let error = #expect(throws: StoreError.self) { try a.store.dataset("no name") }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains("no name") == true)
        #expect(error?.message.contains("1...255") == true)
    }
}
