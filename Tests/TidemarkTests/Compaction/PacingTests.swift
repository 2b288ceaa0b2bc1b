import Glibc
import Synchronization
import TestSupport
import Testing
import Tidemark

/// Background work gives way: to closing, to writers, to a bound that the user has set.
@Suite("Pacing", .serialized)
struct PacingTests {
    private func options() -> StoreOptions {
        var options = quickOptions()
        options.compactsAutomatically = false
        options.compression = .none
        return options
    }

    private func fill(_ dataset: Dataset, _ count: Int, valueBytes: Int = 100) throws {
        let value = [UInt8](repeating: 7, count: valueBytes)
        for number in 0..<count { try dataset.put(value, for: bytes("\(1_000_000 + number)")) }
    }

    private func isSegment(_ path: String) -> Bool { path.hasSuffix(".seg") }

    /// Property: a merge that is under way when the store is closed gives up soon, and leaves
    /// nothing behind.
    ///
    ///     compacting  |--- writes ---| held at a write      | some more, then gives up
    ///     closing                     close begins, lets it go on |    returns
    @Test(
        "Closing does not wait for a merge, of the whole store or of a range",
        arguments: [true, false])
    func closing(isWhole: Bool) throws {
        let storage = SimulatedStorage(seed: .drawn())
        let store = try openSimulated(storage, options())
        let dataset = try store.dataset("main")
        try fill(dataset, 60_000)
        try store.waitForBackgroundWork()
        let isMerging = Atomic<Bool>(false)
        let isHeld = Atomic<Bool>(false)
        let writesAfter = Atomic<Int>(0)
        storage.observe { call in
            guard isMerging.load(ordering: .acquiring), call.kind == .write,
                call.path.hasSuffix(".seg"), call.count > 100_000
            else { return }
            if !isHeld.exchange(true, ordering: .acquiringAndReleasing) {
                while !store.isClosing { sched_yield() }
            } else {
                writesAfter.wrappingAdd(1, ordering: .relaxed)
            }
        }
        // What is in the log is sealed before the merge begins, so that all writes are the merge's.
        try dataset.compact(KeyRange(from: "b", upTo: "a"))
        let files = try store.usage().segments.filter(\.isSealed).map(\.file)
        isMerging.store(true, ordering: .releasing)
        try runOnThreads([
            { expectError(.closed) { try isWhole ? store.compact() : dataset.compact() } },
            {
                while !isHeld.load(ordering: .acquiring) { sched_yield() }
                try store.close()
            },
        ])
        // About 6 MB were to be written, in pieces of 256 KiB; it is asked every 4,096 entries.
        #expect(writesAfter.load(ordering: .relaxed) <= 3)
        let listed = try storage.listDirectory(simulatedPath).filter(isSegment)
        #expect(Set(listed) == Set(files))
        let again = try openSimulated(storage, options())
        #expect(try again.dataset("main").count() == 60_000)
        try again.close()
    }

    /// Property: a sweep that is under way when the store is closed gives up soon.
    @Test("Closing does not wait for a sweep")
    func closingInSweep() throws {
        let storage = SimulatedStorage(seed: .drawn())
        let store = try openSimulated(storage, options())
        let dataset = try store.dataset("main")
        try dataset.put("expired", for: "0", expiresAt: 1)
        try fill(dataset, 60_000)
        try store.compact()
        let isSweeping = Atomic<Bool>(false)
        let hasSwept = Atomic<Bool>(false)
        let readCount = Atomic<Int>(0)
        // Each block of the segment is read from the disk once, some 34 records at a time.
        let heldRead = 200
        storage.observe(includingReads: true) { call in
            guard isSweeping.load(ordering: .acquiring), call.kind == .read, isSegment(call.path)
            else { return }
            let before = readCount.wrappingAdd(1, ordering: .acquiringAndReleasing).oldValue
            if before == heldRead { while !store.isClosing { sched_yield() } }
        }
        isSweeping.store(true, ordering: .releasing)
        try runOnThreads([
            {
                defer { hasSwept.store(true, ordering: .releasing) }
                expectError(.closed) { try store.deleteExpired() }
            },
            {
                while readCount.load(ordering: .acquiring) <= heldRead,
                    !hasSwept.load(ordering: .acquiring)
                { sched_yield() }
                try store.close()
            },
        ])
        // It is asked every 4,096 records.
        #expect(readCount.load(ordering: .relaxed) < heldRead + 300)
        let again = try openSimulated(storage, options())
        #expect(try again.deleteExpired() == 1)
        try again.close()
    }

