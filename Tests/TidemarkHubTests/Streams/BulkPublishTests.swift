import Logging
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// The publication of all that a pool has.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct BulkPublishTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private static func fill(_ world: PoolWorld) async throws {
        try await world.update("notes", of: world.alice, ["a": "1", "b": "2"])
        try await world.update("notes", of: world.alice, ["b": nil])
        try await world.update("tasks", of: world.alice, ["t": "x"])
        try await world.update("notes", of: world.bob, ["c": "3"])
    }

    private static func status(_ world: PoolWorld) async throws -> String? {
        let path = "\(world.poolPath)/getBulkPublishDetails"
        return try await world.answer("POST", path)["BulkPublishStatus"]?.text
    }

    @Test("everything is told, and a second one is refused for a day")
    func all() async throws {
        let clock = VirtualEnvironment()
        let world = try PoolWorld(try directory.store("hub"), clock: clock)
        try await Self.fill(world)
        let path = "\(world.poolPath)/bulkpublish"
        #expect(try await Self.status(world) == "NOT_STARTED")
        #expect(try await world.refusal("POST", path) == .invalidParameter)
        try await world.turnOnStream()
        let answer = try await world.answer("POST", path, "{}")
        #expect(answer == ["IdentityPoolId": .string(world.pool.text)])
        #expect(try await world.refusal("POST", path) == .duplicateRequest)
        #expect(try await Self.status(world) == "IN_PROGRESS")
        try await world.whileDelivering {
            // Whoever waits for what is taken sleeps a little in between.
            let done = Task {
                while !Task.isCancelled {
                    await clock.untilAsleep()
                    clock.advance(by: .milliseconds(20))
                    await Task.yield()
                }
            }
            defer { done.cancel() }
            try await eventually("delivered") { world.target.deliveries.count == 3 }
            while try await Self.status(world) != "SUCCEEDED" { await Task.yield() }
        }
        let told = Set(
            world.target.deliveries.map { delivery in
                [delivery.document["identityId"]?.text, delivery.dataset]
            })
        let (alice, bob) = (world.alice.text, world.bob.text)
        #expect(told == [[alice, "notes"], [alice, "tasks"], [bob, "notes"]])
        let notes = world.target.deliveries.first {
            $0.document["identityId"]?.text == world.alice.text && $0.dataset == "notes"
        }
        #expect(Set(notes?.records ?? []) == [["a", "1"], ["b", nil]])
        #expect(try await world.refusal("POST", path) == .alreadyStreamed)
        clock.advance(by: .seconds(86_400))
        #expect(try await world.refusal("POST", path) == nil)
        try await world.end()
    }

    @Test("one that was under way goes on after a restart")
    func restart() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await Self.fill(world)
        try await world.turnOnStream()
        _ = try await world.answer("POST", "\(world.poolPath)/bulkpublish")
        try await world.end()
        let clock = VirtualEnvironment(passesBySleeping: true)
        let again = try PoolWorld(try directory.store("hub"), clock: clock)
        let state = try await again.parts.operations.bulk.state(of: again.pool)
        #expect(state.status == .inProgress)
        let runner = Task { await again.parts.operations.bulk.run() }
        let source = StreamSource(
            pool: again.pool, book: again.parts.book, threads: again.threads,
            pushes: OpenPushes(), meter: OutboxMeter(), clock: clock)
        while try await Self.status(again) != "SUCCEEDED" {
            for lane in try await source.lanes(limit: 10) {
                _ = try await source.deliverNext(in: lane)
            }
        }
        runner.cancel()
        await runner.value
        #expect(Set(again.target.deliveries.map(\.name)).count == 3)
        try await again.end()
    }

    @Test("one whose stream is turned off fails, and says why")
    func turnedOff() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnStream()
        _ = try await world.answer("POST", "\(world.poolPath)/bulkpublish")
        try await world.configure(
            #"{"CognitoStreams": {"StreamName": "notes", "StreamingStatus": "DISABLED"}}"#)
        try await world.whileDelivering {
            while try await Self.status(world) != "FAILED" { await Task.yield() }
        }
        let details = try await world.answer("POST", "\(world.poolPath)/getBulkPublishDetails")
        #expect(details["FailureMessage"]?.text?.isEmpty == false)
        #expect(details["BulkPublishStartTime"] != nil)
        #expect(details["BulkPublishCompleteTime"] != nil)
        try await world.end()
    }

    @Test("one whose stream is turned off while its receiver is dead fails, too")
    func turnedOffWaiting() async throws {
        let clock = VirtualEnvironment(passesBySleeping: true)
        let world = try PoolWorld(try directory.store("hub"), clock: clock)
        try await Self.fill(world)
        try await world.turnOnStream()
        let bulk = world.parts.operations.bulk
        _ = try await world.answer("POST", "\(world.poolPath)/bulkpublish")
        // Nobody takes anything.
        let runner = Task { await bulk.run() }
        try await eventually("noted") {
            try world.recordCount(of: Outbox.datasetName) > 0
        }
        #expect(try await Self.status(world) == "IN_PROGRESS")
        try await world.configure(
            #"{"CognitoStreams": {"StreamName": "notes", "StreamingStatus": "DISABLED"}}"#)
        while try await Self.status(world) != "FAILED" { await Task.yield() }
        runner.cancel()
        await runner.value
        try await world.end()
    }

    @Test("a pool whose receiver is dead holds up no other's publication")
    func pools() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        let dead = world.pool
        let living = try #require(PoolID("us-east-1:f"))
        var behavior = PoolBehavior()
        behavior.stream = world.target
        let book = try PoolBook(world.store, behaviors: [dead: behavior, living: behavior])
        for (pool, identity) in [(dead, world.alice), (living, world.bob)] {
            _ = try book.update(pool, in: world.store) { record in
                record.stream = PoolRecord.Stream(name: "s", roleARN: nil, isEnabled: true)
            }
            try world.store.dataset("\(identity):notes").put("1", for: "a")
        }
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let clock = VirtualEnvironment(passesBySleeping: true)
        let bulk = BulkPublisher(
            book: book, threads: world.threads,
            directory: KnownIdentities(pools: [world.alice: dead, world.bob: living]),
            meter: OutboxMeter(), clock: clock, logger: logger, wake: { _, _ in })
        for pool in [dead, living] { try await bulk.begin(pool) }
        let runner = Task { await bulk.run() }
        let source = StreamSource(
            pool: living, book: book, threads: world.threads, pushes: OpenPushes(),
            meter: OutboxMeter(), clock: VirtualEnvironment())
        while try await bulk.state(of: living).status != .succeeded {
            for lane in try await source.lanes(limit: 10) {
                _ = try await source.deliverNext(in: lane)
            }
        }
        #expect(try await bulk.state(of: dead).status == .inProgress)
        runner.cancel()
        await runner.value
        #expect(world.target.deliveries.map(\.records) == [[["a", "1"]]])
        try await world.end()
    }

    @Test("its state is read again")
    func coding() throws {
        var state = BulkPublishState()
        #expect(BulkPublishState(encoded: state.encoded) == state)
        state.status = .failed
        state.started = 1_700_000_000_123
        state.completed = 1_700_000_000_456
        state.failure = "\"why\""
        state.lastIdentity = IdentityID("us-east-1:a")
        #expect(BulkPublishState(encoded: state.encoded) == state)
        #expect(BulkPublishState(encoded: [1, 2]) == nil)
        #expect(BulkPublishState(encoded: Array(#"{"status":"DONE"}"#.utf8)) == nil)
    }
}
