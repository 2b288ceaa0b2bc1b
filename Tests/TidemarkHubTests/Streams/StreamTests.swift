import Synchronization
import TestSupport
import Testing
import Tidemark
import TidemarkSync

@testable import TidemarkHub

/// From an update to the stream's receiver.
@Suite(.timeLimit(.minutes(Patience.minutes)))
struct StreamTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test("an update is one document with the members of a Kinesis record")
    func document() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnStream()
        try await world.update("notes", of: world.alice, ["a": "1", "b": nil])
        try await world.whileDelivering {
            try await eventually("delivered and forgotten") {
                try world.recordCount(of: Outbox.datasetName) == 0
            }
        }
        let now = Int(world.clock.now())
        let expected: JSONValue = [
            "identityPoolId": .string(world.pool.text), "identityId": .string(world.alice.text),
            "dataSetName": "notes", "operation": "replace",
            "kinesisSyncRecords": [
                [
                    "key": "a", "value": "1", "syncCount": 1,
                    "lastModifiedDate": .number(JSONNumber(now)), "deviceLastModifiedDate": 7,
                    "op": "replace",
                ],
                [
                    "key": "b", "value": .null, "syncCount": 1,
                    "lastModifiedDate": .number(JSONNumber(now)), "deviceLastModifiedDate": 7,
                    "op": "remove",
                ],
            ],
            "lastModifiedDate": .number(JSONNumber(now)), "kinesisSyncRecordsURL": .null,
            "payloadType": "Inline", "syncCount": 1,
        ]
        #expect(world.target.deliveries.map(\.document) == [expected])
        try await world.end()
    }

    @Test("a pool whose stream is off has nothing wait for it")
    func off() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.update("notes", of: world.alice, ["a": "1"])
        #expect(try world.store.existingDataset(Outbox.datasetName) == nil)
        try await world.end()
    }

    @Test("updates of a dataset come in their order, also while the receiver fails")
    func order() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnStream()
        try await world.update("notes", of: world.alice, ["a": "0"])
        world.target.fail(5)
        let source = StreamSource(
            pool: world.pool, book: world.parts.book, threads: world.threads,
            pushes: OpenPushes(), meter: OutboxMeter(), clock: world.clock)
        for number in 1..<20 {
            try await world.update("notes", of: world.alice, ["a": "\(number)"])
        }
        let lane = "\(world.alice):notes"
        #expect(try await source.lanes(limit: 10) == [lane])
        var failures = 0
        while true {
            do {
                guard try await source.deliverNext(in: lane) else { break }
            } catch is RecordingTarget.Refused {
                failures += 1
            }
        }
        #expect(failures == 5)
        let values = world.target.deliveries.flatMap(\.records).compactMap { $0[1] }
        #expect(values == (0..<20).map { "\($0)" })
        #expect(world.target.deliveries.compactMap(\.count) == Array(1...20))
        #expect(Set(world.target.deliveries.map(\.name)).count == 20)
        try await world.end()
    }

    @Test("what was not delivered is delivered after a restart")
    func restart() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnStream()
        try await world.update("notes", of: world.alice, ["a": "1"])
        try await world.update("notes", of: world.alice, ["a": "2"])
        try await world.update("tasks", of: world.bob, ["t": "x"])
        try await world.end()
        let again = try PoolWorld(try directory.store("hub"))
        try await again.whileDelivering {
            try await eventually("delivered") { again.target.deliveries.count == 3 }
        }
        let notes = again.target.deliveries.filter { $0.dataset == "notes" }
        #expect(notes.map(\.records) == [[["a", "1"]], [["a", "2"]]])
        try await again.end()
    }

    @Test("a stream for which too much waits is turned off, and the configuration says so")
    func overflow() async throws {
        let world = try PoolWorld(try directory.store("hub")) { $0.streamBytesMax = 4_000 }
        try await world.turnOnStream()
        let value = String(repeating: "x", count: 1_000)
        for number in 0..<6 {
            try await world.update("notes", of: world.alice, ["a": "\(number)\(value)"])
        }
        let waiting = try world.recordCount(of: Outbox.datasetName)
        #expect((1...3).contains(waiting))
        #expect(try Outbox.size(of: world.pool, in: world.store) <= 4_000)
        try await world.whileDelivering {
            try await eventually("turned off") {
                world.parts.book.record(of: world.pool)?.isStreaming == false
            }
            // What was taken in is delivered all the same.
            try await eventually("delivered") { world.target.deliveries.count == waiting }
            // Each leaves the outbox after it was delivered.
            try await eventually("removed") {
                (try? world.recordCount(of: Outbox.datasetName)) == 0
            }
        }
        let answer = try await world.answer("GET", "\(world.poolPath)/configuration")
        #expect(answer["CognitoStreams"]?["StreamingStatus"] == "DISABLED")
        try await world.turnOnStream()
        try await world.update("notes", of: world.alice, ["a": "again"])
        #expect(try world.recordCount(of: Outbox.datasetName) == 1)
        try await world.end()
    }

    /// Notes how often the store had been synced when a document came.
    final class SyncProbe: StreamTarget {
        private let store: Store
        private let noted = Mutex<[Int]>([])

        init(_ store: Store) {
            self.store = store
        }

        var counts: [Int] { noted.withLock { $0 } }

        func deliver(_ document: [UInt8], delivery: String) async throws {
            let count = store.counters().syncs
            noted.withLock { $0.append(count) }
        }
    }

    @Test("what is told is on disk before, so that no power cut takes it back")
    func durable() async throws {
        let store = try directory.store("hub")
        let probe = SyncProbe(store)
        let world = try PoolWorld(store) { $0.stream = probe }
        try await world.turnOnStream()
        // As one that is read while its own writer waits for the disk.
        try await world.update("notes", of: world.alice, ["a": "1"])
        let before = store.counters().syncs
        try await world.whileDelivering {
            try await eventually("delivered") { !probe.counts.isEmpty }
        }
        let first = try #require(probe.counts.first)
        #expect(first > before)
        try await world.end()
    }

    /// Takes what it is given, and says nothing about it until it is let go, cancelled or not.
    final class DeafTarget: StreamTarget {
        private let asked = Mutex(false)
        private let endless: AsyncStream<Void>
        private let end: AsyncStream<Void>.Continuation

        init() {
            (endless, end) = AsyncStream.makeStream(of: Void.self)
        }

        var wasAsked: Bool { asked.withLock { $0 } }

        func letGo() {
            end.finish()
        }

        func deliver(_ document: [UInt8], delivery: String) async throws {
            asked.withLock { $0 = true }
            let endless = endless
            await Task.detached { for await _ in endless {} }.value
        }
    }

    @Test("a receiver that blocks does not keep the hub from ending")
    func deaf() async throws {
        let target = DeafTarget()
        let world = try PoolWorld(try directory.store("hub")) { $0.stream = target }
        try await world.turnOnStream()
        try await world.update("notes", of: world.alice, ["a": "1"])
        // Returns when nothing of what delivers runs any more.
        try await world.whileDelivering {
            try await eventually("asked") { target.wasAsked }
        }
        #expect(try world.recordCount(of: Outbox.datasetName) == 1)
        target.letGo()
        try await world.end()
    }

    @Test("a stream is turned off before anything is left out of it")
    func offFirst() async throws {
        let world = try PoolWorld(try directory.store("hub")) { $0.streamBytesMax = 60_000 }
        try await world.turnOnStream()
        let value = String(repeating: "x", count: 10_000)
        // Nobody takes anything, and the last one is in the last quarter.
        for number in 0..<5 {
            try await world.update("notes", of: world.alice, ["a": "\(number)\(value)"])
        }
        #expect(try Outbox.size(of: world.pool, in: world.store) > 45_000)
        #expect(try world.recordCount(of: Outbox.datasetName) == 5)
        await world.parts.sink.turnOffFull()
        try await world.update("notes", of: world.alice, ["a": "beyond"])
        #expect(try world.recordCount(of: Outbox.datasetName) == 5)
        #expect(world.parts.book.record(of: world.pool)?.isStreaming == false)
        try await world.end()
    }

    @Test("what replicas push to a stream for which too much waits takes no more room either")
    func nativeOverflow() async throws {
        let world = try PoolWorld(try directory.store("hub")) { $0.streamBytesMax = 500 }
        try await world.turnOnStream()
        let name = "\(world.alice):notes"
        let dataset = try world.store.dataset(name)
        for number in 0..<20 {
            try world.parts.sink.willChange([name])
            try dataset.put("\(number)", for: "a")
            world.parts.sink.didChange([name])
        }
        let waiting = try world.recordCount(of: Outbox.datasetName)
        #expect((1...10).contains(waiting))
        #expect(try Outbox.size(of: world.pool, in: world.store) <= 500)
        try await world.whileDelivering {
            try await eventually("turned off") {
                world.parts.book.record(of: world.pool)?.isStreaming == false
            }
            try await eventually("delivered") {
                try world.recordCount(of: Outbox.datasetName) == 0
            }
        }
        // The last one that was noted is told with all that came behind it.
        #expect(world.target.deliveries.last?.records == [["a", "19"]])
        try await world.end()
    }

    // MARK: - What replicas push

    @Test("what a replica pushes is told as what it became")
    func native() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnStream()
        let name = "\(world.alice):notes"
        let dataset = try world.store.dataset(name)
        try await world.update("notes", of: world.alice, ["a": "1", "b": "2"])
        try world.parts.sink.willChange([name])
        try dataset.put("3", for: "c")
        try dataset.delete("a")
        world.parts.sink.didChange([name])
        try await world.whileDelivering {
            try await eventually("delivered and forgotten") {
                try world.recordCount(of: Outbox.datasetName) == 0
            }
        }
        let told = world.target.deliveries[1]
        #expect(Set(told.records) == [["c", "3"], ["a", nil]])
        // Two records of one call are one count; each that was pushed is one more.
        #expect(told.count == 3)
        try await world.end()
    }

    @Test("a push that is under way is not taken for one that changed nothing")
    func open() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnStream()
        let name = "\(world.alice):notes"
        let dataset = try world.store.dataset(name)
        try world.parts.sink.willChange([name])
        let pushes = OpenPushes()
        // Two at a time.
        pushes.open([name])
        pushes.open([name, "another"])
        let source = StreamSource(
            pool: world.pool, book: world.parts.book, threads: world.threads, pushes: pushes,
            meter: OutboxMeter(), clock: world.clock)
        #expect(try await !source.deliverNext(in: name))
        pushes.close([name])
        #expect(try await !source.deliverNext(in: name))
        #expect(try world.recordCount(of: Outbox.datasetName) == 1)
        try dataset.put("1", for: "a")
        pushes.close([name, "another"])
        #expect(try await source.deliverNext(in: name))
        #expect(world.target.deliveries.map(\.records) == [[["a", "1"]]])
        #expect(try await !source.deliverNext(in: name))
        world.parts.sink.didChange([name])
        try await world.end()
    }

    @Test("a push that a crash cut short is told after it, and one that changed nothing is not")
    func crash() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnStream()
        let (notes, tasks) = ("\(world.alice):notes", "\(world.alice):tasks")
        try world.store.dataset(notes).put("0", for: "z")
        try world.parts.sink.willChange([notes, tasks, "shared"])
        try world.store.dataset(notes).put("1", for: "a")
        // Nobody says that it is over.
        try await world.end()
        let again = try PoolWorld(try directory.store("hub"))
        try await again.whileDelivering {
            try await eventually("delivered") {
                try again.recordCount(of: Outbox.datasetName) == 0
            }
        }
        #expect(again.target.deliveries.map(\.records) == [[["a", "1"]]])
        try await again.end()
    }

    @Test("what comes with an identity that is merged into another one is told of that one")
    func merged() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnStream()
        let identities = IdentityDirectory(clock: world.clock)
        identities.passChanges(to: world.parts.sink)
        for (id, subject) in [(world.alice, "a"), (world.bob, "b")] {
            let facts = IdentityFacts(
                id: id, pool: world.pool, created: 1, logins: [IdentityFixture.login(subject)])
            var batch = WriteBatch()
            try identities.put(facts, over: nil, &batch, world.store)
            try identities.own(facts.logins, facts, &batch, world.store)
            try world.store.write(batch)
        }
        try world.store.dataset("\(world.alice):notes").put("1", for: "a")
        for name in ["notes", "plans"] {
            try world.store.dataset("\(world.bob):\(name)").put(name, for: "b")
        }
        try identities.merge(world.bob, into: world.alice, in: world.store)
        try await world.whileDelivering {
            try await eventually("delivered") {
                try world.recordCount(of: Outbox.datasetName) == 0
            }
        }
        let told = world.target.deliveries
        #expect(told.allSatisfy { $0.document["identityId"]?.text == world.alice.text })
        let records = Dictionary(grouping: told) { $0.dataset ?? "" }
            .mapValues { $0.flatMap(\.records) }
        #expect(records == ["notes.\(world.bob)": [["b", "notes"]], "plans": [["b", "plans"]]])
        try await world.end()
    }

    @Test("what is more than a document holds comes in several, with nothing left out")
    func chunks() async throws {
        let world = try PoolWorld(try directory.store("hub"))
        try await world.turnOnStream()
        let name = "\(world.alice):notes"
        let dataset = try world.store.dataset(name)
        let value = String(repeating: "v", count: 200 << 10)
        try world.parts.sink.willChange([name])
        for number in 0..<8 { try dataset.put(value, for: "key \(number)") }
        world.parts.sink.didChange([name])
        try await world.whileDelivering {
            try await eventually("delivered") {
                try world.target.deliveries.count > 1
                    && world.recordCount(of: Outbox.datasetName) == 0
            }
        }
        let keys = world.target.deliveries.flatMap(\.records).compactMap { $0[0] }
        #expect(keys == (0..<8).map { "key \($0)" })
        try await world.end()
    }
}
