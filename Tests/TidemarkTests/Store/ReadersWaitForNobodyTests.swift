import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Tidemark

/// What a writer keeps to itself, and for how long.
@Suite("Readers wait for no writer", .timeLimit(.minutes(Patience.minutes)))
struct ReadersWaitForNobodyTests {
    private static let count = 300
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// A dataset with records in a sealed run and in the log, and a row of deletions.
    ///
    /// - Parameter isSealed: else all is in the first log, which grows. The one after it may have
    ///   been prepared meanwhile, with all of its space.
    private func makeStore(
        _ storage: any Storage = SystemStorage(), isSealed: Bool = true
    ) throws -> (Store, Dataset) {
        var options = quickOptions()
        options.segmentBytes = 4 << 20
        let store = try Store.open(
            at: directory["store"], options: options, storage: storage)
        let dataset = try store.dataset("main")
        for number in 0..<Self.count { try dataset.put("old", for: key(number)) }
        if isSealed { try store.compact() }
        for number in 0..<Self.count where number % 2 == 1 {
            try dataset.put("new", for: key(number))
        }
        for number in 100..<200 { try dataset.delete(key(number)) }
        return (store, dataset)
    }

    private func key(_ number: Int) -> String { "key \(1_000 + number)" }

    /// Everything that reads the present and nothing else.
    private func readAll(
        _ store: Store, _ dataset: Dataset, _ snapshot: Snapshot,
        _ transaction: Transaction? = nil
    ) throws {
        let live = Self.count - 100
        #expect(try dataset.text(key(1)) == "new")
        #expect(try dataset.contains(key(2)))
        #expect(try dataset.record(for: key(3))?.isDirty == true)
        #expect(try dataset.record(for: key(150), includingDeleted: true)?.value == nil)
        #expect(try dataset.count() == live)
        for order in [ScanOrder.forward, .backward] {
            #expect(try dataset.records(order: order).collect().count == live)
            #expect(try dataset.keys(order: order).collect().count == live)
        }
        #expect(try snapshot.get(Array(key(4).utf8), in: dataset) == Array("old".utf8))
        #expect(try snapshot.count(of: dataset) == live)
        if let transaction {
            #expect(try transaction.get(Array(key(5).utf8), in: dataset) == Array("new".utf8))
        }
        let own = try store.snapshot()
        #expect(try own.records(of: dataset, order: .backward).collect().count == live)
        own.close()
        let other = try store.beginTransaction()
        #expect(try other.get(Array(key(6).utf8), in: dataset) == Array("old".utf8))
        other.cancel()
    }

    @Test("No read takes the lock that writers hold")
    func underTheLock() throws {
        let (store, dataset) = try makeStore()
        let snapshot = try store.snapshot()
        let isDone = Atomic<Bool>(false)
        let threads = ThreadGroup()
        store.engine.withLock { _ in
            threads.start {
                do {
                    try readAll(store, dataset, snapshot)
                } catch {
                    Issue.record("\(error)")
                }
                isDone.store(true, ordering: .releasing)
            }
            waitUntil { isDone.load(ordering: .acquiring) }
        }
        threads.join()
        snapshot.close()
        try store.close()
    }

