import Logging
import Synchronization
import TestSupport
import Testing
import Tidemark
import TidemarkHTTP
import TidemarkSync

@testable import TidemarkHub

/// A served hub whose disk becomes full and has room again, met by a client of its own and by a
/// replica over real connections.
///
///     client   put, put, … refused | refused … | put
///     replica  push                | refused   | push
///     disk     room, then full     | full      | room
///     hub      ready               | notWriting| ready, in the same process
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes)))
struct FullDiskTests {
    private let storage = SimulatedStorage(seed: Seed(1))
    private let room = Room()

    /// What the hub finds when it looks how much is free, and the stores that it has opened since.
    private final class Room: Sendable {
        private struct State {
            var bytes = UInt64.max
            var opened: [Store] = []
        }

        private let state = Mutex(State())

        var bytes: UInt64 { state.withLock { $0.bytes } }
        var opened: [Store] { state.withLock { $0.opened } }

        func set(_ bytes: UInt64) {
            state.withLock { $0.bytes = bytes }
        }

        func note(_ store: Store) {
            state.withLock { $0.opened.append(store) }
        }
    }

    /// How often a put is tried until the disk is full at last.
    private static let putsMax = 1_000
    /// On the way to the disk, for calls of the hub before it is full.
    private static let passes = 40

    private static func open(_ storage: SimulatedStorage) throws(StoreError) -> Store {
        try Store.open(
            at: "/store", options: StoreOptions(durability: .disk, segmentBytes: 1 << 20),
            storage: storage)
    }

    private func withHub(
        _ store: Store, _ body: @escaping @Sendable (_ port: Int) async throws -> Void
    ) async throws {
        let (storage, room) = (storage, room)
        var settings = ServedClient.settings
        settings.port = 0
        let ready = settings
        // What it says of the store is no failure of the test.
        let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        try await withServedHub(
            logger: silent,
            { logger, onListening in
                Hub(
                    store: store, settings: ready,
                    reopen: { () throws(StoreError) in
                        let store = try Self.open(storage)
                        room.note(store)
                        return store
                    }, freeBytes: { _ in room.bytes }, logger: logger, onListening: onListening)
            }, { port, _ in try await body(port) })
    }

    private static func fill(_ storage: SimulatedStorage, after passes: Int = 0) {
        storage.faults = [
            StorageFault(
                .diskFull, of: [.write, .sync, .truncate, .syncMapping, .syncDirectory],
                after: passes, isLasting: true)
        ]
    }

    private static func readiness(_ port: Int) async throws -> ServedClient.Answer {
        try await ServedClient.exchange(port, "GET /ready HTTP/1.1\r\nHost: a\r\n\r\n")
    }

    /// The hub looks each second.
    private static func untilReadiness(_ port: Int, is status: Int) async throws -> String {
        let begin = ContinuousClock.now
        while ContinuousClock.now - begin < Patience.limit {
            let answer = try await readiness(port)
            if answer.status == status { return answer.body }
            try await Task.sleep(for: .milliseconds(5))
        }
        throw Mismatch("the hub's readiness never had status \(status)")
    }

    /// Puts one record after another until one is refused.
    ///
    /// - Returns: the keys of those that were acknowledged.
    private static func putUntilRefused(_ client: ServedClient) async throws -> [String] {
        var keys: [String] = []
        for number in 0..<putsMax {
            let key = "key \(number)"
            let answer = try await client.write("d", [(key, "value of \(key)")])
            guard answer.status == 200 else {
                expectRefused(answer)
                return keys
            }
            keys.append(key)
        }
        throw Mismatch("the disk was never full")
    }

