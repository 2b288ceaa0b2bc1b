import Logging
import Synchronization
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

// Replicas of two identities, and one with the hub's token, at one hub:
//
//     phone  (ada)    notes ──▶ us-east-1:ada…:notes ◀── the Cognito API
//     laptop (grace)  notes ──▶ us-east-1:9ace…:notes
//     mirror (admin)  all but what begins with hub:
//
// No connection is involved: what the server hands over is handed over here.

/// Native replicas at a hub: who sees what, and what they may store.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct NativeResponderTests {
    private let directory: TemporaryDirectory
    private let store: Store
    private let threads: HubThreads
    private let ada: Principal
    private let grace: Principal
    private let adaNotes = "us-east-1:ada0:notes"
    private let graceNotes = "us-east-1:9ace:notes"

    init() throws {
        directory = try TemporaryDirectory()
        store = try directory.store("hub")
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        threads = HubThreads(
            stores: StoreHolder(store), readers: 1, writers: 2, callsMax: 64, logger: logger)
        threads.start()
        let pool = try #require(PoolID("us-east-1:00ff"))
        ada = .identity(
            try #require(IdentityID("us-east-1:ada0")), pool: pool, isAuthenticated: true)
        grace = .identity(
            try #require(IdentityID("us-east-1:9ace")), pool: pool, isAuthenticated: false)
    }

    private func transport(
        _ principal: Principal, _ limits: HubLimits = HubLimits(), replicatesHub: Bool = false,
        sink: any ChangeSink = NoHooks()
    ) -> NativeTransport {
        NativeTransport(
            responder: NativeResponder(
                threads: threads,
                namespaces: NativeNamespaces(limits, replicatesHub: replicatesHub, sink: sink)),
            principal: principal)
    }

    @Test("An identity exchanges its own datasets, under the names of the Cognito API")
    func identities() async throws {
        let (phone, laptop) = (try directory.store("phone"), try directory.store("laptop"))
        try store.dataset(adaNotes).put("from the API", for: "api")
        try phone.dataset("notes").put("from ada", for: "key")
        try laptop.dataset("notes").put("from grace", for: "key")
        for _ in 0..<2 {
            try await phone.synchronize(with: transport(ada))
            try await laptop.synchronize(with: transport(grace))
        }
        #expect(try store.datasetNames() == [graceNotes, adaNotes].sorted())
        #expect(try phone.dataset("notes").text("api") == "from the API")
        #expect(try laptop.dataset("notes").text("api") == nil)
        #expect(try store.dataset(adaNotes).text("key") == "from ada")
        #expect(try store.dataset(graceNotes).text("key") == "from grace")
        // What a device deletes, the API sees as deleted, and the other way round.
        try phone.dataset("notes").delete("api")
        try store.dataset(adaNotes).delete("key")
        try await phone.synchronize(with: transport(ada))
        #expect(try store.dataset(adaNotes).record(for: "api", includingDeleted: true) != nil)
        #expect(try store.dataset(adaNotes).count() == 0)
        #expect(try phone.dataset("notes").count() == 0)
        try await threads.shutdown()
    }

    @Test("Nobody reaches the hub's own datasets or those of another identity")
    func isolation() async throws {
        let phone = try directory.store("phone")
        try store.dataset("hub:identities").put("secret", for: "key")
        try store.dataset(graceNotes).put("secret", for: "key")
        try store.dataset("shared").put("1", for: "key")
        let names = [
            graceNotes, "hub:identities", "9ace:notes", ":", "..x", "us-east-1:9ace", "shared",
        ]
        for name in names { try phone.dataset(name).put("forged", for: "key") }
        let report = await phone.synchronizeEach(with: transport(ada))
        #expect(report.isComplete)
        #expect(try store.dataset("hub:identities").text("key") == "secret")
        #expect(try store.dataset(graceNotes).text("key") == "secret")
        #expect(try store.dataset("shared").text("key") == "1")
        #expect(try phone.dataset(graceNotes).text("key") == "forged")
        let made = Set(try store.datasetNames()).subtracting([
            graceNotes, "hub:identities", "shared",
        ])
        #expect(made == Set(names.map { "us-east-1:ada0:\($0)" }))
        // Names that a path cannot hold, or that are too long for the API, are refused.
        for name in ["..", ".", String(repeating: "n", count: 129)] {
            try phone.dataset(name).put("1", for: "key")
            let report = await phone.synchronizeEach(with: transport(ada), datasets: [name])
            #expect(report[name]?.error?.code == .badMessage)
        }
        try await threads.shutdown()
    }

    @Test("The hub's token leads to all datasets but the hub's own, or to these, too")
    func administrators() async throws {
        try store.dataset("hub:identities").put("secret", for: "key")
        try store.dataset(adaNotes).put("1", for: "key")
        try store.dataset("shared").put("2", for: "key")
        let mirror = try directory.store("mirror")
        try await mirror.synchronize(with: transport(.admin))
        #expect(try mirror.datasetNames() == ["shared", adaNotes])
        let twin = try directory.store("twin")
        try await twin.synchronize(with: transport(.admin, replicatesHub: true))
        #expect(try twin.datasetNames() == ["hub:identities", "shared", adaNotes])
        try await threads.shutdown()
    }

    @Test("Bearers of one space share its datasets, and reach nobody else's")
    func spaces() async throws {
        try store.dataset("hub:identities").put("secret", for: "key")
        try store.dataset(adaNotes).put("ada's", for: "key")
        try store.dataset("shared").put("the admin's", for: "key")
        let (one, two) = (try directory.store("one"), try directory.store("two"))
        let other = try directory.store("other")
        try one.dataset("notes").put("1", for: "key")
        try other.dataset("notes").put("2", for: "key")
        try await one.synchronize(with: transport(.replica(space: "team")))
        try await other.synchronize(with: transport(.replica(space: "team-2")))
        try await two.synchronize(with: transport(.replica(space: "team")))
        #expect(try two.datasetNames() == ["notes"])
        #expect(try two.dataset("notes").text("key") == "1")
        #expect(try other.datasetNames() == ["notes"])
        #expect(try other.dataset("notes").text("key") == "2")
        #expect(try store.dataset("space::team:notes").text("key") == "1")
        #expect(try store.dataset(adaNotes).text("key") == "ada's")
        try await threads.shutdown()
    }

    @Test("Access keys and strangers are no replicas")
    func refusals() async throws {
        let responder = transport(.admin).responder
        let logger = Logger(label: "test")
        let key = Principal.developer(keyID: "AKIDEXAMPLE", pools: nil)
        let cases: [(Principal, APIFailure.Kind)] = [
            (key, .notAuthorized), (.anonymous, .missingAuthenticationToken),
        ]
        for (principal, kind) in cases {
            let bound = #expect(throws: APIFailure.self) {
                try responder.requestBytesMax(for: principal)
            }
            #expect(bound?.kind == kind)
            let error = await #expect(throws: APIFailure.self) {
                try await responder.sync([], by: principal, logger)
            }
            #expect(error?.kind == kind)
            let watched = await #expect(throws: APIFailure.self) {
                try await responder.watch([], by: principal, logger)
            }
            #expect(watched?.kind == kind)
        }
        #expect(try responder.requestBytesMax(for: ada) == 8 << 20)
        #expect(try responder.requestBytesMax(for: .admin) == SyncLimits.messageBytesMax)
        #expect(NativeResponder.isMessage("Application/X-Tidemark-Sync; charset=x"))
        #expect(!NativeResponder.isMessage(nil) && !NativeResponder.isMessage("text/plain"))
        try await threads.shutdown()
    }

    @Test("An identity stores no more natively than through the API, and the rest is left out")
    func limits() async throws {
        var limits = HubLimits()
        limits.recordsPerDatasetMax = 4
        limits.datasetsPerIdentityMax = 2
        limits.recordKeyMax = 8
        limits.recordValueMax = 10
        let phone = try directory.store("phone")
        let notes = try phone.dataset("notes")
        try notes.put("1", for: String(repeating: "é", count: 8))
        try notes.put("1", for: String(repeating: "k", count: 9))
        try notes.put([UInt8](repeating: 255, count: 11), for: [255])
        try notes.put(String(repeating: "é", count: 10), for: "value")
        let refused = await phone.synchronizeEach(with: transport(ada, limits))
        #expect(refused["notes"]?.error?.code == .recordRefused)
        #expect(
            try Set(store.dataset(adaNotes).records().collect().compactMap(\.keyText))
                == [String(repeating: "é", count: 8), "value"])
        let failed = try notes.failedRecords()
        #expect(failed.map(\.code) == [.recordRefused, .recordRefused])
        for number in 0..<6 { try notes.put("\(number)", for: "\(number)") }
        _ = await phone.synchronizeEach(with: transport(ada, limits))
        #expect(try store.dataset(adaNotes).count() <= 4)
        var options = SyncOptions()
        options.parallelDatasetsMax = 1
        for name in ["a", "b"] { try phone.dataset(name).put("1", for: "key") }
        _ = await phone.synchronizeEach(with: transport(ada, limits), options: options)
        #expect(try store.datasetNames(prefix: "us-east-1:ada0:").count == 2)
        // The hub's token is bound by none of it.
        try await phone.synchronize(with: transport(.admin, limits), datasets: ["b"])
        #expect(try store.dataset("b").text("key") == "1")
        try await threads.shutdown()
    }

    @Test("A write through the API wakes a replica that watches, and no other")
    func watching() async throws {
        let phone = try directory.store("phone")
        let notes = try store.dataset(adaNotes)
        try notes.put("0", for: "key")
        let synchronizer = Synchronizer(store: phone, transport: transport(ada))
        try synchronizer.subscribe(["notes"])
        try await eventually("waiting") { store.sleeperCount == 1 }
        try store.dataset(graceNotes).put("1", for: "key")
        #expect(store.sleeperCount == 1)
        var batch = WriteBatch()
        batch.put("1", for: "key", in: notes)
        try store.write(batch, expecting: [(dataset: notes, count: try notes.syncCount)])
        try await eventually("told") {
            try phone.existingDataset("notes")?.text("key") == "1"
        }
        await synchronizer.shutdown()
        try await threads.shutdown()
    }

    @Test("Streams and push learn of what replicas change, and can stop it")
    func hooks() async throws {
        let phone = try directory.store("phone")
        try phone.dataset("notes").put("1", for: "key")
        let sink = RecordingSink()
        try await phone.synchronize(with: transport(ada, sink: sink))
        #expect(sink.lines.prefix(2) == ["+\(adaNotes)", "-\(adaNotes)"])
        // Nothing new, nothing told.
        let count = sink.lines.count
        try await phone.synchronize(with: transport(ada, sink: sink))
        #expect(sink.lines.count == count && count.isMultiple(of: 2))
        sink.failure = StoreError(.diskFull, "the test's disk is full")
        try phone.dataset("notes").put("2", for: "key")
        let error = await #expect(throws: SyncError.self) {
            try await phone.synchronize(with: transport(ada, sink: sink))
        }
        #expect(error?.code == .unreachable)
        #expect(try store.dataset(adaNotes).text("key") == "1")
        try await threads.shutdown()
    }

    @Test("What keeps the hub from answering anybody is told as such")
    func closedStore() async throws {
        let phone = try directory.store("phone")
        try phone.dataset("notes").put("1", for: "key")
        try store.close()
        let error = await #expect(throws: SyncError.self) {
            try await phone.synchronize(with: transport(ada))
        }
        #expect(error?.message == "\(APIFailure.Kind.serviceUnavailable)")
        try await threads.shutdown()
    }
}