    /// Property: while sealing stands still, writers can go on for two logs and a part of a third,
    /// and no further; and all of it is there when sealing goes on.
    @Test("Writers wait for sealing, and go on with it")
    func backPressure() throws {
        let storage = SimulatedStorage(seed: .drawn())
        let store = try openSimulated(storage, options())
        let dataset = try store.dataset("main")
        let isStuck = Atomic<Bool>(true)
        let written = Atomic<Int>(0)
        storage.observe { call in
            guard call.kind == .write, call.path.hasSuffix(".seg") else { return }
            while isStuck.load(ordering: .acquiring) { sched_yield() }
        }
        let value = [UInt8](repeating: 7, count: 1_000)
        try runOnThreads([
            {
                for number in 0..<8_000 {
                    try dataset.put(value, for: bytes("\(number)"))
                    written.store(number + 1, ordering: .releasing)
                }
            },
            {
                // Two logs of 1 MiB are full, and the third is filled up to a quarter.
                while written.load(ordering: .acquiring) < 2_000 { sched_yield() }
                isStuck.store(false, ordering: .releasing)
            },
        ])
        #expect(try dataset.count() == 8_000)
        try store.close()
    }

    /// Property: where small entries fill a memtable long before its log, the steps are parts of
    /// the memtable, so no writer meets the sealing of a whole one.
    @Test("Writers of small entries are held back by what their memtable may hold")
    func backPressureOfMemory() throws {
        let storage = SimulatedStorage(seed: .drawn())
        var small = options()
        small.memoryLimit = Limits.memoryLimit.lowerBound
        small.segmentBytes = 16 << 20
        let store = try openSimulated(storage, small)
        let dataset = try store.dataset("main")
        let written = Atomic<Int>(0)
        let writtenAtWait = Atomic<Int>(0)
        // Before any of the first is sealed: from then on writers may go further, however far the
        // second is, which is sealed beside it.
        let isFirst = Atomic<Bool>(true)
        storage.observe { call in
            guard call.kind == .openFile, call.path.hasSuffix(".seg"),
                isFirst.exchange(false, ordering: .acquiringAndReleasing)
            else { return }
            while store.counters().writerWaits == 0 { sched_yield() }
            writtenAtWait.store(written.load(ordering: .acquiring), ordering: .releasing)
        }
        for number in 0..<150_000 {
            try dataset.put([], for: bytes("\(number)"))
            written.store(number + 1, ordering: .releasing)
        }
        try store.waitForBackgroundWork()
        let sealed = try store.usage().segments.filter(\.isSealed).sorted { $0.file < $1.file }
            .map(\.entryCount)
        try #require(sealed.count > 2)
        // Two are full, and the third is filled up to a quarter.
        let part = writtenAtWait.load(ordering: .relaxed) - sealed[0] - sealed[1]
        #expect(part > 0 && part < sealed[2] / 3, "\(part) of \(sealed)")
        try store.close()
    }

    @Test("A bound on what merges write a second is kept")
    func rate() throws {
        var bounded = options()
        bounded.compactionBytesPerSecond = 2 << 20
        let fixture = try StoreFixture(bounded)
        try fill(fixture.dataset, 12_000)
        try fixture.dataset.compact(KeyRange(from: "b", upTo: "a"))
        let clock = ContinuousClock()
        let start = clock.now
        let report = try fixture.store.compact()
        // What comes after the last question is not waited for: up to 4,096 entries and the
        // indexes.
        let elapsed = clock.now - start
        let paid = Double(report.bytesAfter) - 4_096 * 140 - 12_000 * 20
        #expect(paid > 0)
        #expect(elapsed >= .seconds(paid / Double(2 << 20)))
    }

    @Test("What was deleted at the front is cleared away in the background")
    func clearing() throws {
        var automatic = options()
        automatic.compactsAutomatically = true
        let fixture = try StoreFixture(automatic)
        let (store, dataset) = (fixture.store, fixture.dataset)
        try fill(dataset, 60_000, valueBytes: 10)
        try store.compact()
        for number in 0..<50_000 { try dataset.delete(bytes("\(1_000_000 + number)")) }
        // Enough for a log to be sealed behind them.
        try fill(store.dataset("other"), 30_000, valueBytes: 40)
        try store.waitForBackgroundWork()
        let usage = try #require(try store.usage().datasets.first { $0.name == "main" })
        #expect(usage.tombstoneCount < 16_384 + 5_000)
        #expect(usage.entryCount <= 10_000 + 2 * usage.tombstoneCount)
        #expect(try dataset.count() == 10_000)
        #expect(try dataset.keys(limit: 1).next() == bytes("1050000"))
    }
}
