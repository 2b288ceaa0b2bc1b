import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// Runs of a synchronizer: attempts, errors, joining, cancellation, deadline.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct SynchronizerTests {
    let a: TestReplica
    let b: TestReplica
    let time = VirtualEnvironment(passesBySleeping: true)

    init() throws { (a, b) = try TestReplica.two() }

    private func synchronizer(
        _ transport: any SyncTransport, _ options: SynchronizerOptions = SynchronizerOptions()
    ) -> Synchronizer {
        Synchronizer(store: a.store, transport: transport, options: options, environment: time)
    }

    @Test func aRunExchangesAllAndReportsEachDataset() async throws {
        try a.dataset("mine").put("1", for: "key")
        try b.dataset("yours").put("2", for: "key")
        let synchronizer = synchronizer(b.transport)
        #expect(synchronizer.peer == nil)
        let report = try await synchronizer.synchronize()
        #expect(report.datasets.map(\.dataset) == ["mine", "yours"])
        #expect(report.isComplete)
        #expect(synchronizer.peer == b.store.replicaID)
        #expect(synchronizer.lastSuccess == time.now())
        #expect(synchronizer.lastError == nil)
        try expectEqual([a, b], dataset: "mine")
        try expectEqual([a, b], dataset: "yours")
        let named = try await synchronizer.synchronize(["yours"])
        #expect(named.datasets.map(\.dataset) == ["yours"])
        #expect(try await synchronizer.synchronize([]).datasets.isEmpty)
    }

    @Test func waitsGrowToTheirBoundAndAttemptsEnd() async throws {
        let transport = CountingTransport(b.transport) { _ in SyncError(.unreachable, "no route") }
        let backOff = BackOff(
            first: .milliseconds(100), factor: 3, longest: .milliseconds(700), jitter: 0)
        let synchronizer = synchronizer(
            transport, SynchronizerOptions(attemptsMax: 5, backOff: backOff))
        let error = await #expect(throws: SyncError.self) { try await synchronizer.synchronize() }
        #expect(error?.code == .unreachable)
        // The reason is still there, and how often it was met.
        #expect(error?.message.contains("no route") == true)
        #expect(error?.message.contains("5 attempts") == true)
        #expect(transport.count == 5)
        #expect(time.slept == [100, 300, 700, 700].map { Duration.milliseconds($0) })
        #expect(synchronizer.lastError == error)
        #expect(synchronizer.lastSuccess == nil)
    }

    @Test func aBusyPeerIsLeftAloneForAsLongAsItAsks() async throws {
        for (longest, expected) in [(60, [5, 5, 8]), (3, [3, 3, 3])] {
            let transport = CountingTransport(b.transport) { _ in
                SyncError(.peerFailed, "busy", retryAfter: .seconds(5))
            }
            let time = VirtualEnvironment(passesBySleeping: true)
            let synchronizer = Synchronizer(
                store: a.store, transport: transport,
                options: SynchronizerOptions(
                    attemptsMax: 4,
                    backOff: BackOff(
                        first: .seconds(2), longest: .seconds(longest), jitter: 0)),
                environment: time)
            let error = await #expect(throws: SyncError.self) {
                try await synchronizer.synchronize()
            }
            #expect(error?.retryAfter == .seconds(5))
            #expect(time.slept == expected.map { Duration.seconds($0) })
        }
    }

    @Test func aPeerThatComesBackIsFoundAgain() async throws {
        try a.dataset().put("1", for: "key")
        let transport = CountingTransport(b.transport) { number in
            number <= 3 ? SyncError(.unreachable, "not yet") : nil
        }
        let report = try await synchronizer(transport).synchronize()
        #expect(report.isComplete)
        #expect(time.slept.count == 3)
        try expectEqual([a, b])
    }

    static let codes: [SyncError.Code] = [
        .unreachable, .unauthorized, .protocolMismatch, .badMessage, .tooLarge, .conflictPending,
        .datasetDeleted, .contended, .sameReplica, .peerChanged, .peerFailed, .store, .timedOut,
        .offline, .expensiveNetwork, .cancelled, .damagedBundle, .wrongBundle, .partialReplica,
        .recordRefused,
    ]

    /// A permanent refusal stops at once with its reason; what may pass is tried again.
    @Test(arguments: codes)
    func onlyWhatMayPassIsTriedAgain(_ code: SyncError.Code) async throws {
        try a.dataset().put("1", for: "key")
        let transport = CountingTransport(b.transport) { _ in SyncError(code, "reason of the test")
        }
        let synchronizer = synchronizer(transport)
        let error = await #expect(throws: SyncError.self) { try await synchronizer.synchronize() }
        #expect(error?.code == code)
        #expect(error?.message.contains("reason of the test") == true)
        let isTransient = [.unreachable, .contended, .peerChanged, .peerFailed].contains(code)
        #expect(SyncError(code, "").isTransient == isTransient)
        #expect(transport.count == (isTransient ? 5 : 1))
    }

    @Test func onlyTheDatasetsThatFailedAreTriedAgain() async throws {
        for name in ["bad", "good"] { _ = try a.dataset(name) }
        try await a.store.synchronize(with: b.transport)
        try a.dataset("bad").put("1", for: "key")
        try a.dataset("good").put("2", for: "key")
        let failures = Mutex(2)
        let responder = b.responder
        let transport = ScriptedTransport { request throws(SyncError) in
            let message = try SyncMessage(MessageFrame.decoded(request))
            if case .push(let push) = message, push.address.dataset == "bad" {
                let isDue = failures.withLock { left in
                    left -= 1
                    return left >= 0
                }
                if isDue { throw SyncError(.peerFailed, "the test's disk is slow") }
            }
            return responder.respond(to: request)
        }
        let counting = CountingTransport(transport)
        let report = try await synchronizer(counting).synchronize()
        #expect(report.isComplete)
        #expect(report.datasets.map(\.dataset) == ["bad", "good"])
        #expect(report["bad"]?.result?.pushed == 1)
        #expect(report["good"]?.result?.pushed == 1)
        let greeted = try counting.messages().compactMap { message -> [String]?? in
            guard case .hello(let hello) = message else { return nil }
            return .some(hello.names)
        }
        #expect(greeted == [nil, ["bad"], ["bad"]])
        try expectEqual([a, b], dataset: "bad")
    }

    /// Nobody takes a dataset that was not exchanged for one that was, for want of looking.
    @Test func aDatasetsOwnErrorIsThrownOnceTheOthersAreExchanged() async throws {
        try a.dataset("first").put("ours", for: "key")
        try b.dataset("first").put("theirs", for: "key")
        let options = SynchronizerOptions(exchange: SyncOptions(policy: .leavePending))
        let synchronizer = synchronizer(b.transport, options)
        let calls: [@Sendable () async throws -> SyncReport] = [
            { try await synchronizer.synchronize() },
            { try await synchronizer.synchronize(["first", "second"]) },
            { try await synchronizer.synchronizeFully() },
            { try await synchronizer.synchronizeWhenConnected() },
        ]
        for (number, call) in calls.enumerated() {
            try a.dataset("second").put("\(number)", for: "key")
            let error = await #expect(throws: SyncError.self) { try await call() }
            #expect(error?.code == .conflictPending)
            #expect(synchronizer.lastReport?["first"]?.error == error)
            #expect(synchronizer.lastReport?["second"]?.isComplete == true)
            try expectEqual([a, b], dataset: "second")
        }
        let error = await #expect(throws: SyncError.self) {
            try await synchronizer.synchronize(dryRun: true)
        }
        #expect(error?.code == .conflictPending)
        #expect(try await synchronizer.synchronize(["second"]).isComplete)
    }

    @Test func aDatasetsOwnErrorIsInTheReport() async throws {
        try a.dataset("first").put("ours", for: "key")
        try b.dataset("first").put("theirs", for: "key")
        try a.dataset("second").put("ours", for: "key")
        let options = SynchronizerOptions(
            exchange: SyncOptions(policy: .custom { _ in .stop }))
        let synchronizer = synchronizer(b.transport, options)
        let report = try await synchronizer.synchronizeEach()
        #expect(report["first"]?.error?.code == .conflictPending)
        #expect(report["second"]?.isComplete == true)
        #expect(!report.isComplete)
        #expect(time.slept.isEmpty)
        #expect(synchronizer.lastError?.code == .conflictPending)
        try expectEqual([a, b], dataset: "second")
    }

    @Test func jitterTakesAwayAtMostItsShare() {
        let backOff = BackOff(first: .seconds(8), factor: 2, longest: .seconds(20), jitter: 0.5)
        #expect(backOff.delay(after: 1, random: 0) == .seconds(8))
        #expect(backOff.delay(after: 2, random: 0) == .seconds(16))
        #expect(backOff.delay(after: 3, random: 0) == .seconds(20))
        #expect(backOff.delay(after: .max, random: 0) == .seconds(20))
        #expect(backOff.delay(after: 1, random: 1 << 63) == .seconds(6))
        #expect(backOff.delay(after: 1, random: .max) >= .seconds(4))
        let hostile = BackOff(
            first: .seconds(-1), factor: .nan, longest: .seconds(-5), jitter: .infinity)
        #expect(hostile.delay(after: 5, random: .max) == .zero)
        var random = SeededGenerator(seed: baseSeed)
        print("jitterTakesAwayAtMostItsShare: TIDEMARK_SEED=\(baseSeed)")
        for _ in 0..<1_000 {
            let failures = Int.random(in: 1...40, using: &random)
            let delay = backOff.delay(after: failures, random: random.next())
            let whole = backOff.delay(after: failures, random: 0)
            #expect(delay <= whole && delay >= whole / 2)
        }
    }

    // MARK: - Deadline and cancellation

    @Test func aRunThatIsLateIsCancelled() async throws {
        try a.dataset().put("1", for: "key")
        let time = VirtualEnvironment()
        let gate = GatedTransport(b.transport)
        let synchronizer = Synchronizer(
            store: a.store, transport: gate,
            options: SynchronizerOptions(deadline: .seconds(30)), environment: time)
        let events = synchronizer.events()
        let call = Task { try await synchronizer.synchronize() }
        await gate.untilArrived(1)
        await time.untilAsleep()
        time.advance(by: .seconds(29))
        #expect(synchronizer.isRunning)
        time.advance(by: .seconds(1))
        let error = await #expect(throws: SyncError.self) { try await call.value }
        #expect(error?.code == .timedOut)
        #expect(error?.message.contains("30") == true)
        #expect(
            await collect(events, completions: 1).map(\.label) == [
                "started all", "failed timedOut",
            ])
        gate.open()
        try await synchronizer.synchronize()
        try expectEqual([a, b])
    }

    @Test func theDeadlineCountsWaitsBetweenAttempts() async throws {
        let time = VirtualEnvironment()
        let transport = CountingTransport(b.transport) { _ in SyncError(.unreachable, "no route") }
        let synchronizer = Synchronizer(
            store: a.store, transport: transport,
            options: SynchronizerOptions(
                backOff: BackOff(first: .seconds(60), jitter: 0), deadline: .seconds(30)),
            environment: time)
        let call = Task { try await synchronizer.synchronize() }
        await time.untilAsleep(2)
        time.advance(by: .seconds(30))
        let error = await #expect(throws: SyncError.self) { try await call.value }
        #expect(error?.code == .timedOut)
        #expect(transport.count == 1)
    }

    /// Cancelled while any message is on its way: nothing is damaged, and the next run ends equal.
    @Test func cancellationAtAnyMessageDoesNoDamage() async throws {
        var messages = 0
        for number in 1...40 {
            let directory = TemporaryDirectory()
            let (a, b) = (
                try TestReplica("a", in: directory), try TestReplica("b", in: directory)
            )
            for index in 0..<6 {
                try a.dataset().put("ours \(index)", for: "a\(index)")
                try b.dataset().put("theirs \(index)", for: "b\(index)")
                try a.dataset().put("ours", for: "both\(index)")
                try b.dataset().put("theirs", for: "both\(index)")
            }
            let options = SynchronizerOptions(exchange: SyncOptions(pageRecordsMax: 2))
            let call = Mutex<Task<Void, Never>?>(nil)
            let transport = CountingTransport(b.transport) { sent in
                if sent == number { call.withLock { $0?.cancel() } }
                return nil
            }
            let gate = GatedTransport(transport)
            let synchronizer = Synchronizer(
                store: a.store, transport: gate, options: options, environment: time)
            let events = synchronizer.events()
            let task = Task { _ = try? await synchronizer.synchronize() }
            call.withLock { $0 = task }
            gate.open()
            await task.value
            messages = transport.count
            _ = try await synchronizer.synchronize()
            let seen = await collect(events, completions: 2)
            expectOneCompletionEach(seen, "cancelled at message \(number)")
            try expectEqual([a, b], "cancelled at message \(number)")
            // The run came to its end before it could be cancelled: so do all the later ones.
            if messages < number { break }
        }
        #expect(messages > 8, "the exchange was too short to prove anything")
    }
}