    /// At each of its steps the batch is held up, and all else goes on.
    @Test(
        "Only writers wait for a large batch, which nobody sees before it is whole",
        arguments: [Step.fills, .makesLog, .reserves], [false, true])
    func largeBatch(step: Step, isConditional: Bool) throws {
        let storage = StallingStorage()
        let (store, dataset) = try makeStore(storage, isSealed: step != .reserves)
        let snapshot = try store.snapshot()
        let transaction = try store.beginTransaction()
        let value = [UInt8](repeating: 7, count: step.valueBytes)
        var batch = makeBatch(of: value, dataset)
        if isConditional { batch.put("n", for: "new", in: dataset, ifAt: nil) }
        let counts = try (dataset.syncCount, store.counters().puts)

        storage.stall(at: step, of: store)
        let threads = ThreadGroup()
        let written = batch
        let isWritten = Atomic<Bool>(false)
        threads.start {
            storage.beginBatch()
            do { try store.write(written) } catch { Issue.record("\(error)") }
            isWritten.store(true, ordering: .releasing)
        }
        storage.awaitStall()
        try readAll(store, dataset, snapshot, transaction)
        #expect(try dataset.changes(since: 0).collect().count == Self.count)
        #expect(try dataset.syncCount == counts.0)
        #expect(store.counters().puts == counts.1)
        #expect(try store.existingDataset("main") != nil)
        #expect(try store.verify().damages.isEmpty)
        try store.sync()
        let another = try Store.open(
            at: store.path, options: StoreOptions(isReadOnly: true))
        #expect(try another.existingDataset("main")?.count() == Self.count - 100)
        try another.close()
        threads.start {
            do { try dataset.put("late", for: key(1)) } catch { Issue.record("\(error)") }
        }
        let isOver = isWritten.load(ordering: .acquiring)
        #expect(!isOver)
        storage.release()
        threads.join()

        // Of all writes the late one is the last.
        let last = try dataset.record(for: key(1))?.version.dot.counter
        #expect(last == UInt64(Self.count / 2 * 3 + 100 + written.count + 1))
        #expect(try dataset.get(Array("batch 11000".utf8)) == value)
        #expect(try dataset.contains(key(10)) == false)
        #expect(try dataset.syncCount.rawValue == counts.0.rawValue + UInt64(written.count) + 1)
        #expect(try snapshot.count(of: dataset) == Self.count - 100)
        snapshot.close()
        transaction.cancel()
        try store.close()
        let reopened = try Store.open(at: store.path, options: quickOptions())
        let found = try reopened.dataset("main")
        #expect(try found.text(key(1)) == "late")
        #expect(try found.get(Array("batch 11999".utf8)) == value)
        #expect(try reopened.verify().damages.isEmpty)
        try reopened.close()
    }

    private func makeBatch(of value: [UInt8], _ dataset: Dataset) -> WriteBatch {
        var batch = WriteBatch()
        for number in 0..<2_000 {
            batch.put(
                value, for: Array("batch \(10_000 + number)".utf8), in: dataset,
                expiresAt: number == 1_999 ? EntryLayout.expiryMax : 0)
            if number % 10 == 0 { batch.delete(key(number), in: dataset) }
        }
        return batch
    }

    @Test("A sync that fails while a large batch is written stops it, and loses nothing else")
    func failedSync() throws {
        let storage = StallingStorage()
        let (store, dataset) = try makeStore(storage)
        let batch = makeBatch(of: [UInt8](repeating: 7, count: 100), dataset)
        storage.stall(at: .fills, of: store)
        let threads = ThreadGroup()
        threads.start {
            storage.beginBatch()
            expectError(.writerStopped) { try store.write(batch) }
        }
        storage.awaitStall()
        storage.failsSyncs.store(true, ordering: .releasing)
        expectError(.inputOutput) { try store.sync() }
        // What the log shows cannot be made fast while somebody stores into it.
        expectError(.inputOutput) { try dataset.text(key(1)) }
        storage.release()
        threads.join()
        #expect(try dataset.count() == Self.count - 100)
        #expect(try dataset.text(key(1)) == "new")
        expectError(.writerStopped) { try dataset.put("x", for: "y") }
        expectError(.writerStopped) { try store.close() }
        let reopened = try Store.open(at: store.path, options: quickOptions())
        #expect(try reopened.dataset("main").count() == Self.count - 100)
        try reopened.close()
    }

    enum Step: Sendable {
        /// The first byte of the batch is about to be stored.
        case fills
        /// The file of its log is about to be made.
        case makesLog
        /// Space in the log that is there is about to be reserved.
        case reserves

        /// Of one of 2,000 records, in logs of 4 MiB that grow by 1 MiB.
        var valueBytes: Int {
            switch self {
            case .fills: 100
            case .makesLog: 2_500
            case .reserves: 700
            }
        }
    }

    /// Holds one thread up at a step, and lets all others pass.
    private final class StallingStorage: WrappedStorage {
        let base = SystemStorage()
        private let step = Mutex<(Step, Engine)?>(nil)
        let failsSyncs = Atomic<Bool>(false)
        /// Of the batch. Any other thread that asked for the lock here, while it holds it, would
        /// keep that one from it.
        private let writer = Mutex<pthread_t?>(nil)
        private let isStalled = Atomic<Bool>(false)
        private let mayGoOn = Atomic<Bool>(false)

