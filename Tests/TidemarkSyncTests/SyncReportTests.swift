import Synchronization
import TestSupport
import Testing
import Tidemark

@testable import TidemarkSync

/// What becomes of each of several datasets, whatever becomes of the others; several at a time over
/// one connection.
struct SyncReportTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    @Test func eachDatasetHasAnOutcomeOfItsOwn() async throws {
        for name in ["conflicting", "deleted", "fine", "later"] {
            try a.dataset(name).put("base", for: "key")
        }
        try await a.store.synchronize(with: b.transport)
        try a.dataset("conflicting").put("ours", for: "key")
        try b.dataset("conflicting").put("theirs", for: "key")
        try b.store.deleteDataset("deleted")
        try a.dataset("fine").put("new", for: "key")
        try b.dataset("later").put("new", for: "key")
        let names = ["later", "fine", "no dataset", "deleted", "nowhere", "conflicting"]
        let report = await a.store.synchronizeEach(
            with: b.transport, datasets: names,
            options: SyncOptions(policy: .custom { _ in .stop }))
        #expect(report.datasets.map(\.dataset) == names.sorted())
        #expect(report.peer == b.store.replicaID)
        #expect(report.error == nil)
        #expect(!report.isComplete)
        #expect(report["conflicting"]?.error?.code == .conflictPending)
        #expect(report["conflicting"]?.result?.pulled == 0)
        #expect(report["deleted"]?.error?.code == .datasetDeleted)
        #expect(report["no dataset"]?.error?.storeError?.code == .invalidArgument)
        #expect(report["nowhere"]?.error?.storeError?.code == .datasetNotFound)
        #expect(report["fine"]?.result?.pushed == 1)
        #expect(report["later"]?.result?.pulled == 1)
        #expect(report["fine"]?.isComplete == true)
        #expect(report["later"]?.isComplete == true)
        #expect(report.firstError?.dataset == "conflicting")
        #expect(throws: SyncError.self) { try report.results() }
        try expectEqual([a, b], dataset: "fine")
        try expectEqual([a, b], dataset: "later")
    }

    /// What the peer cannot take of one dataset is no reason to stop with the others.
    @Test func aRefusalByThePeerConcernsItsDatasetAlone() async throws {
        for name in ["first", "second", "third"] {
            try a.dataset(name).put("1", for: "key")
        }
        let responder = b.responder
        let transport = ScriptedTransport { request throws(SyncError) in
            guard case .push(let push) = try SyncMessage(MessageFrame.decoded(request)),
                push.address.dataset == "second"
            else { return responder.respond(to: request) }
            return try SyncMessage.failure(
                Failure(code: "store", message: "a block of second is damaged")
            ).encoded()
        }
        let report = await a.store.synchronizeEach(with: transport)
        #expect(report.datasets.map { $0.error?.code } == [nil, .peerFailed, nil])
        #expect(report["second"]?.error?.message == "a block of second is damaged")
        #expect(try b.store.datasetNames() == ["first", "third"])
    }

    @Test(arguments: 0...6)
    func whatWasDoneBeforeTheConnectionBrokeIsKept(_ goodMessages: Int) async throws {
        let names = ["first", "second", "third"]
        for name in names {
            try a.dataset(name).put("ours", for: "here")
            try b.dataset(name).put("theirs", for: "there")
        }
        // Hello; then a pull and a push of each.
        let broken = FaultyTransport(b.responder, .losesRequest, after: goodMessages)
        let report = await a.store.synchronizeEach(
            with: broken, datasets: names, options: SyncOptions(parallelDatasetsMax: 1))
        #expect(report.error?.code == .unreachable)
        #expect(report.datasets.map(\.dataset) == names)
        let completeCount = max(0, goodMessages - 1) / 2
        for (index, outcome) in report.datasets.enumerated() {
            #expect(outcome.isComplete == (index < completeCount))
            #expect((outcome.error?.code == .unreachable) == (index >= completeCount))
            let hasPulled = goodMessages >= 2 + 2 * index
            #expect(outcome.result?.pulled ?? 0 == (hasPulled ? 1 : 0))
            // Of those that did not have their turn nothing was done.
            let wasBegun = goodMessages >= 1 + 2 * index
            #expect((outcome.result != nil) == wasBegun)
        }
        #expect(broken.messageCount == goodMessages + 1)
        try await a.store.synchronize(with: b.transport)
        for name in names { try expectEqual([a, b], dataset: name) }
    }

    @Test(arguments: [nil, ["x", "y", "z"]])
    func bytesOfGreetingsAreCounted(_ names: [String]?) async throws {
        for name in ["x", "y", "z"] {
            try a.dataset(name).put("ours", for: "here")
            try b.dataset(name).put("theirs", for: "there")
        }
        let bytes = Mutex((sent: 0, received: 0))
        let responder = b.responder
        let transport = ScriptedTransport { request throws(SyncError) in
            let answer = responder.respond(to: request)
            bytes.withLock { bytes in
                bytes.sent += request.count
                bytes.received += answer.count
            }
            return answer
        }
        for _ in 0..<2 {
            bytes.withLock { $0 = (0, 0) }
            let report = await a.store.synchronizeEach(with: transport, datasets: names)
            #expect(report.isComplete)
            #expect(report.bytesSent == bytes.withLock { $0.sent })
            #expect(report.bytesReceived == bytes.withLock { $0.received })
            #expect(report.bytesSent > 0)
        }
    }

    /// A peer must draw nothing out of us that it was not asked about, and its list must end.
    @Test(arguments: ["unasked", "unordered", "repeated"])
    func aListOfDatasetsThatIsNoAnswerIsRefused(_ way: String) async throws {
        try a.dataset("private").put("secret", for: "key")
        try a.dataset("public").put("1", for: "key")
        let responder = b.responder
        let transport = ScriptedTransport { request throws(SyncError) in
            let answer = responder.respond(to: request)
            guard case .helloAnswer(var hello) = try SyncMessage(MessageFrame.decoded(answer))
            else { return answer }
            func greeting(_ name: String) -> DatasetGreeting {
                DatasetGreeting(
                    name: name, knowledge: nil, pulledThrough: .zero, pushedThrough: .zero)
            }
            switch way {
            case "unasked": hello.datasets = [greeting("private"), greeting("public")]
            case "unordered": hello.datasets = [greeting("public"), greeting("private")]
            default:
                hello.datasets = [greeting("public")]
                hello.isComplete = false
            }
            return try SyncMessage.helloAnswer(hello).encoded()
        }
        let report = await a.store.synchronizeEach(
            with: transport, datasets: way == "unordered" ? nil : ["public"])
        #expect(report.error?.code == .badMessage)
        #expect(try b.store.existingDataset("private") == nil)
    }

    // MARK: - Several at a time

    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: [1, 3, 4])
    func soManyDatasetsRunAtATime(_ parallelMax: Int) async throws {
        let names = (0..<9).map { "dataset-\($0)" }
        for name in names {
            for number in 0..<10 {
                try a.dataset(name).put("ours", for: "here \(number)")
                try b.dataset(name).put("theirs", for: "there \(number)")
            }
        }
        // The first so many messages of datasets go on only when all of them are under way. Of
        // exchanges one after the other the second would never come.
        let gate = Gate(count: parallelMax)
        let transport = InterposedTransport(b.responder) { point in
            guard point.kind != "hello" else { return }
            if point.moment == .beforeRequest { await gate.enter() } else { gate.leave() }
        }
        let report = await a.store.synchronizeEach(
            with: transport,
            options: SyncOptions(pageRecordsMax: 3, parallelDatasetsMax: parallelMax))
        #expect(report.isComplete)
        #expect(report.datasets.map(\.dataset) == names)
        #expect(report.datasets.map(\.result?.pulled) == Array(repeating: 10, count: 9))
        #expect(report.datasets.map(\.result?.pushed) == Array(repeating: 10, count: 9))
        #expect(gate.insideMax == parallelMax)
        for name in names { try expectEqual([a, b], dataset: name) }
    }

    @Test func theNumberAtATimeIsBounded() {
        #expect(SyncOptions().parallelDatasetsMax == 4)
        #expect(SyncOptions(parallelDatasetsMax: 0).bounded.parallelDatasetsMax == 1)
        #expect(SyncOptions(parallelDatasetsMax: 100).bounded.parallelDatasetsMax == 64)
        #expect(SyncOptions(recordsPerRunMax: 0).bounded.recordsPerRunMax == 1)
    }

    @Test(.timeLimit(.minutes(Patience.minutes)), arguments: [1, 4])
    func cancellingEndsAllThatAreUnderWay(_ parallelMax: Int) async throws {
        let names = (0..<9).map { "dataset-\($0)" }
        for name in names { try a.dataset(name).put("ours", for: "here") }
        let (allHang, source) = AsyncStream.makeStream(of: Void.self)
        let transport = HangingTransport(b.responder, after: 1) { hangingCount in
            if hangingCount == parallelMax { source.yield() }
        }
        let store = a.store
        let task = Task {
            await store.synchronizeEach(
                with: transport, options: SyncOptions(parallelDatasetsMax: parallelMax))
        }
        for await _ in allHang { break }
        task.cancel()
        let report = await task.value
        #expect(report.error?.code == .cancelled)
        #expect(report.datasets.map(\.dataset) == names)
        #expect(report.datasets.allSatisfy { $0.error?.code == .cancelled })
        #expect(transport.messageCount == 1 + parallelMax)
        try await a.store.synchronize(with: b.transport)
        for name in names { try expectEqual([a, b], dataset: name) }
    }
}

/// Lets nobody in before so many stand before it, once; and counts who is inside.
private final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        var insideCount = 0
        var insideMax = 0
    }

    private let count: Int
    private let state = Mutex(State())

    init(count: Int) {
        self.count = count
    }

    var insideMax: Int { state.withLock { $0.insideMax } }

    func enter() async {
        await withCheckedContinuation { entry in
            let entries = state.withLock { state -> [CheckedContinuation<Void, Never>] in
                state.insideCount += 1
                state.insideMax = max(state.insideMax, state.insideCount)
                state.waiting.append(entry)
                guard state.isOpen || state.waiting.count == count else { return [] }
                state.isOpen = true
                defer { state.waiting = [] }
                return state.waiting
            }
            for entry in entries { entry.resume() }
        }
    }

    func leave() {
        state.withLock { $0.insideCount -= 1 }
    }
}