    private static func expectRefused(
        _ answer: ServedClient.Answer, location: SourceLocation = #_sourceLocation
    ) {
        #expect(answer.status == 503, "\(answer.body)", sourceLocation: location)
        #expect(
            answer.error == "ServiceUnavailableException", "\(answer.body)",
            sourceLocation: location)
        #expect(answer.retryAfter == 30, sourceLocation: location)
    }

    /// What a client finds in the dataset.
    private static func values(_ client: ServedClient) async throws -> [String: String] {
        let listing = try await client.sync("GET", "/datasets/d/records")
        #expect(listing.status == 200, "\(listing.body)")
        var values: [String: String] = [:]
        for record in listing.json?["Records"]?.elements ?? [] {
            values[try #require(record["Key"]?.text)] = record["Value"]?.text
        }
        return values
    }

    /// One exchange, whose refusal is told at once.
    private static func exchange(_ store: Store, _ port: Int) async throws(SyncError) {
        let transport = HTTPTransport(
            url: "http://127.0.0.1:\(port)", token: testToken, timeout: Patience.limit,
            retryWaitMax: .zero)
        do throws(SyncError) {
            _ = try await store.synchronize(with: transport)
            await transport.shutdown()
        } catch {
            await transport.shutdown()
            throw error
        }
    }

    /// All that would write is refused with the same answer, and what reads is answered.
    private static func expectReadsAlone(
        _ client: ServedClient, _ keys: [String], _ port: Int
    ) async throws {
        expectRefused(try await client.write("d", [("late", "1")]))
        expectRefused(try await client.sync("DELETE", "/datasets/d"))
        expectRefused(
            try await ServedClient.identity(
                port, "GetId", #"{"IdentityPoolId": "\#(ServedClient.pool)"}"#))
        let values = try await values(client)
        for key in keys { #expect(values[key] == "value of \(key)") }
        for path in ["", "/datasets", "/datasets/d"] {
            let answer = try await client.sync("GET", path)
            #expect(answer.status == 200, "\(path): \(answer.body)")
        }
        let health = try await ServedClient.exchange(
            port, "GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(health.status == 200)
    }

    @Test("reads go on, writes are refused, and with room again both work and nothing is missing")
    func fullAndFree() async throws {
        let (storage, room) = (storage, room)
        // Of the same time as the hub, which would hold what is dated ahead.
        let replica = try Self.open(SimulatedStorage(seed: Seed(3)))
        try replica.dataset("native").put("before", for: "key")
        let store = try Self.open(storage)
        let acknowledged = Mutex<(identity: String, keys: [String])>(("", []))
        try await withHub(store) { port in
            let client = try await ServedClient(port)
            try await Self.exchange(replica, port)
            #expect(try await Self.readiness(port).status == 200)
            Self.fill(storage, after: Self.passes)
            room.set(0)
            let keys = try await Self.putUntilRefused(client)
            #expect(!keys.isEmpty)
            acknowledged.withLock { $0 = (client.identity, keys) }
            // Before the hub has noticed it, and after.
            try await Self.expectReadsAlone(client, keys, port)
            #expect(try await Self.untilReadiness(port, is: 503).contains("notWriting"))
            try await Self.expectReadsAlone(client, keys, port)
            try replica.dataset("native").put("after", for: "key")
            let refusal = await #expect(throws: SyncError.self) {
                try await Self.exchange(replica, port)
            }
            #expect(refusal?.code == .peerFailed && refusal?.retryAfter == .seconds(30))
            // Nothing is tried without room.
            #expect(room.opened.isEmpty)
            storage.faults = []
            room.set(DiskGuard.roomBytes)
            _ = try await Self.untilReadiness(port, is: 200)
            #expect(room.opened.count == 1)
            #expect(try await client.write("d", [("late", "2")]).status == 200)
            try await Self.exchange(replica, port)
            let values = try await Self.values(client)
            #expect(values["late"] == "2")
            for key in keys { #expect(values[key] == "value of \(key)") }
        }
        try expectKept(acknowledged.withLock { $0 })
        for store in room.opened { try store.close() }
    }

    /// After the hub, of which the disk has kept only what had become durable.
    private func expectKept(_ acknowledged: (identity: String, keys: [String])) throws {
        var random = SeededGenerator(Seed(2))
        let remains = storage.afterPowerLoss(.nothing, using: &random)
        let store = try Self.open(remains)
        let dataset = try #require(try store.existingDataset("\(acknowledged.identity):d"))
        for key in acknowledged.keys { #expect(try dataset.text(key) == "value of \(key)") }
        #expect(try dataset.text("late") == "2")
        let native = try #require(try store.existingDataset("native"))
        #expect(try native.text("key") == "after")
        try store.close()
    }
}