/// What a server does with a message, without the server.
private struct NativeTransport: SyncTransport {
    let responder: NativeResponder
    let principal: Principal

    private var logger: Logger {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return logger
    }

    func send(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        do throws(APIFailure) {
            return try await responder.sync(request, by: principal, logger)
        } catch {
            throw SyncError(.unreachable, "\(error.kind)")
        }
    }

    func watch(_ request: [UInt8]) async throws(SyncError) -> [UInt8] {
        do throws(APIFailure) {
            return try await responder.watch(request, by: principal, logger)
        } catch {
            throw SyncError(.unreachable, "\(error.kind)")
        }
    }
}

/// Writes down what it is told.
private final class RecordingSink: ChangeSink {
    private let state = Mutex<(lines: [String], failure: StoreError?)>(([], nil))

    var lines: [String] { state.withLock { $0.lines } }

    var failure: StoreError? {
        get { state.withLock { $0.failure } }
        set { state.withLock { $0.failure = newValue } }
    }

    func append(
        to batch: inout WriteBatch, _ changes: [AppliedChange], count: UInt64,
        _ context: UpdateContext
    ) throws(StoreError) {}

    func committed(count: UInt64, _ context: UpdateContext) {}

    func willChange(_ storeNames: [String]) throws(StoreError) {
        let failure = state.withLock { state -> StoreError? in
            if state.failure == nil { state.lines += storeNames.map { "+\($0)" } }
            return state.failure
        }
        if let failure { throw failure }
    }

    func didChange(_ storeNames: [String]) {
        state.withLock { $0.lines += storeNames.map { "-\($0)" } }
    }
}
