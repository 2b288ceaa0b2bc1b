import Synchronization
import TestSupport
import Testing
import Tidemark

/// Deletions in the order of keys are followed by the scout, so that the first walk passes over few
/// dead records, however many there are. Counted, so that no machine's speed is in it. That no
/// walk misses a record for it: see `GapModelTests`, and the threads of `GapTests`.
@Suite("The scout")
struct ScoutTests {
    private static let deletedCount = 5_000
    private static let liveCount = 500
    /// The scout is asked to come after so many deletions. Some before the first of them that
    /// counts are passed over besides, and what is looked at each 64 steps.
    private static let leftMax: UInt64 = 1_024 + 2 * 64

    private func key(_ number: Int) -> [UInt8] { bytes("key \(100_000 + number)") }

    private func options(scouts: Bool = false) -> StoreOptions {
        var options = quickOptions()
        options.compactsAutomatically = scouts
        options.segmentBytes = 16 << 20
        return options
    }

    private func filled(_ options: StoreOptions) throws -> StoreFixture {
        let fixture = try StoreFixture(options)
        for number in 0..<(Self.deletedCount + Self.liveCount) {
            try fixture.dataset.put([1], for: key(number))
        }
        return fixture
    }

    /// What is deleted, in that order: from the end that a walk comes to first.
    private func deleted(_ order: ScanOrder) -> [Int] {
        switch order {
        case .forward: Array(0..<Self.deletedCount)
        case .backward: (Self.liveCount..<(Self.liveCount + Self.deletedCount)).reversed()
        }
    }

    /// The first key of a walk, and how many dead records it has passed over.
    private func first(
        of fixture: StoreFixture, _ order: ScanOrder = .forward
    ) throws -> (key: [UInt8]?, passed: UInt64) {
        let before = fixture.store.deadRecordsPassed
        let key = try fixture.dataset.keys(order: order, limit: 1).next()
        return (key, fixture.store.deadRecordsPassed - before)
    }

    // MARK: - What is left to the first walk

    @Test("The first walk after deletions in order passes over few", arguments: [false, true])
    func inOrder(seals: Bool) throws {
        for order in [ScanOrder.forward, .backward] {
            let fixture = try filled(options())
            if seals { try fixture.store.compact() }
            var stepCount = 0
            for (place, number) in deleted(order).enumerated() {
                try fixture.dataset.delete(key(number))
                if place % 10 == 9, fixture.store.scoutStep() { stepCount += 1 }
            }
            #expect(stepCount == 4, "asked for after each thousand")
            #expect(fixture.store.gapsNoted == 1)
            // Each is passed over once, and some at the seams again.
            let scouted = fixture.store.deadRecordsScouted
            #expect((3_900...UInt64(Self.deletedCount)).contains(scouted), "\(scouted)")
            let found = try first(of: fixture, order)
            #expect(found.key == key(order == .forward ? Self.deletedCount : Self.liveCount - 1))
            #expect((1...Self.leftMax).contains(found.passed), "\(found.passed)")
            let again = try first(of: fixture, order)
            #expect(again.key == found.key)
            #expect(again.passed == 0)
            #expect(try fixture.dataset.count() == Self.liveCount)
            try fixture.store.close()
        }
    }

    @Test("In batches, and with records that are put at the end meanwhile")
    func queue() throws {
        let fixture = try filled(options())
        let size = 100
        for start in stride(from: 0, to: Self.deletedCount, by: size) {
            var batch = WriteBatch()
            for number in start..<(start + size) {
                batch.put([2], for: key(10_000 + number), in: fixture.dataset)
                batch.delete(key(number), in: fixture.dataset)
            }
            try fixture.store.write(batch)
            _ = fixture.store.scoutStep()
        }
        let found = try first(of: fixture)
        #expect(found.key == key(Self.deletedCount))
        #expect((1...Self.leftMax).contains(found.passed), "\(found.passed)")
        #expect(try fixture.dataset.count() == Self.deletedCount + Self.liveCount)
    }

    @Test("The thread of the store does it by itself")
    func thread() throws {
        let fixture = try filled(options(scouts: true))
        let size = 100
        for start in stride(from: 0, to: Self.deletedCount, by: size) {
            var batch = WriteBatch()
            for number in start..<(start + size) { batch.delete(key(number), in: fixture.dataset) }
            try fixture.store.write(batch)
        }
        try fixture.store.waitForBackgroundWork()
        #expect(fixture.store.gapsNoted == 1)
        let found = try first(of: fixture)
        #expect(found.key == key(Self.deletedCount))
        #expect((1...Self.leftMax).contains(found.passed), "\(found.passed)")
    }

    @Test("Much at once is passed over in parts")
    func parts() throws {
        let fixture = try filled(options())
        for number in deleted(.forward) { try fixture.dataset.delete(key(number)) }
        try fixture.store.scout(fixture.dataset, from: key(0), partMax: 1_000)
        #expect(fixture.store.deadRecordsScouted == UInt64(Self.deletedCount))
        #expect(fixture.store.gapsNoted == 1)
        let found = try first(of: fixture)
        #expect(found.key == key(Self.deletedCount))
        #expect(found.passed <= 64, "a walk from the first of all keys is not in the gap at once")
        try fixture.store.scout(fixture.dataset, from: key(17))
        #expect(fixture.store.deadRecordsScouted == UInt64(Self.deletedCount), "known already")
    }