        func stall(at next: Step, of store: Store) {
            step.withLock { $0 = (next, store.engine) }
        }

        /// The thread that calls is the one to be held up.
        func beginBatch() { writer.withLock { $0 = pthread_self() } }

        func awaitStall() { waitUntil { isStalled.load(ordering: .acquiring) } }

        func release() { mayGoOn.store(true, ordering: .releasing) }

        fileprivate func reach(_ reached: Step) {
            guard let (next, engine) = step.withLock({ $0 }), next == reached,
                writer.withLock({ $0 }) == pthread_self(), isWritingWithoutLock(engine)
            else { return }
            let isFirst = step.withLock { step in
                defer { step = nil }
                return step != nil
            }
            guard isFirst else { return }
            isStalled.store(true, ordering: .releasing)
            waitUntil {
                usleep(200)
                return mayGoOn.load(ordering: .acquiring)
            }
        }

        /// Whoever asks while it holds the engine's lock is not the one that is meant, and never
        /// gets it. Another thread that holds it may be off its processor for long.
        private func isWritingWithoutLock(_ engine: Engine) -> Bool {
            let begin = ContinuousClock.now
            while ContinuousClock.now - begin < .seconds(1) {
                let isMeant = engine.withLock(turnsMax: 4_096) { held in
                    held.isWritingWithoutLock
                }
                if let isMeant { return isMeant }
                sched_yield()
            }
            return false
        }

        func wallClockMilliseconds() -> UInt64 {
            reach(.fills)
            return base.wallClockMilliseconds()
        }

        func openFile(_ path: String, _ mode: FileMode) throws(StoreError) -> any StorageFile {
            if mode == .create, path.hasSuffix(".log") { reach(.makesLog) }
            let file = try base.openFile(path, mode)
            return path.hasSuffix(".log") && mode != .read
                ? StallingFile(file: file, storage: self) : file
        }

        func monotonicNanoseconds() -> UInt64 { base.monotonicNanoseconds() }
    }

    private final class StallingFile: StorageFile {
        private let file: any StorageFile
        private let storage: StallingStorage

        init(file: any StorageFile, storage: StallingStorage) {
            self.file = file
            self.storage = storage
        }

        func reserve(_ size: Int) throws(StoreError) {
            storage.reach(.reserves)
            try file.reserve(size)
        }

        func syncMapping(offset: Int, count: Int) throws(StoreError) {
            guard !storage.failsSyncs.load(ordering: .acquiring) else {
                throw StoreError(
                    .inputOutput, "the disk does not answer",
                    location: StoreError.Location(path: path))
            }
            try file.syncMapping(offset: offset, count: count)
        }

        var path: String { file.path }
        func size() throws(StoreError) -> UInt64 { try file.size() }
        func stands(at path: String) -> Bool { file.stands(at: path) }
        func read(
            into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64
        ) throws(StoreError) {
            try unsafe file.read(into: buffer, at: offset)
        }
        func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(StoreError) {
            try unsafe file.write(bytes, at: offset)
        }
        func sync() throws(StoreError) { try file.sync() }
        func writeBack(_ range: Range<UInt64>, isWaiting: Bool) throws(StoreError) -> Bool {
            try file.writeBack(range, isWaiting: isWaiting)
        }
        func mayHaveLostWrites() -> Bool { file.mayHaveLostWrites() }
        func truncate(to size: UInt64) throws(StoreError) { try file.truncate(to: size) }
        func map(
            size: Int, reserving: Int
        ) throws(StoreError) -> UnsafeMutableRawBufferPointer {
            try unsafe file.map(size: size, reserving: reserving)
        }
        func mapForReading() throws(StoreError) -> UnsafeRawBufferPointer {
            try unsafe file.mapForReading()
        }
        func populate(offset: Int, count: Int) throws(StoreError) {
            try file.populate(offset: offset, count: count)
        }
        func detachMapping(count: Int) throws(StoreError) {
            try file.detachMapping(count: count)
        }
    }
}
