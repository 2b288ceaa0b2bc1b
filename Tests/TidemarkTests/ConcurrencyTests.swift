import Synchronization
import TestSupport
import Testing
import Tidemark

/// Many threads on one store. Writes take effect one after the other, each at one moment between
/// its call and its return; readers see some prefix of them, and never an older one than before.
///
///     writer:   put 1 ------ put 2 ------ batch (a: 3, b: 3) ------
///     reader:        1 1 1 ... 2 2 2 ...                  3 3 3     never 2 after 3
///     snapshot:            [a: 2, b: 2]     [a: 3, b: 3]            never a: 3, b: 2
@Suite("Concurrency")
struct ConcurrencyTests {
    private static let writesPerThread = 1_500

    private func number(_ value: [UInt8]?) -> Int {
        value.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
    }

    /// Runs until all writers are done, and at least once.
    private func whileRunning(_ running: borrowing Atomic<Int>, _ body: () throws -> Void) throws {
        repeat { try body() } while running.load(ordering: .acquiring) > 0
    }

    @Test(
        "Readers see values grow, snapshots see batches whole",
        arguments: [Durability.memory, .process])
    func readersAndWriter(durability: Durability) throws {
        let fixture = try StoreFixture()
        let (store, dataset) = (fixture.store, fixture.dataset)
        let running = Counter(1)
        let writer: @Sendable () throws -> Void = {
            defer { running.value.subtract(1, ordering: .releasing) }
            for number in 1...Self.writesPerThread {
                var batch = WriteBatch()
                batch.put("\(number)", for: "a", in: dataset)
                batch.put("\(number)", for: "b", in: dataset)
                try store.write(batch, durability: durability)
                if number % 500 == 0 { try store.compact() }
            }
        }
        let reader: @Sendable () throws -> Void = {
            var last = 0
            try whileRunning(running.value) {
                let first = number(try dataset.get("a"))
                let second = number(try dataset.get("b"))
                try require(first >= last && second >= first, "\(last), \(first), \(second)")
                last = second
            }
        }
        let observer: @Sendable () throws -> Void = {
            try whileRunning(running.value) {
                let snapshot = try store.snapshot()
                defer { snapshot.close() }
                let first = try snapshot.get(bytes("a"), in: dataset)
                let second = try snapshot.get(bytes("b"), in: dataset)
                try require(first == second, "half a batch in a snapshot")
                let scanned = try snapshot.records(of: dataset).collect()
                try require(scanned.allSatisfy { $0.value == first }, "half a batch in a scan")
                let live = try dataset.records(order: .backward).collect()
                try require(live.first?.value == live.last?.value, "half a batch in a scan")
            }
        }
        try runOnThreads([writer, reader, reader, observer])
        #expect(try dataset.text("a") == "\(Self.writesPerThread)")
    }

    @Test("Of many writers each write counts once, and the log has one order")
    func manyWriters() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        let start = try dataset.syncCount.rawValue
        let dots = Mutex<[Dot]>([])
        let bodies = (0..<4).map { thread in
            { @Sendable () throws -> Void in
                var own: [Dot] = []
                for index in 0..<Self.writesPerThread {
                    own.append(
                        try dataset.put(
                            "\(index)", for: "\(thread)/\(index % 50)",
                            durability: index % 100 == 0 ? .disk : .process))
                }
                try require(own == own.sorted(), "a thread's writes are out of order")
                dots.withLock { $0 += own }
            }
        }
        try runOnThreads(bodies)
        let all = dots.withLock { $0 }
        #expect(all.count == 4 * Self.writesPerThread && Set(all).count == all.count)
        #expect(try dataset.syncCount.rawValue == start + UInt64(all.count))
        #expect(try dataset.count() == 200)
        let (store, reopened) = try fixture.reopened()
        #expect(
            try reopened.count() == 200 && reopened.vector[store.replicaID] == UInt64(all.count))
        try store.close()
    }

    @Test("A counter kept by compare-and-set loses no increment")
    func compareAndSet() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        let key = bytes("counter")
        let increments = 200
        let body: @Sendable () throws -> Void = {
            for _ in 0..<increments {
                while true {
                    let record = try dataset.record(for: key)
                    let next = bytes("\(number(record?.value) + 1)")
                    do {
                        try dataset.put(next, for: key, ifAt: record?.version.dot)
                        break
                    } catch let error as StoreError where error.code == .versionMismatch {
                        continue
                    }
                }
            }
        }
        try runOnThreads([body, body, body])
        #expect(try dataset.text("counter") == "\(3 * increments)")
    }

    @Test("Datasets come and go while others are written and read")
    func lifecycle() throws {
        let fixture = try StoreFixture()
        let store = fixture.store
        let running = Counter(2)
        let churn: @Sendable () throws -> Void = {
            defer { running.value.subtract(1, ordering: .releasing) }
            for index in 0..<150 {
                let dataset = try store.dataset("churn")
                try dataset.put("\(index)", for: "a")
                try require(try dataset.count() == 1, "records of a deleted dataset are back")
                try store.deleteDataset("churn")
            }
        }
        let writer: @Sendable () throws -> Void = {
            defer { running.value.subtract(1, ordering: .releasing) }
            for index in 0..<Self.writesPerThread {
                try fixture.dataset.put("\(index)", for: "\(index % 100)")
            }
        }
        let reader: @Sendable () throws -> Void = {
            var last = 0
            try whileRunning(running.value) {
                let count = try fixture.dataset.count()
                try require(count >= last, "a record is gone")
                last = count
                _ = try store.datasets().map(\.name)
                _ = try store.statistics()
            }
        }
        try runOnThreads([churn, writer, reader])
        #expect(try store.datasets().map(\.name) == ["main"])
    }

    @Test("Closing while threads read and write ends each of them with `closed`")
    func closing() throws {
        let fixture = try StoreFixture()
        let dataset = fixture.dataset
        for index in 0..<100 { try dataset.put("\(index)", for: "\(index)") }
        let started = Counter(0)
        let untilClosed: @Sendable (() throws -> Void) throws -> Void = { body in
            do {
                while true {
                    try body()
                    started.value.add(1, ordering: .relaxed)
                }
            } catch let error as StoreError where error.code == .closed {}
        }
        try runOnThreads([
            { try untilClosed { try dataset.put("new", for: "1") } },
            { try untilClosed { _ = try dataset.get("1") } },
            { try untilClosed { _ = try dataset.records().collect() } },
            {
                while started.value.load(ordering: .relaxed) < 100 {}
                try fixture.store.close()
            },
        ])
        let store = try Store.open(at: fixture.path, options: quickOptions())
        #expect(try ["1", "new"].contains(store.dataset("main").text("1")))
        try store.close()
    }
}

/// An atomic number that closures can share.
private final class Counter: Sendable {
    let value: Atomic<Int>

    init(_ value: Int) {
        self.value = Atomic(value)
    }
}
