import Synchronization
import Testing
import Tidemark

@testable import TidemarkSync

/// Whole stores, many datasets, large values, progress, and peers that do not behave.
struct StoreSynchronizationTests {
    let a: TestReplica
    let b: TestReplica

    init() throws { (a, b) = try TestReplica.two() }

    @Test func allDatasetsOfBothSides() async throws {
        try a.dataset("mine").put("1", for: "key")
        try b.dataset("yours").put("2", for: "key")
        try a.dataset("ours").put("3", for: "here")
        try b.dataset("ours").put("4", for: "there")
        let results = try await a.store.synchronize(with: b.transport)
        #expect(results.map(\.dataset) == ["mine", "ours", "yours"])
        #expect(results.map(\.pulled) == [0, 1, 1])
        #expect(results.map(\.pushed) == [1, 1, 0])
        #expect(results.allSatisfy { $0.remoteReplica == b.store.replicaID })
        for name in ["mine", "ours", "yours"] {
            try expectEqual([a, b], dataset: name)
        }
    }

    @Test func onlyTheNamedDatasets() async throws {
        for name in ["x", "y", "z"] {
            try a.dataset(name).put("1", for: "key")
        }
        let results = try await a.store.synchronize(with: b.transport, datasets: ["z", "x"])
        #expect(results.map(\.dataset) == ["x", "z"])
        #expect(try b.store.datasets().map(\.name) == ["x", "z"])
        let error = await #expect(throws: SyncError.self) {
            try await a.store.synchronize(with: b.transport, datasets: ["nowhere"])
        }
        #expect(error?.code == .store)
        #expect(error?.storeError?.code == .datasetNotFound)
    }

    /// More datasets than one greeting tells about.
    @Test func manyDatasets() async throws {
        var (here, there) = (WriteBatch(), WriteBatch())
        for number in 0..<2_300 {
            let (replica, name) = (number % 2 == 0 ? a : b, "dataset-\(number)")
            if number % 2 == 0 {
                here.put("\(number)", for: "key", in: try replica.dataset(name))
            } else {
                there.put("\(number)", for: "key", in: try replica.dataset(name))
            }
        }
        try a.store.write(here)
        try b.store.write(there)
        let results = try await a.store.synchronize(with: b.transport)
        #expect(results.count == 2_300)
        #expect(try a.store.datasets().map(\.name) == b.store.datasets().map(\.name))
        #expect(try a.dataset("dataset-2299").text("key") == "2299")
        #expect(try b.dataset("dataset-2298").text("key") == "2298")
        // The second time costs no message for each of them.
        let counting = FaultyTransport(b.responder)
        try await a.store.synchronize(with: counting)
        #expect(counting.messageCount <= 10)
    }

    @Test func oneUnsettledDatasetDoesNotHoldUpTheOthers() async throws {
        for name in ["first", "middle", "last"] {
            try a.dataset(name).put("base", for: "key")
        }
        try await a.store.synchronize(with: b.transport)
        try a.dataset("middle").put("ours", for: "key")
        try b.dataset("middle").put("theirs", for: "key")
        try a.dataset("first").put("new", for: "key")
        try a.dataset("last").put("new", for: "key")
        let error = await #expect(throws: SyncError.self) {
            try await a.store.synchronize(
                with: b.transport, options: SyncOptions(policy: .custom { _ in .stop }))
        }
        #expect(error?.code == .conflictPending)
        #expect(error?.dataset == "middle")
        #expect(try b.dataset("first").text("key") == "new")
        #expect(try b.dataset("last").text("key") == "new")
        #expect(try b.dataset("middle").text("key") == "theirs")
    }

    @Test func aPageCarriesARecordLargerThanItself() async throws {
        let large = [UInt8](
            (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) })
        for number in 0..<4 {
            try a.dataset().put(large, for: [UInt8(number)])
            try b.dataset().put(large, for: [UInt8(number + 100)])
        }
        let result = try await a.dataset().synchronize(
            with: b.transport, options: SyncOptions(pageBytesMax: 1_000))
        #expect(result.pagesReceived >= 4)
        #expect(result.pagesSent >= 4)
        try expectEqual([a, b])
    }

    @Test func progressGrowsAndEndsAtTheTotals() async throws {
        for number in 0..<30 {
            try a.dataset().put("ours", for: "here \(number)")
            try b.dataset().put("theirs", for: "there \(number)")
        }
        let reports = Mutex<[SyncProgress]>([])
        let result = try await a.dataset().synchronize(
            with: b.transport,
            options: SyncOptions(
                pageRecordsMax: 7, progress: { report in reports.withLock { $0.append(report) } }))
        let seen = reports.withLock { $0 }
        #expect(seen.map(\.recordsReceived) == seen.map(\.recordsReceived).sorted())
        #expect(seen.map(\.bytesSent) == seen.map(\.bytesSent).sorted())
        #expect(seen.last?.recordsReceived == 30)
        #expect(seen.last?.recordsSent == 30)
        #expect(seen.last?.bytesReceived == result.bytesReceived)
        #expect(seen.filter { $0.phase == .pulling }.count == result.pagesReceived)
        #expect(result.pulled == 30)
        #expect(result.pushed == 30)
        #expect(result.localSyncCount == (try a.dataset().syncCount))
        #expect(result.remoteSyncCount == (try b.dataset().syncCount))
    }

    struct Misbehaviour: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: SyncError.Code
        let answer: @Sendable ([UInt8]) -> [UInt8]
    }

    static func framed(_ message: SyncMessage, version: UInt16 = 1) -> [UInt8] {
        guard let bytes = try? message.encoded(), let frame = try? MessageFrame.decoded(bytes)
        else { return [] }
        let other = MessageFrame(version: version, kind: frame.kind, body: frame.body)
        return (try? other.encoded()) ?? []
    }

    static let misbehaviours = [
        Misbehaviour(testDescription: "nothing", code: .badMessage) { _ in [] },
        Misbehaviour(testDescription: "text", code: .badMessage) { _ in Array("hello".utf8) },
        Misbehaviour(testDescription: "the request itself", code: .badMessage) { $0 },
        Misbehaviour(testDescription: "another version", code: .protocolMismatch) { _ in
            framed(
                .helloAnswer(
                    HelloAnswer(
                        version: 9, replica: ReplicaID(high: 1, low: 1), datasets: [],
                        isComplete: true)), version: 9)
        },
        Misbehaviour(testDescription: "a version that was not offered", code: .protocolMismatch) {
            _ in
            framed(
                .helloAnswer(
                    HelloAnswer(
                        version: 7, replica: ReplicaID(high: 1, low: 1), datasets: [],
                        isComplete: true)))
        },
        Misbehaviour(testDescription: "a refusal in another version", code: .protocolMismatch) {
            _ in framed(.failure(Failure(code: "protocolMismatch", message: "no")), version: 9)
        },
        Misbehaviour(testDescription: "an unheard-of failure", code: .peerFailed) { _ in
            framed(.failure(Failure(code: "outOfTea", message: "no")))
        },
        Misbehaviour(testDescription: "an endless list", code: .badMessage) { _ in
            framed(
                .helloAnswer(
                    HelloAnswer(
                        version: 1, replica: ReplicaID(high: 1, low: 1), datasets: [],
                        isComplete: false)))
        },
    ]

    @Test(arguments: misbehaviours)
    func aPeerThatMisbehavesIsATypedError(_ misbehaviour: Misbehaviour) async throws {
        try a.dataset().put("ours", for: "key")
        let transport = ScriptedTransport { request throws(SyncError) in
            misbehaviour.answer(request)
        }
        let error = await #expect(throws: SyncError.self) {
            try await a.store.synchronize(with: transport)
        }
        #expect(error?.code == misbehaviour.code)
        try a.reopen()
        #expect(try a.dataset().text("key") == "ours")
    }

    /// A peer whose changes never move on must not keep us for ever.
    @Test func anEndlessPullIsRefused() async throws {
        try b.dataset().put("theirs", for: "key")
        let responder = b.responder
        let transport = ScriptedTransport { request throws(SyncError) in
            let answer = responder.respond(to: request)
            guard case .pullAnswer(var pulled) = try SyncMessage(MessageFrame.decoded(answer))
            else { return answer }
            pulled.page.isLast = false
            pulled.page.through = .zero
            return try SyncMessage.pullAnswer(pulled).encoded()
        }
        let error = await #expect(throws: SyncError.self) {
            try await a.dataset().synchronize(with: transport)
        }
        #expect(error?.code == .badMessage)
    }

    @Test func theResponderAnswersAnythingWithAMessage() throws {
        var random = SeededGenerator(seed: baseSeed)
        print("theResponderAnswersAnythingWithAMessage: seed \(baseSeed)")
        let responder = SyncResponder(
            store: a.store, limits: SyncResponder.Limits(requestBytesMax: 1_000))
        func code(_ request: [UInt8]) throws -> String? {
            let answer = try SyncMessage(MessageFrame.decoded(responder.respond(to: request)))
            guard case .failure(let failure) = answer else { return nil }
            return failure.code
        }
        #expect(try code([]) == "badMessage")
        #expect(try code([UInt8](repeating: 0, count: 1_001)) == "tooLarge")
        for kind in UInt8.min...UInt8.max where ![1, 2, 3].contains(kind) {
            let frame = MessageFrame(version: 1, kind: kind, body: [1, 2, 3])
            #expect(try code(frame.encoded()) == "badMessage")
        }
        let version = MessageFrame(version: 2, kind: 1, body: [])
        #expect(try code(version.encoded()) == "protocolMismatch")
        let range = SyncMessage.hello(
            HelloRequest(versions: 5...9, from: b.store.replicaID, names: nil, after: nil))
        #expect(try code(range.encoded()) == "protocolMismatch")
        for _ in 0..<2_000 {
            let body = (0..<Int.random(in: 0..<60, using: &random)).map { _ in
                UInt8.random(in: 0...9, using: &random)
            }
            let kind = UInt8.random(in: 1...3, using: &random)
            _ = try code(MessageFrame(version: 1, kind: kind, body: body).encoded())
        }
        #expect(try a.store.datasets().isEmpty)
    }

    @Test func aNameThatNoDatasetCanHaveIsTheAskersFault() throws {
        let request = SyncMessage.hello(
            HelloRequest(
                versions: 1...1, from: b.store.replicaID, names: ["no spaces"], after: nil))
        let answer = a.responder.respond(to: try request.encoded())
        guard case .failure(let failure) = try SyncMessage(MessageFrame.decoded(answer)) else {
            Issue.record("the responder accepted the name")
            return
        }
        #expect(failure.code == "badMessage")
    }
}
