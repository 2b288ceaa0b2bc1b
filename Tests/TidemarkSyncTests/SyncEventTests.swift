import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// What a synchronizer tells, to whom, and in which order.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct SyncEventTests {
    let a: TestReplica
    let b: TestReplica
    let time = VirtualEnvironment(passesBySleeping: true)

    init() throws { (a, b) = try TestReplica.two() }

    @Test func theStoryOfARun() async throws {
        try a.dataset().put("1", for: "ours")
        try b.dataset().put("2", for: "theirs")
        try a.dataset().put("early", for: "both")
        try b.dataset().put("late", for: "both")
        let options = SynchronizerOptions(exchange: SyncOptions(policy: .keepRemote))
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport, options: options, environment: time)
        let (events, others) = (synchronizer.events(), synchronizer.events())
        try await synchronizer.synchronize()
        let expected = [
            "started all", "settled notes both", "local notes both,theirs",
            "remote notes both,ours", "ended notes",
        ]
        #expect(await collect(events, completions: 1).map(\.label) == expected)
        #expect(await collect(others, completions: 1).map(\.label) == expected)
        // Who asks later hears what comes later; an idle run tells of nothing but itself.
        let later = synchronizer.events()
        try await synchronizer.synchronize(["notes"])
        #expect(
            await collect(later, completions: 1).map(\.label) == ["started notes", "ended notes"])
    }

    @Test func aConflictThatOursWinsChangesNothingHere() async throws {
        try a.dataset().put("ours", for: "both")
        try b.dataset().put("theirs", for: "both")
        let options = SynchronizerOptions(exchange: SyncOptions(policy: .keepLocal))
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport, options: options, environment: time)
        let events = synchronizer.events()
        try await synchronizer.synchronize()
        let labels = await collect(events, completions: 1).map(\.label)
        #expect(
            labels == ["started all", "settled notes both", "remote notes both", "ended notes"])
    }

    /// Every key whose value changed is told, and no other: compared with the contents before and
    /// after, over random changes and conflicts.
    @Test(arguments: 0..<4)
    func theKeysToldAreThoseThatChanged(_ run: UInt64) async throws {
        let seed = baseSeed &+ run
        print("theKeysToldAreThoseThatChanged: TIDEMARK_SEED=\(seed)")
        var random = SeededGenerator(seed: seed)
        let options = SynchronizerOptions(exchange: SyncOptions(pageRecordsMax: 3))
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport, options: options, environment: time)
        let events = synchronizer.events()
        func records(_ replica: TestReplica) throws -> [[UInt8]: Record] {
            let records = try replica.dataset().records(includingDeleted: true).collect()
            return Dictionary(uniqueKeysWithValues: records.map { ($0.key, $0) })
        }
        for _ in 0..<12 {
            for _ in 0..<Int.random(in: 0..<9, using: &random) {
                let replica = Bool.random(using: &random) ? a : b
                let key = "key \(Int.random(in: 0..<8, using: &random))"
                if Int.random(in: 0..<4, using: &random) == 0 {
                    try replica.dataset().delete(key)
                } else {
                    try replica.dataset().put("\(random.next())", for: key)
                }
            }
            _ = try a.dataset()
            let (ours, theirs) = (try records(a), try records(b))
            try await synchronizer.synchronize()
            let after = try records(a)
            var (local, remote) = (Set<[UInt8]>(), Set<[UInt8]>())
            for event in await collect(events, completions: 1) {
                if case .localChanged(_, let keys) = event { local.formUnion(keys) }
                if case .remoteChanged(_, let keys) = event { remote.formUnion(keys) }
            }
            // Two deletions of one key are two versions of no value: to tell of them is allowed.
            for (key, record) in after {
                let (here, there) = (ours[key], theirs[key])
                if here?.value != record.value || here == nil {
                    #expect(local.contains(key), "seed \(seed)")
                }
                if there?.value != record.value || there == nil {
                    #expect(remote.contains(key), "seed \(seed)")
                }
                if here?.version == there?.version {
                    #expect(!local.contains(key) && !remote.contains(key), "seed \(seed)")
                }
            }
            #expect(local.union(remote).isSubset(of: after.keys), "seed \(seed)")
        }
    }

    // MARK: - Exactly one completion

    struct Path: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let last: [String]
        let options: SynchronizerOptions
        let connectivity: Connectivity
        let failure: SyncError.Code?

        init(
            _ description: String, _ last: [String],
            _ options: SynchronizerOptions = SynchronizerOptions(),
            _ connectivity: Connectivity = .free, failure: SyncError.Code? = nil
        ) {
            testDescription = description
            self.last = last
            self.options = options
            self.connectivity = connectivity
            self.failure = failure
        }
    }

    private struct TestFailure: Error {}

    static var paths: [Path] {
        func options(_ exchange: SyncOptions) -> SynchronizerOptions {
            SynchronizerOptions(exchange: exchange)
        }
        var paths = [
            Path(
                "success", ["ended deleted,notes"],
                options(SyncOptions(onDatasetDeleted: .discardLocal))),
            Path("dataset deleted", ["ended deleted,notes"]),
            Path(
                "recreated", ["ended deleted,notes"],
                options(SyncOptions(onDatasetDeleted: .keepAndRecreate))),
            Path(
                "stopped", ["ended deleted,notes"],
                options(SyncOptions(policy: .custom { _ in .stop }))),
            Path(
                "thrown", ["ended deleted,notes"],
                options(SyncOptions(policy: .custom { _ in throw TestFailure() }))),
            Path("offline", ["failed offline"], SynchronizerOptions(), .offline),
            Path(
                "expensive", ["failed expensiveNetwork"],
                SynchronizerOptions(network: .freeOnly), .expensive),
            Path("expensive allowed", ["ended deleted,notes"], SynchronizerOptions(), .expensive),
            Path(
                "late", ["failed timedOut", "ended deleted,notes"],
                SynchronizerOptions(deadline: .seconds(1))),
            Path(
                "exchange late", ["failed timedOut", "ended deleted,notes"],
                options(SyncOptions(deadline: .zero))),
        ]
        for code in SynchronizerTests.codes {
            paths.append(Path("\(code)", ["failed \(code)"], failure: code))
        }
        return paths
    }

    /// Over every error at the first, second and third message, every end of a dataset, deadlines,
    /// networks and cancellation.
    @Test(arguments: paths)
    func everyPathEndsInExactlyOneCompletion(_ path: Path) async throws {
        for failing in 1...(path.failure == nil ? 1 : 4) {
            let (a, b) = try TestReplica.two()
            try a.dataset("deleted").put("1", for: "key")
            try await a.store.synchronize(with: b.transport)
            try b.store.deleteDataset("deleted")
            try a.dataset().put("ours", for: "both")
            try b.dataset().put("theirs", for: "both")
            let transport = CountingTransport(b.transport) { number in
                guard number >= failing else { return nil }
                return path.failure.map { SyncError($0, "of the test") }
            }
            let synchronizer = Synchronizer(
                store: a.store, transport: transport, options: path.options,
                connectivity: ConnectivitySwitch(path.connectivity), environment: time)
            let events = synchronizer.events()
            let report = try? await synchronizer.synchronizeEach()
            await synchronizer.shutdown()
            var seen: [SyncEvent] = []
            for await event in events { seen.append(event) }
            expectOneCompletionEach(seen)
            let completions = seen.filter(\.isCompletion).map(\.label)
            #expect(completions.count == 1)
            // An error of one dataset's own ends nothing but that dataset.
            let isEnded = completions.first == "ended deleted,notes"
            #expect(
                path.last.contains(completions[0]) || (path.failure != nil && isEnded),
                "\(completions)")
            #expect((report != nil) == isEnded)
        }
    }

    @Test func backgroundErrorsComeBeforeTheCompletion() async throws {
        let transport = CountingTransport(b.transport) { _ in SyncError(.unauthorized, "no") }
        let synchronizer = Synchronizer(
            store: a.store, transport: transport, environment: time)
        let events = synchronizer.events()
        await synchronizer.queue.runInBackground(nil)
        #expect(
            await collect(events, completions: 1).map(\.label)
                == ["started all", "background unauthorized", "failed unauthorized"])
    }

    // MARK: - Consumers

    @Test func whatDoesNotFitIsCounted() async {
        let hub = EventHub(countMax: 3)
        let events = SyncEvents(mailbox: hub.open())
        for number in 0..<11 { hub.send(.started(datasets: ["\(number)"])) }
        hub.close()
        hub.send(.started(datasets: nil))
        var labels: [String] = []
        for await event in events { labels.append(event.label) }
        #expect(labels == ["started 0", "started 1", "started 2", "lost 8"])
    }

    @Test func aConsumerThatCatchesUpGoesOnAfterTheGap() async {
        let hub = EventHub(countMax: 2)
        let mailbox = hub.open()
        var events = SyncEvents(mailbox: mailbox).makeAsyncIterator()
        for number in 0..<5 { hub.send(.started(datasets: ["\(number)"])) }
        #expect(await events.next()?.label == "started 0")
        #expect(await events.next()?.label == "started 1")
        // There is room again, after the mark of what was dropped.
        hub.send(.started(datasets: ["5"]))
        #expect(await events.next()?.label == "lost 3")
        #expect(await events.next()?.label == "started 5")
        hub.close()
        #expect(await events.next() == nil)
    }

    @Test func aConsumerThatIsCancelledGetsNil() async {
        let hub = EventHub(countMax: 2)
        let mailbox = hub.open()
        for _ in 0..<50 {
            let consumer = Task { await mailbox.next() == nil }
            if Bool.random() { await Task.yield() }
            consumer.cancel()
            #expect(await consumer.value)
        }
        hub.send(.started(datasets: nil))
        #expect(await mailbox.next()?.label == "started all")
    }

    @Test func aConsumerThatWentTakesNoMemory() {
        let hub = EventHub(countMax: 2)
        weak var mailbox: EventMailbox?
        do {
            let events = SyncEvents(mailbox: hub.open())
            mailbox = events.mailbox
            withExtendedLifetime(events) { #expect(mailbox != nil) }
        }
        #expect(mailbox == nil)
        hub.send(.started(datasets: nil))
    }

    actor Listener: SyncDelegate {
        private(set) var calls: [String] = []
        private var waiting: CheckedContinuation<Void, Never>?

        private func note(_ call: String) {
            calls.append(call)
            if call.hasPrefix("ended") || call.hasPrefix("failed") {
                waiting?.resume()
                waiting = nil
            }
        }

        func untilCompletion() async {
            guard calls.last?.hasPrefix("ended") != true else { return }
            await withCheckedContinuation { waiting = $0 }
        }

        func syncStarted(datasets: [String]?) { note("started") }
        func syncChangedLocal(_ keys: [[UInt8]], in dataset: String) { note("local \(dataset)") }
        func syncChangedRemote(_ keys: [[UInt8]], in dataset: String) { note("remote \(dataset)") }
        func syncSettled(_ conflicts: [SyncResult.Settlement], in dataset: String) {
            note("settled \(conflicts.count)")
        }
        func syncEnded(_ report: SyncReport) { note("ended \(report.datasets.count)") }
        func syncFailed(_ error: SyncError) { note("failed \(error.code)") }
    }

    @Test func anActorIsTheDelegate() async throws {
        try a.dataset().put("1", for: "ours")
        try b.dataset().put("2", for: "theirs")
        try a.dataset().put("3", for: "both")
        try b.dataset().put("4", for: "both")
        let listener = Listener()
        let synchronizer = Synchronizer(
            store: a.store, transport: b.transport, delegate: listener, environment: time)
        try await synchronizer.synchronize()
        await listener.untilCompletion()
        let calls = await listener.calls
        #expect(calls == ["started", "settled 1", "local notes", "remote notes", "ended 1"])
    }

    struct Careless: SyncDelegate {}

    @Test func aDelegateNeedsNoMethodAndKeepsNothingAlive() async throws {
        weak var gone: Synchronizer?
        do {
            let synchronizer = Synchronizer(
                store: a.store, transport: b.transport,
                schedule: SyncSchedule(interval: .seconds(60)), delegate: Careless(),
                environment: VirtualEnvironment())
            gone = synchronizer
            synchronizer.start()
            try await synchronizer.synchronize()
            await synchronizer.stop()
        }
        #expect(gone == nil)
    }
}