    @Test("What the scout has found is noted, however often a writer holds the lock")
    func besideAWriter() throws {
        let fixture = try StoreFixture(options())
        let datasets = try (0..<16).map { try fixture.store.dataset("front-\($0)") }
        for dataset in datasets {
            for number in 0..<200 { try dataset.delete(key(number)) }
        }
        let other = fixture.dataset
        let isDone = Atomic(false)
        try runOnThreads([
            {
                // Not so many that the log is sealed: nobody has to hear of these deletions, and
                // they would be gone.
                for _ in 0..<100 where !isDone.load(ordering: .relaxed) {
                    var batch = WriteBatch()
                    for number in 0..<2_000 { batch.delete(bytes("\(number)"), in: other) }
                    try fixture.store.write(batch)
                }
            },
            {
                defer { isDone.store(true, ordering: .relaxed) }
                for dataset in datasets { try fixture.store.scout(dataset, from: []) }
            },
        ])
        #expect(fixture.store.gapsNoted == datasets.count)
    }

    // MARK: - What it leaves alone

    @Test("Deletions in no order are not followed")
    func inNoOrder() throws {
        let fixture = try filled(options())
        for place in 0..<Self.deletedCount {
            // Prime to the number of them, and never more than two in a row in one direction.
            try fixture.dataset.delete(key(place * 2_741 % Self.deletedCount))
            if place % 100 == 99 { #expect(!fixture.store.scoutStep()) }
        }
        #expect(fixture.store.deadRecordsScouted == 0)
        #expect(fixture.store.gapsNoted == 0)
        #expect(try first(of: fixture).key == key(Self.deletedCount))
    }

    @Test("Without deletions, or with few in each dataset, nobody is asked")
    func few() throws {
        let fixture = try filled(options())
        #expect(!fixture.store.scoutStep())
        let other = try fixture.store.dataset("other")
        for number in 0..<2_000 {
            try fixture.dataset.delete(key(number))
            if number % 500 == 0 { try other.delete(key(number)) }
        }
        #expect(!fixture.store.scoutStep())
        #expect(fixture.store.deadRecordsScouted == 0)
    }

    @Test("A few dead records are no gap, and what lives is left where it is")
    func live() throws {
        let fixture = try filled(options())
        for number in 100..<130 { try fixture.dataset.delete(key(number)) }
        try fixture.store.scout(fixture.dataset, from: key(100))
        try fixture.store.scout(fixture.dataset, from: key(50))
        #expect(fixture.store.gapsNoted == 0)
        #expect(try fixture.dataset.count() == Self.deletedCount + Self.liveCount - 30)
    }

    // MARK: - Who must not see it

    @Test("Whoever looks from before the deletions sees all of it")
    func earlierMoments() throws {
        let fixture = try filled(options())
        let count = Self.deletedCount + Self.liveCount
        let snapshot = try fixture.store.snapshot()
        for number in deleted(.forward) { try fixture.dataset.delete(key(number)) }
        try fixture.store.scout(fixture.dataset, from: key(0))
        #expect(fixture.store.gapsNoted == 1)
        #expect(try snapshot.count(of: fixture.dataset) == count)
        #expect(try snapshot.keys(of: fixture.dataset, limit: 1).next() == key(0))
        let past = try fixture.store.snapshot(
            at: SyncCount(rawValue: UInt64(count)), of: fixture.dataset)
        #expect(try past.keys(of: fixture.dataset).collect().count == count)
        #expect(try fixture.dataset.keys(includingDeleted: true).collect().count == count)
        #expect(try fixture.dataset.history(of: key(3)).count == 2)
        #expect(try first(of: fixture).key == key(Self.deletedCount))
    }

    @Test("What is put among what was passed over is found, whenever it is put")
    func puts() throws {
        let fixture = try filled(options())
        for number in deleted(.forward) { try fixture.dataset.delete(key(number)) }
        try fixture.dataset.put([2], for: key(4_000))
        try fixture.store.scout(fixture.dataset, from: key(0))
        #expect(try first(of: fixture).key == key(4_000))
        try fixture.dataset.put([2], for: key(3_000))
        #expect(try first(of: fixture).key == key(3_000))
        try fixture.store.scout(fixture.dataset, from: key(0))
        #expect(try first(of: fixture).key == key(3_000))
        try fixture.store.scout(fixture.dataset, from: key(3_001))
        #expect(try fixture.dataset.keys(limit: 3).collect() == [3_000, 4_000, 5_000].map(key))
        #expect(try first(of: fixture, .backward).key == key(5_499))
    }

    @Test("A store is closed while its scout is on the way, and knows all when it is opened again")
    func closing() throws {
        for round in 0..<10 {
            let fixture = try filled(options(scouts: true))
            var batch = WriteBatch()
            // So that the scout was asked for the last time just before.
            for number in 0..<(1_024 + 400 * round) {
                batch.delete(key(number), in: fixture.dataset)
            }
            try fixture.store.write(batch)
            let (store, dataset) = try fixture.reopened(options())
            #expect(store.gapsNoted == 0)
            #expect(try dataset.keys(limit: 1).next() == key(1_024 + 400 * round))
            try store.close()
        }
    }
}
