import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// An exchange of all datasets looks only at those in which something has changed, and never
/// misses one.
struct IdleExchangeTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    /// What one exchange of all datasets took.
    private struct Cost: Equatable {
        var messages = 0
        var bytes = 0
        var datasets = 0
    }

    private func exchange(_ options: SyncOptions = SyncOptions()) async throws -> Cost {
        let transport = MessageCounter(b.responder)
        let results = try await a.store.synchronize(with: transport, options: options)
        return Cost(
            messages: transport.messages, bytes: transport.bytes, datasets: results.count)
    }

    private func put(_ count: Int, _ replica: TestReplica) throws {
        var batch = WriteBatch()
        for index in 0..<count {
            batch.put("\(index)", for: "key", in: try replica.dataset("dataset-\(index)"))
        }
        try replica.store.write(batch)
    }

    @Test(arguments: [1, 3_000])
    func idleIsOneRoundTripWhateverTheNumberOfDatasets(_ count: Int) async throws {
        try put(count, b)
        #expect(try await exchange().datasets == count)
        // All that the first one changed here is known to be equal there.
        let statesBefore = (a.store.datasetStatesInMemory, b.store.datasetStatesInMemory)
        for _ in 0..<3 {
            let cost = try await exchange()
            #expect(cost.messages == 1 && cost.datasets == 0 && cost.bytes <= 1_024, "\(cost)")
        }
        // Those in memory may have been let go meanwhile; none came.
        #expect(a.store.datasetStatesInMemory <= statesBefore.0)
        #expect(b.store.datasetStatesInMemory <= statesBefore.1)
    }

    /// After a restart nothing is left of the dataset but the part that is to be kept of it.
    @Test func aPartOfADatasetThatNobodyHasYetIsPassedOver() async throws {
        _ = try await exchange()
        let dataset = try #require(try a.store.datasetForSync("plans", creating: true))
        try dataset.setSyncScope(.prefix("key"))
        try a.reopen()
        #expect(try a.store.datasetForSync("plans", creating: false) == nil)
        #expect(try await exchange().datasets == 0)
        let idle = try await exchange()
        #expect(idle.messages == 1 && idle.datasets == 0)
        for key in ["key", "other"] { try b.dataset("plans").put("theirs", for: key) }
        #expect(try await exchange().datasets == 1)
        #expect(try a.dataset("plans").records().collect().map(\.keyText) == ["key"])
    }

    @Test func aChangeOnEitherSideIsSeen() async throws {
        try put(50, a)
        _ = try await exchange()
        _ = try await exchange()
        try b.dataset("dataset-7").put("there", for: "key")
        #expect(try await exchange().datasets == 1)
        #expect(try a.dataset("dataset-7").text("key") == "there")
        try a.dataset("dataset-8").put("here", for: "key")
        #expect(try await exchange().datasets == 1)
        #expect(try b.dataset("dataset-8").text("key") == "here")
        // What was pushed there changed there; that it is equal is seen from the greeting.
        #expect(try await exchange().datasets == 1)
        #expect(try await exchange() == exchange())
        #expect(try await exchange().messages == 1)
    }

    /// Of a hub that asks nobody: nothing has changed since but that the date has come.
    @Test func whatWasHeldAndIsDueCountsAsChanged() async throws {
        a.clock.putForward(bySeconds: 3_600)
        try a.dataset("dataset-0").put("future", for: "key")
        for _ in 0..<3 { _ = try await exchange() }
        #expect(try b.dataset("dataset-0").quarantined().count == 1)
        #expect(try await exchange().datasets == 0)
        b.clock.putForward(bySeconds: 3_600)
        _ = try await exchange()
        #expect(try b.dataset("dataset-0").quarantined().isEmpty)
        #expect(try b.dataset("dataset-0").text("key") == "future")
        #expect(try a.dataset("dataset-0").text("key") == "future")
    }

    /// Or each idle exchange with a hub would read all that it holds, of all datasets.
    @Test func whatIsHeldIsLookedThroughOnceAndWhenADateComes() async throws {
        a.clock.putForward(bySeconds: 3_600)
        for index in 0..<3 { try a.dataset("dataset-\(index)").put("future", for: "key") }
        let responder = b.responder
        let transport = InMemoryTransport(responder)
        for _ in 0..<3 { _ = try await a.store.synchronize(with: transport) }
        let count = b.store.heldLooks.count
        #expect(count > 0)
        for _ in 0..<3 { _ = try await a.store.synchronize(with: transport) }
        #expect(b.store.heldLooks.count == count)
        b.clock.putForward(bySeconds: 3_600)
        _ = try await a.store.synchronize(with: transport)
        #expect(b.store.heldLooks.count == count + 1)
        for index in 0..<3 {
            #expect(try b.dataset("dataset-\(index)").text("key") == "future")
        }
    }

    /// A server may make a responder for each request.
    @Test func whatIsHeldIsLookedThroughOnceForAllResponders() async throws {
        a.clock.putForward(bySeconds: 3_600)
        for index in 0..<3 { try a.dataset("dataset-\(index)").put("future", for: "key") }
        for _ in 0..<3 { _ = try await a.store.synchronize(with: b.transport) }
        let count = b.store.heldLooks.count
        #expect(count > 0)
        for _ in 0..<3 { _ = try await a.store.synchronize(with: b.transport) }
        #expect(b.store.heldLooks.count == count)
    }

    /// What cannot be let in concerns its dataset alone.
    @Test func whatIsHeldAndCannotBeLetInStopsNoOtherDataset() async throws {
        try put(3, a)
        for _ in 0..<3 { _ = try await exchange() }
        // No store takes a counter like that.
        let dot = Dot(replica: ReplicaID(high: 7, low: 7), counter: 1 << 57)
        let held = Record(
            key: [1], value: [2],
            version: Version(dot: dot, vector: VersionVector(), time: HybridTime(rawValue: 1)),
            syncCount: .zero, isDirty: false)
        var key = ByteWriter()
        key.append(SystemDataset.prefix(of: "dataset-1"))
        key.putFixed(dot.replica.high)
        key.putFixed(dot.replica.low)
        key.putFixed(dot.counter)
        let book = try b.store.systemDataset(.quarantine)
        try book.put(QuarantineBook.encoded(held), for: key.bytes)
        let damaged = try b.dataset("dataset-1")
        #expect(throws: StoreError.self) { try damaged.admitDue() }
        for isListed in [false, true] {
            let text = "news \(isListed)"
            try b.dataset("dataset-2").put(text, for: "key")
            if isListed { try damaged.put(text, for: "other") }
            let report = await a.store.synchronizeEach(with: b.transport)
            #expect(report["dataset-2"]?.isComplete ?? false)
            #expect(try a.dataset("dataset-2").text("key") == text)
        }
        // Who asks about nothing else hears of it.
        let (asker, transport) = (try a.dataset("dataset-1"), b.transport)
        await #expect(throws: SyncError.self) { try await asker.synchronize(with: transport) }
    }

    @Test func newAndDeletedDatasetsAreSeen() async throws {
        try put(5, a)
        _ = try await exchange()
        try b.dataset("new-there").put("1", for: "key")
        try a.dataset("new-here").put("2", for: "key")
        try a.store.deleteDataset("dataset-3")
        try b.store.deleteDataset("dataset-4")
        _ = try await exchange(SyncOptions(onDatasetDeleted: .discardLocal))
        let expected = ["dataset-0", "dataset-1", "dataset-2", "new-here", "new-there"]
        #expect(try a.store.datasetNames() == expected)
        #expect(try b.store.datasetNames() == expected)
    }

    @Test(arguments: [["asker"], ["responder"], ["asker", "responder"]])
    func afterARestartOnlyWhatChangedIsListed(_ sides: [String]) async throws {
        try put(30, a)
        _ = try await exchange()
        _ = try await exchange()
        func reopen() throws {
            if sides.contains("asker") { try a.reopen() }
            if sides.contains("responder") { try b.reopen() }
        }
        for _ in 0..<2 {
            try reopen()
            let cost = try await exchange()
            #expect(cost.messages == 1 && cost.datasets == 0 && cost.bytes <= 1_024, "\(cost)")
        }
        try a.dataset("dataset-3").put("before", for: "key")
        try b.dataset("dataset-4").put("before", for: "key")
        try reopen()
        try a.dataset("dataset-5").put("after", for: "key")
        try b.dataset("dataset-6").put("after", for: "key")
        #expect(try await exchange().datasets == 4)
        for number in 0..<30 { try expectEqual([a, b], dataset: "dataset-\(number)") }
        #expect(try b.dataset("dataset-3").text("key") == "before")
    }

    @Test(arguments: ["asker", "responder"])
    func afterACrashEverythingIsListedOnce(_ side: String) async throws {
        try put(30, a)
        _ = try await exchange()
        _ = try await exchange()
        let replica = side == "asker" ? a : b
        try replica.dataset("dataset-0").put("new", for: "key")
        let files = try Files.contents(replica.store.path)
        try replica.reopen {
            for name in try Files.list(replica.store.path) {
                try Files.remove("\(replica.store.path)/\(name)")
            }
            for (name, bytes) in files {
                try Files.write(bytes, to: "\(replica.store.path)/\(name)")
            }
        }
        #expect(try await exchange().datasets == 30)
        #expect(try await exchange().datasets <= 1)
        let cost = try await exchange()
        #expect(cost.messages == 1 && cost.datasets == 0)
    }

    /// What did not end well is tried again, also if nothing changes any more.
    @Test func anUnsettledDatasetIsLookedAtEachTime() async throws {
        try put(10, a)
        _ = try await exchange()
        try a.dataset("dataset-5").put("ours", for: "key")
        try b.dataset("dataset-5").put("theirs", for: "key")
        let stop = SyncOptions(policy: .custom { _ in .stop })
        for _ in 0..<3 {
            let error = await #expect(throws: SyncError.self) { try await exchange(stop) }
            #expect(error?.code == .conflictPending && error?.dataset == "dataset-5")
        }
        #expect(try await exchange(SyncOptions(policy: .keepLocal)).datasets == 1)
        #expect(try b.dataset("dataset-5").text("key") == "ours")
    }

    /// A write between the exchange of its dataset and the end of the run.
    @Test func aWriteDuringTheRunIsNotMissed() async throws {
        try put(10, a)
        _ = try await exchange()
        try a.dataset("dataset-2").put("new", for: "key")
        try a.dataset("dataset-9").put("new", for: "key")
        let early = try a.dataset("dataset-2")
        let other = try a.dataset("dataset-1")
        let responder = b.responder
        let transport = ScriptedTransport { request throws(SyncError) in
            // While the later dataset is pushed.
            if MessageLabel.kind(of: request) == "push",
                let frame = try? MessageFrame.decoded(request),
                case .push(let push)? = try? SyncMessage(frame),
                push.address.dataset == "dataset-9"
            {
                _ = try? early.put("newer", for: "key")
                _ = try? other.put("newer", for: "key")
            }
            return responder.respond(to: request)
        }
        try await a.store.synchronize(with: transport)
        #expect(try b.dataset("dataset-2").text("key") == "new")
        _ = try await exchange()
        #expect(try b.dataset("dataset-2").text("key") == "newer")
        #expect(try b.dataset("dataset-1").text("key") == "newer")
    }

    /// A broken exchange leaves the marks of the last whole one.
    @Test func aBrokenExchangeMissesNothing() async throws {
        try put(20, a)
        _ = try await exchange()
        for index in 0..<20 { try b.dataset("dataset-\(index)").put("new", for: "key") }
        for messages in 1...8 {
            let transport = FaultyTransport(b.responder, .losesAnswer, after: messages)
            await #expect(throws: SyncError.self) {
                try await a.store.synchronize(with: transport)
            }
        }
        _ = try await exchange()
        for index in 0..<20 {
            #expect(try a.dataset("dataset-\(index)").text("key") == "new")
        }
    }

    /// Three replicas that all meet one another at random, with many datasets: whatever a mark
    /// lets them leave out, they end equal.
    @Test func marksMissNothingAmongThree() async throws {
        print("marksMissNothingAmongThree: TIDEMARK_SEED=\(baseSeed)")
        var random = SeededGenerator(seed: baseSeed)
        let c = try TestReplica("c", in: a.directory)
        let all = [a, b, c]
        for _ in 0..<120 {
            let one = all[Int.random(in: 0..<3, using: &random)]
            let two = all[Int.random(in: 0..<3, using: &random)]
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let name = "dataset-\(Int.random(in: 0..<25, using: &random))"
                try one.dataset(name).put("\(random.next())", for: "key")
            }
            if Int.random(in: 0..<15, using: &random) == 0 { try two.reopen() }
            guard one.name != two.name else { continue }
            try await one.store.synchronize(with: two.transport)
        }
        for _ in 0..<2 {
            for (one, two) in [(a, b), (b, c), (c, a)] {
                try await one.store.synchronize(with: two.transport)
            }
        }
        let names = try a.store.datasetNames()
        for name in names { try expectEqual(all, dataset: name) }
        #expect(try all.allSatisfy { try $0.store.datasetNames() == names })
    }

    @Test func aMarkThatNobodyNamedIsRefused() async throws {
        let (store, id) = (a.store, b.store.replicaID)
        let transport = ScriptedTransport { _ throws(SyncError) in
            let answer = HelloAnswer(
                version: 1, replica: id, datasets: [], isComplete: true, mark: nil,
                changedSince: StoreMark(incarnation: 1, position: 2))
            return try SyncMessage.helloAnswer(answer).encoded()
        }
        let error = await #expect(throws: SyncError.self) {
            try await store.synchronize(with: transport)
        }
        #expect(error?.code == .badMessage)
    }
}

/// Counts messages and bytes of both directions.
private final class MessageCounter: SyncTransport {
    private let responder: SyncResponder
    private let total = Mutex((messages: 0, bytes: 0))

    init(_ responder: SyncResponder) {
        self.responder = responder
    }

    var messages: Int { total.withLock { $0.messages } }
    var bytes: Int { total.withLock { $0.bytes } }

    func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        let answer = responder.respond(to: request)
        total.withLock {
            $0.messages += 1
            $0.bytes += request.count + answer.count
        }
        return answer
    }
}
